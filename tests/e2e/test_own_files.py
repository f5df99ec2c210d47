"""A proxy's configuration and a k6 script of one's own, of the ordinary kind, through the command that a user types."""

import json
import re
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.own_results import RESULTS

from .conftest import ROOT, Run, connlab, refused
from .test_scenarios import assert_follows_schemas, assert_reproduced, of_kind

pytestmark = pytest.mark.e2e

NGINX = ROOT / "examples" / "own-nginx"
HAPROXY = ROOT / "examples" / "own-haproxy"
CHECKOUT = ROOT / "examples" / "checkout"
PAGES = ("home", "search", "product", "cart", "pay")
shares_nginx, shares_haproxy, shares_checkout = map(pytest.mark.xdist_group, ("own-nginx", "own-haproxy", "checkout"))


def copied(example: Path, to: Path, changes: dict[str, tuple[str, str]]) -> Path:
    """Copy an example, with a text in some of its files replaced."""
    shutil.copytree(example, to)
    for file, (old, new) in changes.items():
        text = (to / file).read_text()
        assert old in text
        (to / file).write_text(text.replace(old, new))
    return to


@pytest.fixture(scope="module")
def through_nginx(run: Callable[..., Run]) -> Run:
    ended = run(str(NGINX))
    assert_reproduced(ended)
    return ended


@shares_nginx
def test_nginx_runs_a_file_unchanged_and_the_model_counts_with_its_values(through_nginx: Run) -> None:
    assert_follows_schemas(through_nginx)
    knobs = through_nginx.manifest["knobs"]
    assert knobs["nginx.proxy_connect_timeout"]["where"] == ["conf.d/app.conf:32"]
    assert knobs["nginx.upstream_keepalive"]["read_back"] == 16
    of_nginx: dict[str, Any] = {
        "value": 1000,
        "unit": None,
        "default": 1000,
        "source": "file",
        "read_back": 1000,
        "where": [],
    }
    assert knobs["nginx.keepalive_requests"] == of_nginx
    assert through_nginx.measured()["model.syns_per_failed_try"] == 2


@shares_nginx
def test_what_nginx_read_is_the_user_s_file_line_by_line(through_nginx: Run) -> None:
    left = (through_nginx.folder / "raw" / "nginx" / "role" / "nginx.conf").read_text().splitlines()
    at = left.index("# configuration file /etc/nginx/nginx.conf:") + 1
    written = (NGINX / "nginx.conf").read_text().splitlines()
    changed = [(mine, theirs) for mine, theirs in zip(written, left[at:], strict=False) if mine != theirs]
    assert changed == [("user              nginx;", ""), ("http {", "http { include /tmp/connlab.conf;")]


def test_advice_on_a_small_file_names_the_line_to_change(run: Callable[..., Run], tmp_path: Path) -> None:
    small = run(str(copied(NGINX, tmp_path / "small", {"nginx.conf": ("1024", "64")})))
    assert small.exit_code == 1
    assert small.verdict["ledger"]["unexplained"] == 0
    advice = connlab("advise", str(small.folder))
    assert "set nginx.worker_connections = " in advice.stdout
    assert "change it there (nginx.conf:8)" in advice.stdout


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("nginx.conf", "keepalive_timeout", "keepalive_timout", "nginx.conf:21: nginx refuses it: unknown directive"),
        ("nginx.conf", "conf.d/*.conf", "gone.conf", 'nginx.conf:27: nginx refuses it: open() "/etc/nginx/gone.conf"'),
        ("conf.d/app.conf", "http://app", "http://$host", "app.conf:27: proxy_pass http://$host depends on a request"),
        ("nginx.conf", "http {", "stream {", "nginx.conf:11: it has stream { } alone"),
    ],
)
def test_a_file_that_cannot_run_is_refused_with_its_line_before_anything_starts(
    tmp_path: Path, file: str, old: str, new: str, said: str
) -> None:
    assert said in refused("run", str(copied(NGINX, tmp_path / "refused-file", {file: (old, new)})))
    assert not (RESULTS / "refused-file").exists()


RESTARTED = """\
schema: 1
title: An nginx of one's own is started again while users come
question: Who is refused?
path: [k6, nginx, backend]
nginx: {config: ./nginx.conf}
actions: [{at: 2s, do: restart, instance: nginx, for: 500ms}]
knobs:
  backend: {max_connections: 300, accept_count: 100}
  load: {workload: users, users: 40, arrival_gap: 100ms, handler_delay: 20ms, calls: 3, think_time: 300ms}
predictions:
  - {id: refused, description: Some are refused., expression: ledger.cause.connection_refused > 0}
  - {id: unexplained, description: All of it is explained., expression: ledger.unexplained == 0}
  - {id: identities, description: All counted the same., expression: ledger.identities.failed == 0}
"""


def test_an_nginx_with_a_file_of_its_own_is_started_again_under_load(run: Callable[..., Run], tmp_path: Path) -> None:
    home = copied(NGINX, tmp_path / "restarted", {})
    (home / "scenario.yaml").write_text(RESTARTED)
    assert_reproduced(run(str(home)))


@pytest.fixture(scope="module")
def through_haproxy(run: Callable[..., Run]) -> Run:
    ended = run(str(HAPROXY))
    assert_reproduced(ended)
    return ended


@shares_haproxy
def test_haproxy_runs_a_file_unchanged_and_the_lab_reads_the_counters_of_its_sections(through_haproxy: Run) -> None:
    knobs = through_haproxy.manifest["knobs"]
    assert knobs["haproxy.timeout_connect"]["where"] == ["haproxy.cfg:10"]
    # No line says it: it is as many as the process takes, which the kernel confirms.
    assert knobs["haproxy.backlog"]["read_back"] == 4000
    limits = {one["port"]: one["limit"] for one in through_haproxy.manifest["listeners"]["haproxy"]}
    assert limits[443] == 4000
    assert "haproxy.nbthread" not in knobs
    figures = through_haproxy.figures
    assert figures["haproxy.requests"] == 60
    assert figures["haproxy.connections.opened"] == 60


@shares_haproxy
def test_what_haproxy_read_is_the_user_s_file_with_its_server_s_address_and_lines_between(through_haproxy: Run) -> None:
    left = (through_haproxy.folder / "raw" / "haproxy" / "role" / "haproxy.cfg").read_text()
    left, _, _ = left.partition("# connlab: lines of the lab")
    own = re.sub(r" +# connlab: begin\n.*?# connlab: end\n", "", left, flags=re.DOTALL)
    written = (HAPROXY / "haproxy.cfg").read_text()
    certificate = "/etc/haproxy/certs/shop.example.pem"
    for said, runs in (
        ("10.0.0.7:8080", "backend:8080"),
        ("GET /health", "GET /api/delay"),
        (certificate, f"/tmp/connlab-tls/{certificate.strip('/').replace('/', '-')}"),  # noqa: S108 # in the container
    ):
        written = written.replace(said, runs)
    assert own.partition("\n")[2] == written


def test_advice_on_haproxy_s_own_queue_names_the_line_to_change(run: Callable[..., Run], tmp_path: Path) -> None:
    queued = run(str(copied(HAPROXY, tmp_path / "queued", {"haproxy.cfg": ("maxconn 200", "maxconn 5")})))
    assert queued.exit_code == 1
    assert queued.manifest["knobs"]["haproxy.server_maxconn"]["value"] == 5
    advice = connlab("advise", str(queued.folder))
    assert "main cause: proxy-queue-timeout (55 requests)" in advice.stdout
    assert "change it there (haproxy.cfg:2" in advice.stdout


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("timeout client ", "timeout clint ", "haproxy.cfg:11: HAProxy refuses it: 'timeout' supports"),
        ("default_backend app", "default_backend ap", "HAProxy refuses it: Proxy 'web': unable to find required"),
        ("default_backend app", "monitor-uri /up", "frontend web leads to no server line"),
        ("balance", "errorfile 503 gone.http\n    balance", "haproxy.cfg:25: HAProxy refuses it: errorfile"),
    ],
)
def test_a_file_that_haproxy_cannot_run_is_refused_with_its_line(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert said in refused("run", str(copied(HAPROXY, tmp_path / "refused-file", {"haproxy.cfg": (old, new)})))
    assert not (RESULTS / "refused-file").exists()


AS_THEY_ARE = """\
schema: 1
title: A file as production has it
question: Does every request have its connection?
path: [k6, {role}, backend]
{role}: {{config: ./{file}}}
knobs:
  backend: {{max_connections: 300, accept_count: 100}}
  load: {{workload: users, users: 10, arrival_gap: 100ms, handler_delay: 20ms, calls: 3, think_time: 300ms}}
predictions:
  - {{id: answered, description: All are answered., expression: client.requests.status.2xx == client.requests.total}}
  - {{id: unexplained, description: All of it is explained., expression: ledger.unexplained == 0}}
  - {{id: identities, description: All counted the same., expression: ledger.identities.failed == 0}}
"""
COUNTED = "  - {id: checks, description: Checks are counted apart., expression: flows.backend.checks > 0}\n"
# A fragment with TLS for a name that is not the default server's.
FRAGMENT = """\
upstream app {
    server app:3000;
    keepalive 8;
}
server {
    listen 80 default_server;
    listen [::]:80 default_server;
    return 301 https://$host$request_uri;
}
server {
    listen 443 ssl default_server;
    ssl_certificate /etc/letsencrypt/live/other/fullchain.pem;
    ssl_certificate_key /etc/letsencrypt/live/other/privkey.pem;
    return 404;
}
server {
    listen 443 ssl;
    server_name shop.example;
    ssl_certificate /etc/letsencrypt/live/shop/fullchain.pem;
    ssl_certificate_key /etc/letsencrypt/live/shop/privkey.pem;
    access_log /var/log/nginx/shop.log;
    location / { proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Connection ""; }
}
"""
CHECKED = """\
global
    user haproxy
    chroot /var/lib/haproxy
    daemon
    log /dev/log local0
defaults
    mode http
    timeout connect 5s
    timeout client 30s
    timeout server 30s
frontend web
    bind :80
    default_backend app
backend app
    option httpchk GET /api/delay?ms=0&bytes=1
    server one 10.0.0.7:3000 check inter 200ms
"""


@pytest.mark.parametrize(
    ("file", "text", "more"),
    [
        ("nginx.conf", FRAGMENT, ""),
        ("haproxy.cfg", CHECKED, COUNTED),
        ("haproxy.cfg", CHECKED.replace("mode http", "mode tcp"), ""),
    ],
    ids=["fragment", "checks", "tcp"],
)
def test_a_file_as_production_has_it_runs_unchanged(
    run: Callable[..., Run], tmp_path: Path, file: str, text: str, more: str
) -> None:
    role = Path(file).stem
    home = tmp_path / f"as-it-is-{'tcp' if 'mode tcp' in text else role}"
    home.mkdir()
    (home / file).write_text(text)
    (home / "scenario.yaml").write_text(AS_THEY_ARE.format(role=role, file=file) + more)
    ended = run(str(home))
    assert_reproduced(ended)
    port = 443 if text is FRAGMENT else 80
    assert port in {one["port"] for one in ended.manifest["listeners"][role]}
    assert (home / file).read_text() == text


@pytest.fixture(scope="module")
def checkout(run: Callable[..., Run]) -> Run:
    ended = run(str(CHECKOUT))
    assert_reproduced(ended)
    return ended


@shares_checkout
def test_a_script_runs_unchanged_and_every_request_has_its_connection(checkout: Run) -> None:
    assert_follows_schemas(checkout)
    role = checkout.folder / "raw" / "k6-1" / "role"
    requests = [json.loads(line) for line in (role / "requests.jsonl").read_text().splitlines()]
    requests = [request for request in requests if "id" in request]
    dials = {dial["id"]: dial for dial in of_kind("dial", role / "dials.jsonl")}
    assert all(dials[request["dial"]]["vu"] == request["vu"] for request in requests)
    by_name = Counter(request["name"] for request in requests)
    assert set(by_name) == {"open", *PAGES}
    assert by_name["open"] == 1
    summary = json.loads((role / "summary.json").read_text())
    assert summary["metrics"]["http_reqs"]["values"]["count"] == len(requests)
    groups = {"open": "::setup", "cart": "::buy", "pay": "::buy"}
    assert all(request["group"] == groups.get(request["name"], "::browse") for request in requests)


@shares_checkout
def test_its_thresholds_are_predictions_and_its_checks_are_figures(checkout: Run) -> None:
    judged = {row["id"]: row["status"] for row in checkout.verdict["predictions"] if row["id"].startswith("threshold-")}
    assert len(judged) == 3
    assert set(judged.values()) == {"true"}
    assert checkout.measured()["client.checks.paid.rate"] == 1
    assert checkout.measured()["client.thresholds.http_req_duration_name_pay_p_95_below_800"] is True
    assert checkout.verdict["ledger"]["identities"]["false"] == 0


@shares_checkout
def test_its_names_and_groups_divide_figures_and_ledger(checkout: Run) -> None:
    found = checkout.figures
    named = {name: found[f"client.named.{name}.total"] for name in ("open", *PAGES)}
    assert found["client.groups.buy.total"] == named["cart"] + named["pay"]
    names = checkout.read("derived/ledger")["names"]
    assert {(one["name"], one["group"]): one["total"] for one in names} == {
        (name, {"open": "::setup", "cart": "::buy", "pay": "::buy"}.get(name, "::browse")): total
        for name, total in named.items()
    }


def test_a_threshold_that_is_crossed_makes_the_run_not_reproduced(run: Callable[..., Run], tmp_path: Path) -> None:
    home = copied(CHECKOUT, tmp_path / "crossed", {"checkout.js": ("p(95)<800", "p(95)<1")})
    (home / "checkout.js").write_text((home / "checkout.js").read_text().replace("'4s'", "'1s'"))
    crossed = run(str(home))
    false = [row["id"] for row in crossed.verdict["predictions"] if row["status"] == "false"]
    assert false == ["threshold-http-req-duration-name-pay-p-95-below-1"]
    assert crossed.exit_code == 1
    assert crossed.manifest["exits"]["k6-1"] == 99


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("import './gone.js';\nexport default () => {};\n", "checkout.js:1: k6 refuses"),
        ("\nexport default functio n() {}\n", "checkout.js:2: k6 refuses"),
        (
            "export const options = { vus: 1, duration: '20m' };\nexport default () => {};\n",
            "for 1,200 s, but load.max_duration is 60 s",
        ),
    ],
)
def test_a_script_that_cannot_run_is_refused_before_anything_starts(tmp_path: Path, script: str, said: str) -> None:
    home = copied(CHECKOUT, tmp_path / "refused-file", {})
    (home / "checkout.js").write_text(script)
    assert said in refused("run", str(home))
    assert not (RESULTS / "refused-file").exists()
