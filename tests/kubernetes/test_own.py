"""What a user brings, on a cluster: files, services, a script and a load of one's own, as on one machine."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab import paths
from tests.kubernetes.conftest import build_into_nodes, kubectl
from tests.kubernetes.test_cluster import assert_reproduced, run

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
BY_WRK = f"""\
schema: 1
title: A shop under a load of wrk
question: Is each connection taken?
path: [wrk, shop]
load: {{wrk: "-t1 -c10 -d5s {{target}}/?q=1"}}
{SERVICES}network: {{wrk: {{shop: {{delay: 5ms}}}}}}
predictions:
  - {{id: taken, description: Each is taken., expression: ledger.connections.shop.failed == 0}}
  - {{id: identities, description: All counted the same., expression: ledger.identities.failed == 0}}
"""


@pytest.mark.parametrize(
    ("name", "text"), [("own-behind-tls", BEHIND_TLS), ("own-by-wrk", BY_WRK)], ids=["script", "wrk"]
)
def test_what_a_user_brings_runs_as_on_one_machine(tmp_path: Path, name: str, text: str) -> None:
    home = tmp_path / name
    for file, content in {**FILES, "scenario.yaml": text}.items():
        (home / file).parent.mkdir(parents=True, exist_ok=True)
        (home / file).write_text(content)
    if "wrk" in name:
        build_into_nodes("connlab/generators:latest", by=[paths.ROOT / "setup" / "images.sh", "generators"])
    ended = run(str(home))
    assert (ended.verdict["verdict"], ended.exit_code) == ("reproduced", 0), ended.output
    # None of a load that records no requests.
    assert not ended.verdict["ledger"]["unexplained"]
    assert ended.manifest["images"]["shop"].startswith("sha256:")


def test_an_ordinary_application_with_its_database_runs_over_both_nodes(tmp_path: Path) -> None:
    """A cluster knows users by number alone, and the Compose file names the database's."""
    shop = paths.ROOT / "examples" / "shop"
    build = ["docker", "compose", "--project-directory", str(shop), "build"]
    build_into_nodes("example/shop:latest", "example/shop-db:latest", by=build, BASE="connlab/base")
    asked = ["docker", "run", "--rm", "--network", "none", "--entrypoint", "id", "example/shop-db", "-u", "postgres"]
    user = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    home = tmp_path / "shop" / "cluster"
    shutil.copytree(shop / "lab", home)
    shutil.copy(shop / "compose.yaml", home.parent)
    scenario = home / "scenario.yaml"
    scenario.write_text(scenario.read_text().replace("    port: 5432", f'    port: 5432\n    user: "{user}"'))
    kept = ("nginx.upstream_keepalive=64", "nginx.proxy_http_version=1.1", "nginx.proxy_connection=")
    ended = run(str(home), "--spread", *(f"--set={one}" for one in kept))
    judged = {row["id"]: row["status"] for row in ended.verdict["predictions"]}
    # What its users wait for is the machine's.
    del judged["threshold-http-req-duration-name-order-p-95-below-500"]
    assert set(judged.values()) == {"true"}, ended.output
    assert len(set(ended.manifest["nodes"].values())) == 2, ended.manifest["nodes"]
    assert [hop["observers"] for hop in ended.read("derived/ledger")["hops"]] == [["nginx"], ["shop-1"], ["db-1"]]


# Of somebody else: the lab made none of it.
DEPLOYED = [
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}},
    {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "web", "namespace": "shop"},
        "data": {"nginx.conf": FILES["conf/store.conf"].replace("listen 80", "listen 9000")},
    },
    {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {
                    "volumes": [{"name": "conf", "configMap": {"name": "web"}}],
                    "containers": [
                        {
                            "name": "web",
                            "image": "connlab/nginx:latest",
                            "imagePullPolicy": "Never",
                            "command": ["nginx", "-e", "/dev/stderr", "-c", "/conf/nginx.conf"],
                            "ports": [{"name": "http", "containerPort": 9000}],
                            # The node asks for it once a second, over connections that are none of the load's.
                            "readinessProbe": {"httpGet": {"path": "/", "port": "http"}, "periodSeconds": 1},
                            "volumeMounts": [{"name": "conf", "mountPath": "/conf"}],
                        }
                    ],
                },
            },
        },
    },
    {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": "http"}]},
    },
]
ALREADY_THERE = """\
schema: 1
title: A shop that runs on the cluster
question: Does everybody get an answer?
path: [k6, {service: shop/web}]
knobs:
  load: {users: 20, calls: 50, path: /, keep_alive: false}
predictions:
  - {id: served, description: Everybody is served., expression: client.requests.ok == load.users * load.calls}
  - {id: identities, description: All counted the same., expression: ledger.identities.failed == 0}
"""


@pytest.fixture
def deployed() -> Iterator[None]:
    kubectl("create", "--filename", "-", stdin="\n---\n".join(map(json.dumps, DEPLOYED)))
    kubectl("--namespace", "shop", "wait", "--for=condition=Available", "--timeout=90s", "deployment/web")
    yield
    kubectl("delete", "namespace", "shop")


def pods() -> dict[str, tuple[str, int]]:
    found = json.loads(kubectl("--namespace", "shop", "get", "pods", "--output", "json"))["items"]
    return {
        one["metadata"]["name"]: (one["metadata"]["uid"], one["status"]["containerStatuses"][0]["restartCount"])
        for one in found
    }


@pytest.mark.usefixtures("deployed")
def test_an_application_that_is_already_there_is_observed_under_the_load_and_stays_as_it_is(tmp_path: Path) -> None:
    home, before = tmp_path / "already-there", pods()
    home.mkdir()
    (home / "scenario.yaml").write_text(ALREADY_THERE)
    ended = run(str(home))
    assert_reproduced(ended)
    assert pods() == before
    (hop,) = ended.read("derived/ledger")["hops"]
    assert (hop["to"], hop["observers"]) == ("web", ["web-1", "web-2"])
    assert ended.figures["flows.web.established"] == 1000
