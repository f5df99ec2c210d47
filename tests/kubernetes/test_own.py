"""What a user brings, on a cluster: files, services, a script and a load of one's own, as on one machine."""

from pathlib import Path

import pytest

from tests.kubernetes.test_cluster import run

pytestmark = pytest.mark.e2e

# The images are some that the tests' nodes have; to the lab they are a user's.
SERVICES = """\
services:
  shop:
    image: connlab/nginx
    port: 9000
    entrypoint: [nginx, -e, /dev/stderr, -c, /conf/shop.conf]
    volumes: [./conf:/conf, cache:/var/lib]
    files: {/motd/today: hello}
    depends_on: [store]
  store:
    image: connlab/nginx
    port: 80
    user: "0"
    capabilities: [CHOWN, DAC_OVERRIDE, SETGID, SETUID]
    entrypoint: [nginx, -e, /dev/stderr, -c, /conf/store.conf]
    volumes: [./conf:/conf]
    depends_on: [prepared]
    aliases: [shelf]
  prepared: {image: connlab/collector, entrypoint: ["true"], completes: true}
"""
SERVER = """\
daemon off;
pid /tmp/pid;
events {}
http {
    access_log off;
    client_body_temp_path /tmp/1; proxy_temp_path /tmp/2; fastcgi_temp_path /tmp/3; uwsgi_temp_path /tmp/4;
    scgi_temp_path /tmp/5;
    server { listen PORT; location / { WHAT } }
}
"""
FILES = {
    "conf/shop.conf": SERVER.replace("PORT", "9000").replace("WHAT", "proxy_pass http://shelf;"),
    "conf/store.conf": SERVER.replace("PORT", "80").replace("WHAT", 'return 200 "here you are";'),
    "nginx/nginx.conf": "events {}\nhttp { include conf.d/*.conf; }\n",
    "nginx/conf.d/shop.conf": """\
server {
    listen 443 ssl;
    server_name shop.example;
    ssl_certificate /etc/ssl/shop.pem;
    ssl_certificate_key /etc/ssl/shop.key;
    location / { proxy_pass http://shop:9000; }
}
""",
    "lib/pages.js": "export const page = '/?q=1';\n",
    "walk.js": """\
import { check } from 'k6';
import http from 'k6/http';
import { page } from './lib/pages.js';
export const options = { scenarios: { all: { executor: 'constant-vus', vus: 3, duration: '6s' } } };
export default function () {
    check(http.get(`${__ENV.BASE_URL}${page}`), { 'is here': (answer) => answer.body === 'here you are' });
}
""",
}
BEHIND_TLS = f"""\
schema: 1
title: A shop behind its own nginx
question: Does everybody get an answer while nginx is reloaded?
path: [k6, nginx, shop]
nginx: {{config: ./nginx/nginx.conf}}
load: {{script: ./walk.js, environment: {{BASE_URL: "{{target}}"}}}}
{SERVICES}actions:
  - {{at: 2s, do: reload, instance: nginx}}
predictions:
  - {{id: here, description: Everybody gets the answer., expression: client.checks.is_here.rate == 1}}
  - {{id: identities, description: All counted the same., expression: ledger.identities.failed == 0}}
"""
BY_A_PROGRAM = f"""\
schema: 1
title: A shop under a load of one's own
question: Is each connection taken?
path: [generator, shop]
load:
  image: connlab/collector
  command: [http, --times, "20", "{{target}}/?q=1"]
{SERVICES}network: {{generator: {{shop: {{delay: 5ms}}}}}}
predictions:
  - {{id: taken, description: Each is taken., expression: ledger.connections.shop.failed == 0}}
  - {{id: identities, description: All counted the same., expression: ledger.identities.failed == 0}}
"""


@pytest.mark.parametrize(
    ("name", "text"), [("own-behind-tls", BEHIND_TLS), ("own-by-a-program", BY_A_PROGRAM)], ids=["script", "program"]
)
def test_what_a_user_brings_runs_as_on_one_machine(tmp_path: Path, name: str, text: str) -> None:
    home = tmp_path / name
    for file, content in {**FILES, "scenario.yaml": text}.items():
        (home / file).parent.mkdir(parents=True, exist_ok=True)
        (home / file).write_text(content)
    ended = run(str(home))
    assert (ended.verdict["verdict"], ended.exit_code) == ("reproduced", 0), ended.output
    # None of a load that records no requests.
    assert not ended.verdict["ledger"]["unexplained"]
    assert ended.manifest["images"]["shop"].startswith("sha256:")
