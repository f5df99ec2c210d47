"""A configuration of one's own: read by its program before anything starts, and refused with the line and a hint."""

import io
import json
import re
from collections.abc import Mapping
from ipaddress import IPv4Network
from pathlib import Path

import pytest
from rich.console import Console

from analysis.evidence.rawfiles import Places
from analysis.figures.catalogue import Scope, UnknownFigure
from analysis.reports.advice import rerun_command
from formats.manifest import Knob
from formats.role import Checks
from lab import paths
from lab.console import listing
from lab.engines.compose import images
from lab.engines.compose.run_file import build_run_file
from lab.errors import BadInput, LabError
from lab.roles.configurations import parse_configuration
from lab.roles.configurations.parsed import ClientSide, ParsedConfiguration, Position, Setting
from lab.roles.declared_roles import ROLES
from lab.runs import capacity, user_files
from lab.runs.run import run
from lab.scenarios import places
from lab.scenarios.resolve import resolve
from lab.scenarios.resolved import ResolvedScenario
from lab.scenarios.topology import topology_of
from lab.series import store
from tests.analysis.support import as_manifest, make_manifest
from tests.lab.engine import InMemoryDocker, InMemoryEngine
from tests.lab.support import IMAGES, MINIMAL, Make, resolving

OWN = MINIMAL.replace("path: [k6, backend]", "path: [k6, nginx, backend]\nnginx: {config: ./nginx.conf}")
STANDS = ClientSide(8080)
ADDED = "# configuration file /tmp/connlab.conf:\n# A comment.\naccess_log /raw/access.jsonl connlab;\n\n"
NGINX = """\
worker_processes auto;
events {
    worker_connections 1024;
}
http { include /tmp/connlab.conf;
    keepalive_timeout 65;
    include conf.d/*.conf;
}
"""
APP = """\
upstream app {
    server backend:8080 max_fails=0;
    keepalive 16;
}
server {
    listen 8080 backlog=300;
    location / {
        proxy_pass http://app;
        proxy_set_header Host $host;
        proxy_connect_timeout 1500ms;
    }
}
"""


def dump(main: str = NGINX, app: str = APP) -> str:
    """What `nginx -T` prints, with the lab's lines."""
    files = {"/etc/nginx/nginx.conf": main, "/etc/nginx/conf.d/app.conf": app}
    return ADDED.join(f"# configuration file {name}:\n{text}\n" for name, text in files.items())


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "nginx.conf").write_text(NGINX.replace(" include /tmp/connlab.conf;", ""))
    (folder / "conf.d").mkdir()
    (folder / "conf.d" / "app.conf").write_text(APP)
    return folder


@pytest.fixture
def make(home: Path) -> Make:
    """Resolve a scenario with a configuration, with some of its text changed."""
    return resolving(home, OWN)


def nginx(main: str = NGINX, app: str = APP) -> Mapping[str, Setting]:
    return parse_configuration(ROLES["nginx"], dump(main, app), STANDS).settings


def test_values_are_found_where_the_file_says_them() -> None:
    found = nginx()
    assert found["worker_processes"] == Setting("auto", (Position("nginx.conf", 1),))
    assert found["worker_connections"] == Setting(1024, (Position("nginx.conf", 3),))
    assert found["keepalive_timeout"] == Setting(65_000, (Position("nginx.conf", 6),))
    assert found["proxy_connect_timeout"] == Setting(1500, (Position("conf.d/app.conf", 10),))
    assert found["upstream_keepalive"] == Setting(16, (Position("conf.d/app.conf", 3),))
    assert found["max_fails"] == Setting(0, (Position("conf.d/app.conf", 2),))
    assert found["listen_backlog"] == Setting(300, (Position("conf.d/app.conf", 6),))


@pytest.mark.parametrize(
    ("said", "upstream", "kept", "closes", "requests"),
    [
        ("nginx version: nginx/1.18.0 (Ubuntu)", "app", 0, "close", 100),
        ("nginx version: nginx/1.26.3", "app", 0, "close", 1000),
        ("nginx version: nginx/1.29.7", "app", 32, "", 1000),
        ("nginx version: openresty/1.31.1.1", "app", 32, "", 1000),
        # Only an upstream of the file keeps connections by itself.
        ("nginx version: nginx/1.30.6", "backend:8080", 0, "", 1000),
    ],
)
def test_the_version_of_the_program_decides_its_defaults(
    said: str, upstream: str, kept: int, closes: str, requests: int
) -> None:
    text = f"""events {{ }}
http {{
    upstream app {{ server backend:8080; }}
    server {{
        listen 8080;
        location / {{ proxy_pass http://{upstream}; }}
    }}
}}
"""
    found = parse_configuration(ROLES["nginx"], f"# connlab: {said}\n{dump(text, '')}", STANDS)
    values = {name: one.value for name, one in found.settings.items()}
    assert found.version == re.sub(r".*/([0-9.]+).*", r"\1", said)
    assert (values["upstream_keepalive"], values["proxy_connection"]) == (kept, closes)
    assert values["keepalive_requests"] == requests


def test_what_no_line_says_is_the_program_s_default() -> None:
    found = nginx()
    assert found["proxy_read_timeout"] == Setting(60_000)
    assert found["fail_timeout"] == Setting(10_000)
    assert found["proxy_connection"] == Setting("close")
    assert found["reuseport"] == Setting(value=False)


@pytest.mark.parametrize(
    ("old", "new", "knob", "value"),
    [
        ("keepalive 16", "keepalive 16; keepalive_timeout 1m30s", "upstream_keepalive_timeout", 90_000),
        ("Host $host", 'Connection ""', "proxy_connection", ""),
        ("backlog=300", "reuseport", "reuseport", True),
        ("1500ms;", "2; proxy_next_upstream error http_503;", "proxy_next_upstream", "error http_503"),
        ("1500ms;", "2; proxy_http_version 1.1;", "proxy_http_version", "1.1"),
        ("listen", "keepalive_timeout 5s 10s; listen", "keepalive_timeout", 5000),
    ],
)
def test_a_value_is_read_as_the_program_reads_it(old: str, new: str, knob: str, value: object) -> None:
    assert nginx(app=APP.replace(old, new, 1))[knob].value == value


@pytest.mark.parametrize(
    ("old", "new", "knob", "why"),
    [
        ("location /", "location /a { keepalive_timeout 0; }\nlocation /", "keepalive_timeout", "the same everywhere"),
        (
            "location /",
            "location /a { proxy_pass http://app; proxy_connect_timeout 1s; }\nlocation /",
            "proxy_connect_timeout",
            "the same everywhere",
        ),
        ("keepalive 16", "server backend-1:8080", "max_fails", "the same everywhere"),
        ("Host $host", "Connection $connection", "proxy_connection", "no such value"),
    ],
)
def test_a_value_that_differs_or_depends_is_unknown(old: str, new: str, knob: str, why: str) -> None:
    found = nginx(app=APP.replace(old, new, 1))[knob]
    assert found.value is None
    assert found.where
    assert why in str(found.why)


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        (
            'unknown directive "keepalive_timout" in /etc/nginx/conf.d/app.conf:12',
            r'shop/conf.d/app.conf:12: nginx refuses it: unknown directive "keepalive_timout"; correct it',
        ),
        (
            'host not found in upstream "shop:8080" in /etc/nginx/nginx.conf:3',
            r"nginx.conf:3: nginx refuses it: host not found.*; nginx can reach backend and backend-1",
        ),
        (
            'open() "/etc/nginx/gone.conf" failed (2: No such file or directory) in /etc/nginx/nginx.conf:9',
            r"nginx.conf:9: nginx refuses it: open\(\) .*nginx sees only .*shop and what lies below it",
        ),
        (
            'mkdir() "/data/cache" failed (2: No such file or directory)',
            r"nginx.conf: .*it can write only below /tmp, /etc",
        ),
        (
            "no line begins with http { in /etc/nginx/nginx.conf:1",
            r"nginx.conf:1: .*no line begins with http {; correct it",
        ),
    ],
)
def test_what_the_program_refuses_is_one_problem_with_its_line(make: Make, said: str, problem: str) -> None:
    message = f"nginx: [warn] something\nconnlab-nginx: nginx refuses the configuration: nginx: [emerg] {said}\n"
    with pytest.raises(BadInput, match=problem) as refused:
        capacity.check_capacity(make(), InMemoryEngine(configuration_refused=message))
    assert len(refused.value.problems) == 1


@pytest.mark.parametrize(
    ("changes", "overrides", "said"),
    [
        ({"nginx.conf": "ngnx.conf"}, (), r"scenario.yaml:6: there is no configuration .*did you mean 'nginx.conf'"),
        ({"k6, nginx, backend": "k6, backend"}, (), r"nginx has a configuration, but is not on the path"),
        ({}, ("nginx.worker_connections=99",), r"--set nginx.worker_connections=99: .*, but .*nginx.conf decides it"),
        ({"nginx: {": "gateway: {"}, (), r"scenario.yaml:6: .*gateway"),
    ],
)
def test_a_scenario_that_contradicts_its_configuration_is_refused(
    make: Make, changes: Mapping[str, str], overrides: tuple[str, ...], said: str
) -> None:
    with pytest.raises(BadInput, match=said):
        make(*overrides, changes=changes)


@pytest.mark.parametrize("linked", [False, True])
def test_a_configuration_outside_the_scenario_s_folder_is_refused(make: Make, home: Path, *, linked: bool) -> None:
    file = (home / "nginx.conf").rename(home.parent / "nginx.conf")
    if linked:
        (home / "nginx.conf").symlink_to(file)
    with pytest.raises(BadInput, match=r"scenario.yaml:6: the configuration .*nginx.conf leads out of the scenario's"):
        make(changes={} if linked else {"./nginx.conf": "../nginx.conf"})


def test_nginx_finds_its_folder_and_reads_no_knob(make: Make, home: Path, tmp_path: Path) -> None:
    effective = make()
    content = build_run_file(effective, topology_of(effective), "r", Places(tmp_path), IPv4Network("198.18.0.0/24"))
    service = content["services"]["nginx"]
    assert service["environment"] == {"CONNLAB_CONFIG": "nginx.conf"}
    assert service["volumes"][1]["source"] == str(home)
    assert service["volumes"][1]["read_only"] is True
    assert any(folder.startswith("/etc/nginx:") for folder in service["tmpfs"])
    assert service["depends_on"] == {"collector-backend-1": {"condition": "service_healthy"}}
    assert content["services"]["collector-backend-1"]["networks"]["lab"]["aliases"] == ["backend-1", "backend"]


def with_image(make: Make) -> ResolvedScenario:
    return make(changes={"config: ./nginx.conf": 'image: "acme/nginx:1.29", config: ./nginx.conf'})


@pytest.mark.parametrize(
    ("command", "stderr", "message"),
    [
        ("pull *", "Error: pull access denied", "nginx:1.29 of nginx is not here, and cannot be pulled"),
        (
            "buildx build *",
            "#9 0.1 connlab-nginx: the image has no nginx\nERROR: failed to solve",
            "acme/nginx:1.29: the image has no nginx; name another image",
        ),
    ],
)
def test_an_image_that_cannot_run_the_configuration_is_said_with_its_line(
    make: Make, fake_docker: InMemoryDocker, command: str, stderr: str, message: str
) -> None:
    if command.startswith("pull"):
        fake_docker.says("image inspect * acme/nginx:1.29", stderr="No such image", exit_code=1)
    fake_docker.says("image ls *", IMAGES)
    fake_docker.says(command, stderr=stderr, exit_code=1)
    with pytest.raises(BadInput) as refused:
        images.service_image_ids(with_image(make))
    assert "scenario.yaml:6: " in str(refused.value)
    assert message in str(refused.value)


def test_the_lab_says_what_it_adds_and_which_knobs_are_the_file_s_own(make: Make) -> None:
    effective = make()
    found = capacity.check_capacity(effective, InMemoryEngine(configuration=dump()))
    said = "\n".join(user_files.describe_configurations(effective, found))
    assert "    access_log /raw/access.jsonl connlab;" in said
    assert "A comment" not in said
    assert "    nginx.proxy_connect_timeout: 1500ms (conf.d/app.conf:10)" in said
    assert "    nginx.send_timeout: 1m (default)" in said


def test_connections_that_a_process_may_not_open_are_refused_by_the_value_found(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = InMemoryEngine(configuration=dump(NGINX.replace("1024", "900000")))
    monkeypatch.setattr(engine, "open_files_cap", lambda: 20_000)
    with pytest.raises(BadInput, match=r"nginx.worker_connections = 900,000 needs about"):
        capacity.check_capacity(make(), engine)


def test_a_series_knows_a_configuration_by_its_text(make: Make) -> None:
    effective = make()
    found = [
        capacity.check_capacity(effective, InMemoryEngine(configuration=text)).values()
        for text in (dump(), dump(app=APP.replace("1500ms", "1501ms")))
    ]
    one, other = (store.add_own_files("plan", [each.text for each in texts], []) for texts in found)
    assert len({"plan", one, other}) == 3
    assert store.add_own_files("plan", [], [effective]) == "plan"


def test_the_manifest_has_what_was_found_in_place_of_knobs(make: Make, elsewhere: Path) -> None:
    assert elsewhere.is_dir()
    app = APP.replace(" backlog=300", "").replace("location /", "location /a { keepalive_timeout 0; }\nlocation /")
    at_once = make(changes={"predictions:": "drain: 0s\npredictions:"})
    folder = run(at_once, InMemoryEngine(configuration=dump(app=app)), ["connlab", "run"], Console(stderr=True))
    knobs = json.loads((folder / "manifest.json").read_bytes())["knobs"]
    assert knobs["nginx.proxy_connect_timeout"] == {
        "value": 1500,
        "default": 60_000,
        "source": "file",
        "read_back": 1500,
        "unit": "ms",
        "where": ["conf.d/app.conf:11"],
    }
    assert knobs["nginx.listen_backlog"]["value"] == 511
    assert "nginx.keepalive_timeout" not in knobs
    assert knobs["nginx.addresses"]["source"] == "default"


def test_a_listener_that_is_not_as_the_file_says_stops_the_run(make: Make, elsewhere: Path) -> None:
    assert elsewhere.is_dir()
    with pytest.raises(LabError, match=r"nginx.listen_backlog on nginx: the listen queue's limit should be 300, and"):
        run(make(), InMemoryEngine(configuration=dump()), ["connlab", "run"], Console(stderr=True))


def test_advice_on_a_knob_of_the_file_names_its_line() -> None:
    knob = Knob(value=1024, source="file", where=["nginx.conf:3"])
    manifest = as_manifest(make_manifest())
    manifest.knobs["nginx.worker_connections"] = knob
    found = rerun_command(manifest, {"nginx.worker_connections": "2048"})
    assert found.command is None
    assert "nginx.worker_connections: change it there (nginx.conf:3)" in str(found.instead)


def test_a_prediction_about_a_knob_that_the_file_leaves_open_is_unknown() -> None:
    roles = {"nginx": ROLES["nginx"]}
    with pytest.raises(UnknownFigure, match="keepalive_timeout: the scenario's own script or configuration leaves it"):
        Scope(roles, {}, frozenset()).kind_of("nginx.keepalive_timeout")


HAPROXY = """\
global
    maxconn 4000
defaults
    mode http
    timeout connect 1500ms
    timeout client 30s
    timeout server 20000
    default-server maxconn 200
frontend web
    # connlab: begin
    http-request set-var(sess.requests) int(1)
    # connlab: end
    bind *:8080
    default_backend app
    # connlab: begin
    log fd@3 format raw daemon info
    # connlab: end
backend app
    http-reuse always
    server one backend-1:8080 pool-max-conn 7
    # connlab: begin
    log fd@4 format iso daemon err
    # connlab: end
"""
BEHIND = (paths.ROOT / "haproxy/before.cfg").read_text()


def sections(text: str = HAPROXY) -> ParsedConfiguration:
    whole = f"# configuration file /etc/haproxy/haproxy.cfg:\n{text}{BEHIND}"
    return parse_configuration(ROLES["haproxy"], whole, STANDS)


def in_haproxy(old: str, new: str) -> ParsedConfiguration:
    assert old in HAPROXY
    return sections(HAPROXY.replace(old, new, 1))


def test_values_of_sections_are_found_with_the_lines_of_the_user_s_file() -> None:
    found = sections().settings
    assert found["timeout_connect"] == Setting(1500, (Position("haproxy.cfg", 5),))
    assert found["timeout_server"] == Setting(20_000, (Position("haproxy.cfg", 7),))
    assert found["maxconn"] == Setting(4000, (Position("haproxy.cfg", 2),))
    assert found["http_reuse"] == Setting("always", (Position("haproxy.cfg", 13),))
    assert found["server_maxconn"] == Setting(200, (Position("haproxy.cfg", 8),))
    assert found["pool_max_conn"] == Setting(7, (Position("haproxy.cfg", 14),))
    assert found["retries"] == Setting(3)
    assert found["tls"] == Setting(value=False)
    assert sections().faults == []


def test_what_the_lab_adds_to_sections_is_told_apart() -> None:
    found = sections()
    assert [line.strip() for line in found.added] == [
        "http-request set-var(sess.requests) int(1)",
        "log fd@3 format raw daemon info",
        "log fd@4 format iso daemon err",
        "global",
        "hard-stop-after 5s",
        "no strict-limits",
    ]
    assert found.called == {"traffic": "web", "servers": "app"}


@pytest.mark.parametrize(
    ("old", "new", "knob", "value"),
    [
        ("bind *:8080", "bind *:8080 backlog 300", "backlog", 300),
        ("bind *:8080", "bind *:8080\n backlog 200", "backlog", 200),
        ("bind *:8080", "bind *:8080\n maxconn 100", "maxconn", 100),
        ("bind *:8080", "bind *:8080\n maxconn 9000", "maxconn", 4000),
        ("bind *:8080", "bind *:8080 maxconn 70\n maxconn 90", "maxconn", 70),
        ("maxconn 4000", "nbthread 2", "nbthread", 2),
        ("timeout client 30s", "timeout client 30s\n timeout http-request 4s", "timeout_http_keep_alive", 4000),
        ("timeout server", "timeout queue 9s\n timeout server", "timeout_queue", 9000),
        ("http-reuse always", "retries 1\n default-server maxconn 5", "server_maxconn", 5),
    ],
)
def test_a_section_s_value_is_found_as_the_program_finds_it(old: str, new: str, knob: str, value: object) -> None:
    assert in_haproxy(old, new).settings[knob].value == value


def test_whoever_raises_haproxy_s_limit_is_told_of_each_line_that_bounds_it() -> None:
    found = in_haproxy("bind *:8080", "bind *:8080\n maxconn 100").settings["maxconn"]
    assert found == Setting(100, (Position("haproxy.cfg", 11), Position("haproxy.cfg", 2)))


@pytest.mark.parametrize(
    ("old", "new", "knob"),
    [
        ("maxconn 4000", "log stdout local0", "maxconn"),
        ("maxconn 4000", "log stdout local0", "backlog"),
        ("maxconn 4000", "log stdout local0", "nbthread"),
        ("    timeout client 30s\n", "", "timeout_client"),
        ("maxconn 4000", 'maxconn "${MAX}"', "maxconn"),
        ("pool-max-conn 7", "pool-max-conn 7\n server two backend-1:8080", "pool_max_conn"),
    ],
)
def test_a_section_s_value_that_no_line_tells_is_unknown(old: str, new: str, knob: str) -> None:
    assert in_haproxy(old, new).settings[knob].value is None


def test_the_pages_of_a_run_have_the_rows_of_the_file_s_own_sections(tmp_path: Path, elsewhere: Path) -> None:
    assert elsewhere.is_dir()
    home = tmp_path / "shop"
    home.mkdir()
    (home / "haproxy.cfg").write_text(HAPROXY)
    text = OWN.replace("nginx", "haproxy").replace("haproxy.conf", "haproxy.cfg")
    (home / places.FILE).write_text(text.replace("predictions:", "drain: 0s\npredictions:"))
    whole = f"# configuration file /etc/haproxy/haproxy.cfg:\n{HAPROXY.replace('maxconn 4000', 'maxconn 2000')}{BEHIND}"
    folder = run(resolve(str(home)), InMemoryEngine(configuration=whole), ["connlab", "run"], Console(stderr=True))
    values = json.loads((folder / "manifest.json").read_bytes())["roles"]["haproxy"]["scrape"]["haproxy"]["values"]
    assert values["clients"]["at"] == "web/FRONTEND/scur"
    assert values["requests"]["minus"] == "web/FRONTEND/ereq"
    assert values["queued"]["at"] == "app/BACKEND/qcur"
    assert ROLES["haproxy"].scrape["haproxy"].values["clients"].at == "traffic/FRONTEND/scur"


@pytest.mark.parametrize(
    ("said", "what", "place"),
    [
        ("parsing [haproxy.cfg:11] : unknown keyword 'maxcon'.", "unknown keyword 'maxcon'", "haproxy.cfg:11"),
        ("[haproxy.cfg:26] : 'server app/one' : could not resolve address 'shop'.", "'server app/one' : could", ":26"),
        ("Proxy 'web': unable to find required default_backend: 'ap'.", "Proxy 'web': unable to find", ""),
    ],
)
def test_what_sections_are_refused_for_has_its_line(said: str, what: str, place: str) -> None:
    own = ROLES["haproxy"].own
    assert own is not None
    match = re.search(f"{own.refusal}$", f"[ALERT]    (14) : config : {said}")
    assert match is not None
    assert match["what"].startswith(what)
    assert f"{match['file']}:{match['line']}".endswith(place)


def test_a_scenario_is_shown_with_the_file_in_place_of_its_knobs(make: Make, home: Path) -> None:
    console = Console(width=200, record=True, file=io.StringIO())
    (home / "nginx.conf").write_text(f"user www-data; {(home / 'nginx.conf').read_text()}")
    listing.print_details(console, listing.describe(make()))
    shown = console.export_text()
    assert "nginx runs ./nginx.conf, which says its knobs" in shown
    assert "left out: user www-data; it runs as an unprivileged user (nginx.conf:1)" in shown
    assert "nginx.worker_connections" not in shown
    assert "nginx.addresses" in shown


def test_what_the_reader_cannot_read_is_refused_and_not_passed_over() -> None:
    found = parse_configuration(ROLES["nginx"], dump(app=f"{APP}}}\n"), STANDS)
    [fault] = found.faults
    assert "the lab cannot read it" in fault.what
    assert fault.where == Position("conf.d/app.conf", 13)


@pytest.mark.parametrize(
    ("old", "new", "checks"),
    [
        ("maxconn 200", "maxconn 200", None),
        ("pool-max-conn 7", "check", Checks(servers=1, every_ms=2000)),
        (
            "pool-max-conn 7",
            "check fastinter 200\n server two backend-1:8080",
            Checks(servers=1, every_ms=200),
        ),
        ("maxconn 200", "check inter 3s\nbackend b\n server x backend-1:8080", Checks(servers=2, every_ms=3000)),
    ],
)
def test_health_checks_are_known_by_their_servers_and_interval(old: str, new: str, checks: Checks | None) -> None:
    assert in_haproxy(old, new).checks == checks


def test_the_lines_by_which_a_proxy_answers_itself_are_known_with_their_places() -> None:
    limits = "location / {\n        limit_req zone=api burst=10;\n        deny 10.0.0.0/8;"
    app = APP.replace("location / {", limits) + "server {\n    listen 9090;\n    return 404;\n}\n"
    rules = parse_configuration(ROLES["nginx"], dump(app=app), STANDS).rules
    assert [(one.text, one.where) for one in rules] == [
        ("limit_req zone=api burst=10", "conf.d/app.conf:8"), ("deny 10.0.0.0/8", "conf.d/app.conf:9")
    ]  # fmt: skip
    (rule,) = in_haproxy("http-reuse always", "http-request deny deny_status 429 if { path /x }").rules
    assert rule.text == "http-request deny deny_status 429 if { path /x }"
