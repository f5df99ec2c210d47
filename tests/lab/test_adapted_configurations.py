"""A user's nginx or HAProxy file becomes a copy that runs here: each feature as it stands in real files."""

import re
from pathlib import Path
from typing import Any

import pytest

from formats.role import Role
from lab import paths
from lab.engines.compose import images
from lab.engines.container_settings import settable_sysctls
from lab.errors import BadInput
from lab.roles.configurations import adapt
from lab.roles.configurations.parsed import Adaptation, Surroundings, WantedEntry
from lab.roles.declared_roles import ROLES
from lab.scenarios import places
from lab.scenarios.configuration_files import find_sources
from lab.scenarios.load_url import parse_url
from lab.scenarios.model import ConfigurationFile
from lab.scenarios.own_configuration import adaptation_faults, find_configuration
from lab.scenarios.resolve import resolve
from lab.scenarios.topology import topology_of
from tests.lab.support import MINIMAL

WHOLE = "events { }\nhttp {\n%s\n}\n"
SERVER = "server {\n    listen 80;\n    location / { proxy_pass http://app:3000; }\n}\n"
HAPROXY = """\
global
    maxconn 4000
defaults
    mode http
    timeout connect 5s
frontend web
    bind *:80
    default_backend app
backend app
    server one 10.0.0.7:8080
"""


def adapted(folder: Path, program: Role, text: str, **more: object) -> Adaptation:
    """Adapt a configuration of one file, with one instance of the next role behind it."""
    name = "nginx.conf" if program.group == "nginx" else "haproxy.cfg"
    (folder / name).write_text(text)
    fields: dict[str, object] = {"behind": ("backend:8080", "backend-1:8080"), "role": "backend"}
    assert program.own is not None
    around = Surroundings(**{**fields, "writable": program.own.writable, **more})  # type: ignore[arg-type]
    sources = find_sources(folder, ConfigurationFile(config=name), program)
    assert sources is not None
    return adapt(program, sources, around)


def nginx(folder: Path, text: str, **more: object) -> Adaptation:
    return adapted(folder, ROLES["nginx"], WHOLE % text, **more)


def haproxy(folder: Path, old: str = "", new: str = "", **more: object) -> Adaptation:
    assert old in HAPROXY
    return adapted(folder, ROLES["haproxy"], HAPROXY.replace(old, new, 1), **more)


def copy_of(found: Adaptation) -> str:
    [text] = found.files.values()
    return text


@pytest.mark.parametrize(
    ("listens", "port", "tls"),
    [
        ("listen 80;", 80, False),
        ("listen [::]:80; listen 80 default_server reuseport;", 80, False),
        ("listen 443 ssl; ssl_certificate a.pem; ssl_certificate_key a.key;", 443, True),
        ("listen 8443 ssl http2;", 8443, True),
        ("listen 9000; listen 8080;", 8080, False),
        ("listen 443 ssl; listen 80;", 80, False),
        ("listen 127.0.0.1:9; listen 81;", 81, False),
        ("listen 10.0.0.5:82;", 82, False),
        ("listen [::]:83 ipv6only=on;", 83, False),
        ("", 80, False),
    ],
)
def test_the_load_comes_to_the_port_that_the_file_names(tmp_path: Path, listens: str, port: int, *, tls: bool) -> None:
    found = nginx(tmp_path, SERVER.replace("listen 80;", listens))
    assert found.faults == []
    assert found.entry is not None
    assert (found.entry.port, found.entry.tls) == (port, tls)


def test_a_server_that_leads_on_goes_before_one_that_redirects(tmp_path: Path) -> None:
    redirect = "server { listen 80; return 301 https://$host$request_uri; }\n"
    found = nginx(tmp_path, redirect + SERVER.replace("listen 80;", "listen 443 ssl;"))
    assert found.entry is not None
    assert found.entry.port == 443
    assert adapt_port(tmp_path, 80) == 80


def adapt_port(folder: Path, port: int) -> int | None:
    sources = find_sources(folder, ConfigurationFile(config="nginx.conf"), ROLES["nginx"])
    assert sources is not None
    entry = adapt(ROLES["nginx"], sources, Surroundings(behind=("backend:8080",), wanted=WantedEntry(port))).entry
    return entry.port if entry else None


@pytest.mark.parametrize(
    ("names", "host"),
    [
        ("shop.example", "shop.example"),
        ("*.shop.example", "www.shop.example"),
        ("_ ~^x$ .shop.example", "shop.example"),
        ("localhost", None),
    ],
)
def test_clients_ask_for_the_name_of_a_server_that_is_not_the_default(
    tmp_path: Path, names: str, host: str | None
) -> None:
    other = "server { listen 80 default_server; return 444; }\n"
    found = nginx(tmp_path, other + SERVER.replace("listen 80;", f"listen 80; server_name {names};"))
    assert found.entry is not None
    assert found.entry.host == host
    assert nginx(tmp_path, SERVER.replace("listen 80;", f"listen 80; server_name {names};")).entry.host is None  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("written", "runs", "said"),
    [
        ("listen 80; listen [fd00::5]:80;", "listen 80; \n", "left out: listen [fd00::5]:80"),
        ("listen [2001:db8::5]:80;", "listen [::]:80;", "the container has an IPv6 address of its own"),
        ("listen 10.0.0.5:80 backlog=9;", "listen 80 backlog=9;", "is listen 80 backlog=9"),
        ("listen 80; listen unix:/run/a.sock;", "listen 80; \n", "left out: listen unix:/run/a.sock"),
        ("listen 80; listen 443 quic;", "listen 80; \n", "left out: listen 443 quic; no load here speaks HTTP/3"),
        ("listen 80 proxy_protocol;", "listen 80;", "no PROXY line"),
        ("listen 80; access_log off;", "listen 80; access_log /raw/access.jsonl connlab buffer=64k flush=1s;", "off"),
        (
            "listen 80; access_log /var/log/nginx/a.log;",
            "access_log /var/log/nginx/a.log; access_log /raw/access.jsonl connlab buffer=64k flush=1s;",
            "the lab's log of requests",
        ),
        (
            "listen 80; error_log /srv/logs/e.log warn;",
            "error_log /tmp/srv-logs-e.log warn; error_log /raw/error.log notice;",
            "error_log /srv/logs/e.log is /tmp/srv-logs-e.log",
        ),
        ("listen 80; limit_rate 9k;", "limit_rate $connlab_rate_1;", "limit_rate 9k is a variable of this value"),
        ("listen 80; ssl_dhparam gone.pem;", "listen 80; \n", "left out: ssl_dhparam gone.pem"),
        ("listen 80; include /etc/letsencrypt/o.conf;", "listen 80; \n", "left out: include /etc/letsencrypt/o.conf"),
        ("listen 80; access_log syslog:server=log;", "listen 80; \n", "there is no syslog here"),
    ],
)
def test_what_cannot_act_here_is_left_out_of_the_copy_and_no_line_moves(
    tmp_path: Path, written: str, runs: str, said: str
) -> None:
    text = SERVER.replace("listen 80;", written)
    found = nginx(tmp_path, text)
    assert found.faults == []
    assert runs in copy_of(found)
    assert any(said in str(one) for one in found.changes)
    assert copy_of(found).count("\n") == (WHOLE % text).count("\n")
    assert "(nginx.conf:4)" in " ".join(map(str, found.changes))


@pytest.mark.parametrize("listen", ["listen 80; listen [::]:80;", "listen [::]:80 ipv6only=off;"])
def test_a_socket_of_ipv6_stays_where_one_of_ipv4_is_beside_or_it_is_for_both(tmp_path: Path, listen: str) -> None:
    text = SERVER.replace("listen 80;", listen)
    assert listen in copy_of(nginx(tmp_path, text))
    assert "[::]" not in copy_of(nginx(tmp_path, text, ipv6=False))


@pytest.mark.parametrize(
    ("check", "runs"),
    [
        ("option httpchk", "option httpchk GET /api/delay"),
        ("option httpchk /up", "option httpchk /api/delay"),
        ("option httpchk HEAD /up HTTP/1.1", "option httpchk HEAD /api/delay HTTP/1.1"),
        ("option httpchk OPTIONS /primary", "option httpchk GET /api/delay"),
        ("http-check send meth GET uri /up ver HTTP/1.1", "http-check send meth GET uri /api/delay ver HTTP/1.1"),
        ("http-check expect string ok", "# left out: http-check expect string ok"),
        ("http-check expect status 200", "http-check expect status 200"),
        ("tcp-check expect string role:master", "# left out: tcp-check"),
        ("option pgsql-check user postgres", "# left out: option pgsql-check"),
    ],
)
def test_health_checks_ask_for_what_the_lab_s_own_server_has(tmp_path: Path, check: str, runs: str) -> None:
    text = f"{check}\n    server one"
    assert runs in copy_of(haproxy(tmp_path, "server one", text, page="/api/delay"))
    assert check in copy_of(haproxy(tmp_path, "server one", text, own_service=True, role="app"))


IPV6, IPV4 = WantedEntry(family="ipv6"), WantedEntry(family="ipv4")


@pytest.mark.parametrize(
    ("listens", "wanted", "ipv6", "stays"),
    [
        ("listen [::]:80;", WantedEntry(), True, True),
        ("listen [::]:80;", IPV4, False, False),
        ("listen [::]:80 ipv6only=off;", WantedEntry(), False, True),
        ("listen 80; listen [::]:80;", WantedEntry(), False, True),
        ("listen 80; listen [::]:80;", IPV6, True, True),
        ("listen 80; listen [2001:db8::5]:80;", IPV6, True, True),
    ],
)
def test_clients_come_over_ipv6_where_nothing_else_listens_or_the_scenario_says_so(
    tmp_path: Path, listens: str, wanted: WantedEntry, *, ipv6: bool, stays: bool
) -> None:
    found = nginx(tmp_path, SERVER.replace("listen 80;", listens), wanted=wanted)
    assert found.faults == []
    assert found.entry is not None
    assert found.entry.ipv6 == ipv6
    assert ("listen [::]:80" in copy_of(found)) == stays


def test_a_bind_line_of_ipv6_alone_takes_no_client_of_ipv4(tmp_path: Path) -> None:
    entries = {
        line: haproxy(tmp_path, "bind *:80", f"bind {line}").entry for line in (":::80 v6only", ":::80", "fd00::5:80")
    }
    assert {line: entry.ipv6 for line, entry in entries.items() if entry} == {
        ":::80 v6only": True,
        ":::80": False,
        "fd00::5:80": True,
    }


def test_files_that_nginx_is_to_answer_with_and_that_are_not_here_are_named(tmp_path: Path) -> None:
    found = nginx(tmp_path, "server { listen 80; root /srv/shop/public; }", behind=(), role=None)
    assert [str(one) for one in found.changes] == [
        "root /srv/shop/public: the folder is not here, and nginx answers 404 for what is in it (nginx.conf:3)"
    ]


def test_nginx_does_not_look_for_files_of_the_server_behind_it_that_are_not_here(tmp_path: Path) -> None:
    text = """server { listen 80; root /var/www/html;
    location ~ \\.php$ { try_files $fastcgi_script_name =404; fastcgi_pass app:9000; }
    location / { try_files $uri /index.php$request_uri; }
}"""
    php = {"behind": ("php:9000",), "role": "php", "own_service": True}
    found = nginx(tmp_path, text, **php)
    assert found.faults == []
    assert "try_files $fastcgi_script_name" not in copy_of(found)
    assert "try_files $uri /index.php" in copy_of(found)
    assert "root /var/www/html is not here; the server behind says what there is" in str(found.changes)
    # Where the pages are beside the file, nginx finds them.
    (tmp_path / "html").mkdir()
    own = nginx(tmp_path, text.replace("/var/www/html", "/etc/nginx/html"), **php)
    assert "left out" not in str(own.changes)


def test_servers_that_no_load_reaches_do_not_hinder_a_path_that_ends_at_haproxy(tmp_path: Path) -> None:
    text = "default_backend app\nbackend app\n    server one 10.0.0.7:8080\n"
    beside = "\nbackend app\n    server one app:8080 check\n    server two 10.0.0.7:8080 ssl verify none\n"
    found = haproxy(tmp_path, text, beside, behind=(), role=None)
    assert found.faults == []
    assert "server one 127.0.0.1:9 check" in copy_of(found)
    assert "server two 10.0.0.7:8080 ssl verify none" in copy_of(found)


TWO_SERVERS = """\
server { listen 80 default_server; listen 443 ssl; return 301 https://shop.example$request_uri; }
server { listen 443 ssl; server_name *.example; ssl_certificate a.pem; ssl_certificate_key a.key;
    location / { proxy_pass http://app:3000; } }
"""


@pytest.mark.parametrize(
    ("url", "line"), [("https://shop.example/", 4), ("https://other.test/", 3), ("http://shop.example/", 3)]
)
def test_a_url_leads_to_the_server_that_nginx_gives_it_to(tmp_path: Path, url: str, line: int) -> None:
    parts = parse_url(url)
    found = nginx(tmp_path, TWO_SERVERS, wanted=WantedEntry(parts.port, parts.tls, parts.host, url=url))
    assert found.entry is not None
    assert (found.entry.port, found.entry.tls, found.entry.host) == (parts.port, parts.tls, parts.host)
    assert found.entry.where is not None
    assert found.entry.where.line == line


@pytest.mark.parametrize(
    ("program", "hint"),
    [("nginx", "it listens on 80 (nginx.conf:4)"), ("haproxy", "it listens on *:80 (haproxy.cfg:7)")],
)
def test_a_url_that_leads_to_no_listener_is_refused_with_those_that_there_are(
    tmp_path: Path, program: str, hint: str
) -> None:
    wanted = WantedEntry(443, tls=True, host="shop.example", url="https://shop.example/")
    found = nginx(tmp_path, SERVER, wanted=wanted) if program == "nginx" else haproxy(tmp_path, wanted=wanted)
    [fault] = found.faults
    assert "listens on port 443, where https://shop.example/ leads with TLS" in fault.what
    assert fault.hint == f"{hint}: name one of these"


@pytest.mark.parametrize("bind", ["bind *:80\n    bind :::80 v6only", "bind :::80 v4v6"])
def test_a_bind_line_of_ipv6_stays_likewise(tmp_path: Path, bind: str) -> None:
    assert bind in copy_of(haproxy(tmp_path, "bind *:80", bind))
    assert ":::" not in copy_of(haproxy(tmp_path, "bind *:80", bind, ipv6=False)).replace("# left out: bind :::", "")


@pytest.mark.parametrize(
    ("bind", "copied"),
    [
        ("mptcp@:80", "bind :80"),
        ("mptcp4@*:80", "bind ipv4@*:80"),
        ("mptcp6@:80 v6only", "bind ipv6@:80 v6only"),
        ("tcp4@:80", "bind tcp4@:80"),
    ],
)
def test_a_kind_of_socket_in_front_of_an_address_is_no_name_of_a_host(tmp_path: Path, bind: str, copied: str) -> None:
    found = haproxy(tmp_path, "bind *:80", f"bind {bind}")
    assert found.faults == []
    assert found.entry is not None
    assert (found.entry.port, found.entry.ipv6) == (80, "6" in bind)
    assert f"{copied}\n" in copy_of(found)
    assert ("not Multipath TCP" in str(found.changes)) == ("mptcp" in bind)


def test_a_server_for_programs_of_the_same_machine_is_opened_if_there_is_no_other(tmp_path: Path) -> None:
    alone = SERVER.replace("listen 80;", "listen 127.0.0.1:80;")
    found = nginx(tmp_path, alone)
    assert found.entry is not None
    assert found.entry.port == 80
    assert "listen 80;" in copy_of(found)
    assert "127.0.0.1:80" in copy_of(nginx(tmp_path, alone + SERVER.replace("80", "81")))


def test_stream_is_left_out_beside_http_and_no_line_moves(tmp_path: Path) -> None:
    text = 'stream {\n    server { listen 5432; set $a "}"; proxy_pass db:5432; } # }\n}\n' + WHOLE % SERVER
    found = adapted(tmp_path, ROLES["nginx"], text)
    assert found.faults == []
    assert "5432" not in copy_of(found)
    assert copy_of(found).count("\n") == text.count("\n")
    assert "left out: stream { }" in str(found.changes[0])


@pytest.mark.parametrize("line", ["user www-data;", "daemon on;", "master_process off;", "load_module modules/x.so;"])
def test_a_directive_of_the_process_is_left_out(tmp_path: Path, line: str) -> None:
    found = adapted(tmp_path, ROLES["nginx"], f"{line}\n{WHOLE % SERVER}")
    assert found.faults == []
    assert line not in copy_of(found)
    assert f"left out: {line.removesuffix(';')}" in str(found.changes[0])


def test_a_module_stays_where_the_image_is_the_user_s(tmp_path: Path) -> None:
    found = adapted(tmp_path, ROLES["nginx"], f"load_module modules/x.so;\n{WHOLE % SERVER}", own_image=True)
    assert "load_module" not in str([*found.changes, *found.faults])


@pytest.mark.parametrize(
    ("path", "runs"),
    [("/run/a.pid", "/run/a.pid;"), ("logs/a.pid", "-share-nginx-logs-a.pid;")],
)
def test_a_file_that_nginx_writes_lies_where_it_may(tmp_path: Path, path: str, runs: str) -> None:
    found = adapted(tmp_path, ROLES["nginx"], f"pid {path};\n{WHOLE % SERVER}")
    assert runs in copy_of(found)


def test_a_limit_in_http_takes_the_place_of_the_lab_s(tmp_path: Path) -> None:
    found = nginx(tmp_path, f"limit_rate 9k;\n{SERVER}")
    assert "limit_rate" not in copy_of(found)
    assert found.added == "map $sent_http_connection $connlab_no_limit { default 9k; }"


@pytest.mark.parametrize(
    ("upstream", "target", "runs"),
    [
        ("", "http://app:3000", "proxy_pass http://backend:8080;"),
        ("upstream a { server app:3000; } split_clients $uri $to { 5% a; * a; }", "http://$to", "server backend:8080;"),
        ("", "http://app", "proxy_pass http://backend:8080;"),
        ("", "http://10.0.0.7:8080/api/", "proxy_pass http://backend:8080/api/;"),
        ("", "http://127.0.0.1:5000", "proxy_pass http://backend:8080;"),
        ("", "http://unix:/run/app.sock", "proxy_pass http://backend:8080;"),
        ("", "https://app", "proxy_pass http://backend:8080;"),
        ("upstream a { server app:3000 weight=5; }", "http://a", "server backend:8080 weight=5;"),
        ("upstream a { server unix:/run/app.sock; }", "http://a", "server backend:8080;"),
        ("upstream a { server app resolve; }", "http://a", "server backend:8080;"),
        ("map $host $to { default app:3000; }", "http://$to", "proxy_pass http://backend:8080;"),
    ],
)
def test_one_server_of_the_file_stands_for_the_next_role(tmp_path: Path, upstream: str, target: str, runs: str) -> None:
    found = nginx(tmp_path, upstream + "\n" + SERVER.replace("http://app:3000", target))
    assert found.faults == []
    assert runs in copy_of(found)


def test_a_variable_that_is_set_once_has_its_value(tmp_path: Path) -> None:
    server = SERVER.replace("proxy_pass http://app:3000", "set $to app; proxy_pass http://$to:3000$request_uri")
    found = nginx(tmp_path, f"resolver 127.0.0.11;\n{server}")
    assert "proxy_pass http://backend:8080$request_uri;" in copy_of(found)


@pytest.mark.parametrize(
    "pass_",
    [
        'set $to http://one; if ($http_accept = json) { set $to "http://two"; } proxy_pass $to;',
        'set $more ""; if ($args) { set $more ?$query_string; } proxy_pass http://one$more;',
    ],
)
def test_a_variable_of_several_values_may_name_upstreams_of_the_file(tmp_path: Path, pass_: str) -> None:
    groups = "upstream one { server a:1; }\nupstream two { server b:2; }\n"
    text = groups + SERVER.replace("proxy_pass http://app:3000;", pass_)
    found = nginx(tmp_path, text, hosts={"a": "backend:8080", "b": "backend:8080"})
    assert found.faults == []
    assert pass_ in copy_of(found)
    assert copy_of(found).count("server backend:8080;") == 2


def test_a_place_that_a_server_s_answer_names_is_left_to_nginx(tmp_path: Path) -> None:
    internal = 'location @file { set $to "$upstream_http_location"; proxy_pass $to; } location /'
    found = nginx(tmp_path, SERVER.replace("location /", internal))
    assert found.faults == []
    assert any("proxy_pass $to stays" in one.what for one in found.changes)


@pytest.mark.parametrize(
    ("old", "new", "names"),
    [
        ("http://app:3000", "$APP_URI/api", "{APP_URI: …}"),
        ("http://app:3000", "http://${APP_HOST}:$APP_PORT", "{APP_HOST: …, APP_PORT: …}"),
        ("80;", "${PORT};", "{PORT: …}"),
    ],
)
def test_a_variable_of_the_environment_without_a_value_is_asked_for(
    tmp_path: Path, old: str, new: str, names: str
) -> None:
    [fault, *_] = nginx(tmp_path, SERVER.replace(old, new)).faults
    assert "has a variable without a value" in fault.what
    assert f"environment: {names}" in fault.hint


def test_several_servers_without_a_value_are_asked_for(tmp_path: Path) -> None:
    groups = "upstream a { server ${APP} fail_timeout=0; }\nupstream b { server ${WEB}; }\n"
    text = groups + SERVER.replace("app:3000; }", "a; } location /b { proxy_pass http://b; }")
    assert [one.hint.rpartition(": {")[2] for one in nginx(tmp_path, text).faults] == ["APP: …}}", "WEB: …}}"]


def test_a_server_that_only_the_next_role_can_be_needs_no_value(tmp_path: Path) -> None:
    text = "upstream app { server ${APP}; }\n" + SERVER.replace("app:3000", "app")
    found = nginx(tmp_path, text)
    assert found.faults == []
    assert "server backend:8080;" in copy_of(found)


def test_a_certificate_is_made_for_a_server_that_names_none(tmp_path: Path) -> None:
    found = nginx(tmp_path, SERVER.replace("80;", "443 ssl; server_name shop.example;"))
    [(path, names)] = found.certificates.items()
    assert names == ("shop.example",)
    assert found.added == f"ssl_certificate {path};\nssl_certificate_key {path}.key;"


def test_the_servers_of_one_upstream_are_the_instances_in_turn(tmp_path: Path) -> None:
    behind = ("backend:8080", "backend-1:8080", "backend-2:8080")
    text = "upstream a { server x:1; server y:1; server z:1 backup; }\n" + SERVER.replace("app:3000", "a")
    runs = copy_of(nginx(tmp_path, text, behind=behind))
    assert "server backend-1:8080; server backend-2:8080; server backend-1:8080 backup;" in runs


TWO = "upstream a { server x:1; }\nupstream b { server y:2; }\n" + SERVER.replace(
    "location /", "location /b { proxy_pass http://b; } location /"
).replace("app:3000", "a")


def test_servers_in_one_upstream_with_the_next_role_are_more_of_its_kind(tmp_path: Path) -> None:
    upstream = "upstream a { server web1:5000; server web2:5000; server redis:6379 backup; }\n"
    fields: dict[str, Any] = {"behind": ("web1:5000",), "role": "web1", "own_service": True, "beside": ("db:3306",)}
    found = nginx(tmp_path, upstream + SERVER.replace("app:3000", "a"), **fields)
    assert found.faults == []
    assert copy_of(found).count("server web1:5000") == 3
    # One that the scenario has beside the path is not meant by the path.
    found = nginx(tmp_path, upstream + SERVER.replace("app:3000", "a"), **fields | {"beside": ("redis:6379",)})
    assert "redis:6379" in found.faults[0].what


def test_an_upstream_s_name_that_tomcat_takes_for_no_host_is_another_in_the_copy(tmp_path: Path) -> None:
    upstream = "upstream shop_app { server app:3000; }\n"
    through = upstream + SERVER.replace("http://app:3000;", "http://shop_app/v1; %s")
    text = copy_of(nginx(tmp_path, through % "proxy_set_header X-A b;"))
    assert ("upstream shop-app {" in text, "proxy_pass http://shop-app/v1;" in text) == (True, True)
    # A Host of the file's own, and a server of the user's own, which may take any.
    for said, more in (("proxy_set_header host $host;", {}), ("", {"own_service": True})):
        assert "proxy_pass http://shop_app/v1;" in copy_of(nginx(tmp_path, through % said, **more))


def test_servers_of_several_upstreams_need_the_scenario_s_word(tmp_path: Path) -> None:
    [fault] = nginx(tmp_path, TWO).faults
    assert "x:1 (nginx.conf:3), y:2 (nginx.conf:4)" in fault.what
    assert fault.hint.endswith('hosts: {"x:1": backend, "y:2": backend}}')


@pytest.mark.parametrize("hosts", [{"x": "backend:8080", "y:2": "backend-1:8080"}, {"a": "backend-1:8080", "y": "b:1"}])
def test_hosts_map_by_host_with_or_without_port_and_by_group(tmp_path: Path, hosts: dict[str, str]) -> None:
    found = nginx(tmp_path, TWO, hosts=hosts)
    assert found.faults == []
    assert [re.findall(r"server (\S+);", copy_of(found))] == [list(hosts.values())]


BESIDE = {"beside": ("api:4000", "cache:6379")}


@pytest.mark.parametrize(
    ("hosts", "text", "what", "hint"),
    [
        (
            {"a": "backend:8080"},
            TWO.replace("y:2", "shop-api:4000"),
            "a server that hosts does not name: shop-api:4000 (nginx.conf:4); the scenario has backend:8080, api:4000",
            'hosts: {a: backend, "shop-api:4000": api}}',
        ),
        ({}, SERVER.replace("app:3000", "api:4000"), "a service beside the path: api:4000", '{"api:4000": api}'),
        ({"aa": "backend:8080"}, TWO.replace(" a ", " aaa ").replace("//a;", "//aaa;"), "'aa'", "mean 'aaa'?"),
    ],
)
def test_a_server_is_asked_for_where_several_services_may_be_meant(
    tmp_path: Path, hosts: dict[str, str], text: str, what: str, hint: str
) -> None:
    [fault] = nginx(tmp_path, text, hosts=hosts, **BESIDE).faults
    assert what in fault.what
    assert hint in fault.hint
    assert fault.where is not None


@pytest.mark.parametrize("hosts", [{"a": "backend:8080", "b": "api:4000"}, {"b": "api:4000"}])
def test_a_server_that_only_the_next_role_can_be_needs_no_word(tmp_path: Path, hosts: dict[str, str]) -> None:
    found = nginx(tmp_path, TWO, hosts=hosts, **BESIDE)
    assert found.faults == []
    assert re.search(r"\{ server backend(-1)?:8080; \}\nupstream b \{ server api:4000; \}", copy_of(found))


def test_a_word_of_hosts_that_is_in_no_file_is_said(tmp_path: Path) -> None:
    found = nginx(tmp_path, SERVER, hosts={"quite-else": "backend:8080"})
    assert found.faults == []
    assert "hosts: quite-else names no server of the file" in map(str, found.changes)


def test_a_name_that_is_nearly_an_upstream_s_is_said(tmp_path: Path) -> None:
    text = "upstream tickets_api { server y:2; }\n" + SERVER.replace("http://app:3000", "http://tickets_apis/")
    [change] = [one for one in nginx(tmp_path, text).changes if "did you mean" in one.what]
    assert str(change) == (
        "tickets_apis in proxy_pass http://tickets_apis/ is no upstream of the file; did you mean 'tickets_api'?"
        " (nginx.conf:6)"
    )


def test_servers_that_the_load_does_not_reach_need_no_word(tmp_path: Path) -> None:
    found = nginx(tmp_path, TWO.replace("http://b", "http://a"), behind=("backend:8080",))
    assert found.faults == []
    assert "upstream b { server backend:8080; }" in copy_of(found)
    other = haproxy(tmp_path, "frontend web", "backend other\n    server x db:1 check\nfrontend web")
    assert other.faults == []
    assert "server x backend-1:8080 check" in copy_of(other)


def test_a_loopback_port_that_the_file_itself_listens_on_stays(tmp_path: Path) -> None:
    inner = "server { listen 127.0.0.1:9; location / { proxy_pass http://app:3000; } }\n"
    found = nginx(tmp_path, inner + SERVER.replace("app:3000", "127.0.0.1:9"))
    assert found.faults == []
    assert "proxy_pass http://127.0.0.1:9;" in copy_of(found)


def test_certificates_that_are_not_there_are_made_for_the_server_s_names(tmp_path: Path) -> None:
    names = "server_name shop.example _ *.shop.example;"
    tls = "listen 443 ssl; ssl_certificate /etc/letsencrypt/a.pem; ssl_certificate_key /etc/letsencrypt/a.key;"
    found = nginx(tmp_path, SERVER.replace("listen 80;", f"{names} {tls}"))
    made = "/tmp/connlab-tls/etc-letsencrypt-a.pem"  # noqa: S108 # in the container
    assert found.certificates == {made: ("shop.example", "www.shop.example")}
    assert f"ssl_certificate {made}; ssl_certificate_key {made}.key;" in copy_of(found)


def test_certificates_that_are_there_stay(tmp_path: Path) -> None:
    (tmp_path / "a.pem").touch()
    tls = "listen 443 ssl; ssl_certificate a.pem; ssl_certificate_key /etc/nginx/a.pem;"
    assert nginx(tmp_path, SERVER.replace("listen 80;", tls)).certificates == {}


def scenario(folder: Path, proxy: str, own: str, files: dict[str, str]) -> Path:
    home = folder / "shop"
    for name, text in files.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    path = f"path: [k6, {proxy}, backend]\n{proxy}: {own}"
    (home / places.FILE).write_text(MINIMAL.replace("path: [k6, backend]", path))
    return home


@pytest.mark.parametrize(
    ("own", "files"),
    [
        ("{config: ./default.conf}", {"default.conf": SERVER}),
        ("{config: ./nginx.conf}", {"nginx.conf": SERVER}),
        ("{config: ./conf.d}", {"conf.d/a.conf": SERVER}),
        ("{config: ./sites}", {"sites/a.conf": SERVER}),
        ("{config: ./nginx}", {"nginx/nginx.conf": WHOLE % "include a/*;", "nginx/a/shop": SERVER}),
        ("{config: ./templates, environment: {P: '80'}}", {"templates/a.conf.template": SERVER.replace("80", "$P")}),
        ("{config: ./a.conf.template, environment: {P: '80'}}", {"a.conf.template": SERVER.replace("80", "${P}")}),
        (
            "{config: ./nginx.conf.template, environment: {P: '80'}}",
            {
                "nginx.conf.template": WHOLE % "include /etc/nginx/conf.d/*.conf;",
                "conf.d/a.conf.template": SERVER.replace("80", "$P").replace(
                    "location /", "include b.conf; location /"
                ),
                "b.conf.template": "root /srv;",
            },
        ),
        (
            "{config: ./nginx.conf, environment: {P: '80'}}",
            {
                "nginx.conf": WHOLE % "include conf.d/*.conf;",
                "templates/a.conf.template": SERVER.replace("80", "$P"),
            },
        ),
    ],
)
def test_a_fragment_stands_in_the_nginx_that_is_shipped_and_templates_are_filled_in(
    tmp_path: Path, own: str, files: dict[str, str]
) -> None:
    resolved = resolve(str(scenario(tmp_path, "nginx", own, files)))
    topology = topology_of(resolved)
    assert topology.targets == ["http://nginx:80"]
    assert settable_sysctls(resolved, "nginx") == {"net.ipv4.ip_unprivileged_port_start": "0"}
    found = find_configuration(resolved, topology, "nginx")
    assert found is not None
    assert found.adaptation.faults == []
    assert [one for one in found.adaptation.changes if "app:3000 is http://backend:8080" in str(one)]
    assert found.settings()["CONNLAB_COPY"]


def test_the_program_that_checks_a_file_knows_a_service_beside_the_path(tmp_path: Path) -> None:
    own = "{config: ./nginx.conf, hosts: {api: api}}\nservices: {api: {image: acme/api, port: 4000}}"
    more = "location /api { proxy_pass http://api:4000; } location /"
    home = scenario(tmp_path, "nginx", own, {"nginx.conf": SERVER.replace("location /", more)})
    resolved = resolve(str(home))
    found = find_configuration(resolved, topology_of(resolved), "nginx")
    assert found is not None
    assert (found.adaptation.faults, "api" in found.hosts) == ([], True)


def test_the_image_of_a_service_that_hosts_leads_to_is_made_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = "{config: ./nginx.conf, hosts: {api: api}}\nservices: {api: {image: acme/api, port: 4000}}"
    more = "location /api { proxy_pass http://api:4000; } location /"
    home = scenario(tmp_path, "nginx", own, {"nginx.conf": SERVER.replace("location /", more)})
    monkeypatch.setattr(images, "docker", lambda *_, **__: "sha256:1")
    assert set(images.service_image_ids(resolve(str(home)))) == {"api"}


def test_variables_that_have_no_value_stay(tmp_path: Path) -> None:
    text = SERVER.replace("location /", "return 200 $host$PORT; location /")
    own = "{config: ./a.conf.template, environment: {POR: '1'}}"
    resolved = resolve(str(scenario(tmp_path, "nginx", own, {"a.conf.template": text})))
    found = find_configuration(resolved, topology_of(resolved), "nginx")
    assert found is not None
    assert "return 200 $host$PORT;" in found.sources.written["conf.d/a.conf"]


def test_the_port_of_the_lab_s_management_is_refused(tmp_path: Path) -> None:
    text = SERVER.replace("80", "8081")
    resolved = resolve(str(scenario(tmp_path, "nginx", "{config: ./a.conf}", {"a.conf": text})))
    topology = topology_of(resolved)
    own = find_configuration(resolved, topology, "nginx")
    assert own is not None
    [fault] = adaptation_faults(own, topology)
    assert "port 8081, where the lab's own management listens" in fault.what
    assert str(fault.where) == "a.conf:2"


def test_clients_reach_a_named_server_by_its_name(tmp_path: Path) -> None:
    text = "server { listen 80; return 444; }\n" + SERVER.replace("listen", "server_name shop.example; listen")
    resolved = resolve(str(scenario(tmp_path, "nginx", "{config: ./a.conf}", {"a.conf": text})))
    topology = topology_of(resolved)
    assert topology.targets == ["http://shop.example:80"]
    assert topology.host_names("nginx") == ["nginx", "shop.example"]


@pytest.mark.parametrize(
    ("own", "said"),
    [
        (
            "{config: ./a.conf, hosts: {app: db}}",
            r"yaml:6: db does not stand behind nginx; name one of backend",
        ),
        ("{config: ./a.conf, port: 0}", r"nginx.port"),
        ("{config: ./a.conf, environment: {'1': x}}", r"environment"),
        ("{config: ./gone/}", r"there is no configuration .*gone"),
    ],
)
def test_a_word_of_the_scenario_that_fits_no_file_is_refused(tmp_path: Path, own: str, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        resolve(str(scenario(tmp_path, "nginx", own, {"a.conf": SERVER})))


@pytest.mark.parametrize(
    ("old", "new", "runs", "said"),
    [
        ("maxconn 4000", "chroot /var/lib/haproxy", "# left out: chroot", "left out: chroot /var/lib/haproxy"),
        ("maxconn 4000", "user haproxy", "# left out: user", "left out: user haproxy"),
        ("maxconn 4000", "daemon", "# left out: daemon", "left out: daemon"),
        ("maxconn 4000", "nbproc 2", "# left out: nbproc", "left out: nbproc 2"),
        ("maxconn 4000", "stats socket /run/a mode 660", "# left out: stats socket", "nobody asks there"),
        ("maxconn 4000", "log /dev/log local0", "# left out: log", "there is no syslog here"),
        ("bind *:80", "bind 192.168.1.10:80 name clear", "bind *:80 name clear", "IPv4 address of its own"),
        ("bind *:80", "bind *:80\n    bind fd00::5:80", "# left out: bind fd00::5:80", "no such address"),
        ("bind *:80", "bind 2001:db8::5:80", "bind [::]:80\n", "IPv6 address of its own"),
        ("bind *:80", "bind 127.0.0.1:80", "bind *:80\n", "the load comes from another machine"),
        ("bind *:80", "bind *:80 accept-proxy", "bind *:80\n", "no PROXY line"),
        (
            "bind *:80",
            "bind *:80\n    bind /run/a.sock",
            "# left out: bind /run/a.sock",
            "no client of another machine",
        ),
        ("server one", "http-request set-log-level silent\n    server one", "# left out: http-request", "each request"),
        ("8080", "8080 check port 8008", "server one backend:8080 check\n", "the server's own port"),
        ("8080", "8080 resolvers dns init-addr none", "server one backend:8080\n", "in place of 10.0.0.7:8080"),
        ("8080", "8080 ssl verify none sni str(a)", "server one backend:8080\n", "backend takes plain HTTP"),
        ("8080", "8080 send-proxy-v2 weight 5", "server one backend:8080 weight 5\n", "knows no PROXY line"),
        ("server one 10.0.0.7:8080", "server-template s 3 app:1", "server-template s 3 backend:8080", "of app:1"),
        ("10.0.0.7:8080", "unix@/run/app.sock", "server one backend:8080", "in place of unix@/run/app.sock"),
        ("10.0.0.7:8080", "app", "server one backend:8080", "in place of app"),
        ("10.0.0.7:8080", "127.0.0.1: check", "server one backend:8080 check", "in place of 127.0.0.1:"),
    ],
)
def test_a_line_of_haproxy_runs_or_is_left_out_where_it_stands(
    tmp_path: Path, old: str, new: str, runs: str, said: str
) -> None:
    found = haproxy(tmp_path, old, new)
    assert found.faults == []
    assert runs in copy_of(found)
    assert any(said in str(one) for one in found.changes)
    assert copy_of(found).count("\n") == HAPROXY.replace(old, new, 1).count("\n")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "    server",
            "    option httpchk\n    option redispatch\n    retry-on 503\n    default-server check\n    server",
        ),
        ("frontend web", "listen stats\n    bind *:7000\n    stats enable\nfrontend web"),
        ("bind *:80", "bind :80,:443"),
    ],
)
def test_haproxy_runs_what_it_can(tmp_path: Path, old: str, new: str) -> None:
    found = haproxy(tmp_path, old, new)
    assert found.faults == []
    assert found.entry is not None
    assert found.entry.port == 80
    assert len(found.changes) == 1


def test_a_section_that_redirects_to_tls_gets_its_load_there(tmp_path: Path) -> None:
    both = "bind :80\n    bind :443 ssl crt a.pem\n    http-request redirect scheme https code 301 if !{ ssl_fc }"
    found = haproxy(tmp_path, "bind *:80", both)
    assert found.entry is not None
    assert (found.entry.port, found.entry.tls) == (443, True)


def test_a_health_check_asks_for_what_the_backend_has_whatever_page_the_load_asks_for(tmp_path: Path) -> None:
    text = HAPROXY.replace("    server", "    option httpchk GET /up\n    server", 1)
    folder = scenario(tmp_path, "haproxy", "{config: ./haproxy.cfg}", {"haproxy.cfg": text})
    resolved = resolve(str(folder), overrides=["load.path=/ws/"])
    found = find_configuration(resolved, topology_of(resolved), "haproxy")
    assert found is not None
    assert "option httpchk GET /api/delay: backend answers there" in str(found.adaptation.changes[0])


def test_tcp_mode_runs_with_connections_and_without_requests(tmp_path: Path) -> None:
    text = HAPROXY.replace("mode http", "mode tcp")
    resolved = resolve(str(scenario(tmp_path, "haproxy", "{config: ./haproxy.cfg}", {"haproxy.cfg": text})))
    found = find_configuration(resolved, topology_of(resolved), "haproxy")
    assert found is not None
    assert found.adaptation.faults == []
    assert "frontend web is in mode tcp" in str(found.adaptation.changes[0])
    assert found.settings()["CONNLAB_PORT"] == "none"
    assert resolved.roles["haproxy"].logs == {"error.log": "haproxy-errors"}


def test_haproxy_s_folder_has_the_name_of_its_official_image_too(tmp_path: Path) -> None:
    (tmp_path / "certs").mkdir()
    (tmp_path / "certs/site.pem").touch()
    found = haproxy(tmp_path, ":80", ":443 ssl crt /usr/local/etc/haproxy/certs/site.pem")
    assert found.certificates == {}


def test_a_certificate_of_haproxy_is_made(tmp_path: Path) -> None:
    found = haproxy(tmp_path, "bind *:80", "bind :443 ssl crt site.pem alpn h2")
    assert found.entry is not None
    assert found.entry.tls
    assert [*found.certificates.values()] == [()]
    assert "bind :443 ssl crt /tmp/connlab-tls/site.pem alpn h2" in copy_of(found)


@pytest.mark.parametrize(
    ("role", "text", "said"),
    [
        ("nginx", "", "it has no server"),
        ("nginx", WHOLE % "server { listen unix:/run/a; }", "it listens on unix:/run/a alone"),
        ("nginx", WHOLE % "server { listen 80; return 200; }", "no location of the server"),
        ("haproxy", "", "no frontend in it has a bind line"),
        ("haproxy", HAPROXY.replace("*:80", "/run/a"), "it listens on /run/a alone"),
    ],
)
def test_a_file_that_cannot_work_here_is_refused_with_a_way_on(tmp_path: Path, role: str, text: str, said: str) -> None:
    [fault] = adapted(tmp_path, ROLES[role], text).faults
    assert said in fault.what
    assert fault.hint
    assert fault.where is not None or not text


def test_what_the_program_itself_says_better_is_left_to_it(tmp_path: Path) -> None:
    gone = SERVER.replace("proxy_pass http://app:3000;", "include /run/app/pass;")
    assert nginx(tmp_path, gone).faults == []
    assert nginx(tmp_path, "include conf.d/gone.conf;").faults == []
    assert haproxy(tmp_path, "default_backend app", "default_backend ap").faults == []


def test_a_service_further_down_the_path_cannot_stand_behind_the_proxy_too(tmp_path: Path) -> None:
    own = "{config: ./a.conf, hosts: {app: web, x: api}}\n"
    own += "services: {web: {image: acme/web}, api: {image: acme/api, port: 4000}}"
    home = scenario(tmp_path, "nginx", own, {"a.conf": SERVER})
    file = home / places.FILE
    file.write_text(file.read_text().replace("backend]", "web, api]"))
    hint = r"path: \[k6, nginx, web\], and services: \{web: \{depends_on: \[api\]\}\} if web needs it too"
    with pytest.raises(BadInput, match=rf"api stands further down the path.*{hint}"):
        resolve(str(home))


def test_a_port_that_nothing_listens_on_is_said_before_a_file_that_is_missing(tmp_path: Path) -> None:
    text = SERVER.replace("listen 80;", "listen 80; include options-ssl.conf;")
    [fault] = nginx(tmp_path, text, wanted=WantedEntry(8443)).faults
    assert fault.what == "no server in it listens on port 8443"
    assert "it listens on 80 (nginx.conf:4)" in fault.hint


def test_an_include_that_cannot_bring_a_server_is_not_named_for_one(tmp_path: Path) -> None:
    text = f"include modules-enabled/*.conf;\n{WHOLE % 'include sites-enabled/*;'}"
    [fault] = adapted(tmp_path, ROLES["nginx"], text).faults
    assert fault.what == "it has no server, and no file is found for include sites-enabled/*"
    assert str(fault.where) == "nginx.conf:4"


def test_a_server_with_no_role_behind_the_proxy_is_refused(tmp_path: Path) -> None:
    [fault] = nginx(tmp_path, SERVER, behind=(), role=None).faults
    assert fault.what == "it proxies to app:3000, and the path ends at nginx"


@pytest.mark.parametrize("example", ["own-nginx", "own-haproxy"])
def test_the_examples_resolve(example: str) -> None:
    resolved = resolve(str(paths.ROOT / "examples" / example))
    topology = topology_of(resolved)
    for role in resolved.scenario.configurations:
        found = find_configuration(resolved, topology, role)
        assert found is not None
        assert found.adaptation.faults == []
