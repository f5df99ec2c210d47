"""What a program tells of its settings, by the names of its knobs."""

import pytest

from lab.roles.declared_roles import ROLES
from lab.roles.readback_parser import MissingSettings, parse_file, parse_page

# As `nginx -T` prints it, cut to what the knobs set.
PRINTED = """\
# configuration file /tmp/nginx/main.d/10-workers.conf:
daemon off;
worker_processes auto;
# configuration file /tmp/nginx/events.d/11-connections.conf:
worker_connections 512;  # two for each proxied request
multi_accept on;
# configuration file /tmp/nginx/http.d/20-client-keepalive.conf:
keepalive_timeout 75000ms;
keepalive_requests 1000;
keepalive_time 3600000ms;
client_header_timeout 60000ms;
client_body_timeout 60000ms;
send_timeout 60000ms;
reset_timedout_connection off;
# configuration file /tmp/nginx/http.d/40-proxy-connection.conf:
proxy_http_version 1.1;
map $http_upgrade $connlab_connection { default upgrade; "" ""; }
proxy_set_header Host $proxy_host;
proxy_connect_timeout 60000ms;
proxy_read_timeout 60000ms;
proxy_send_timeout 60000ms;
proxy_next_upstream error timeout;
proxy_next_upstream_tries 0;
# configuration file /tmp/nginx/http.d/30-upstream.conf:
upstream backend {
    server backend-1:8080 max_fails=3 fail_timeout=15s;
    include upstream.d/*.conf;
}
# configuration file /tmp/nginx/http.d/60-management.conf:
server {
    listen 127.0.0.1:8081;
    keepalive_timeout 30d;
}
# configuration file /tmp/nginx/http.d/70-traffic.conf:
server {
    listen 0.0.0.0:8080 backlog=511 reuseport;
    include traffic.d/*.conf;
}
# configuration file /tmp/nginx/traffic.d/74-http2.conf:
http2 off;
http2_max_concurrent_streams 128;
"""

POOL = """\
# configuration file /tmp/nginx/upstream.d/31-keepalive.conf:
keepalive 32;
keepalive_timeout 50000ms;
"""
NGINX = ROLES["nginx"]


def test_each_knob_is_read_from_its_own_part_of_the_file() -> None:
    assert parse_file(NGINX, POOL + PRINTED) == {
        "worker_processes": "auto",
        "worker_connections": 512,
        "multi_accept": True,
        "keepalive_timeout": 75_000,
        "keepalive_requests": 1000,
        "keepalive_time": 3_600_000,
        "client_header_timeout": 60_000,
        "client_body_timeout": 60_000,
        "send_timeout": 60_000,
        "reset_timedout_connection": False,
        "proxy_http_version": "1.1",
        "proxy_connection": "",
        "proxy_connect_timeout": 60_000,
        "proxy_read_timeout": 60_000,
        "proxy_send_timeout": 60_000,
        "proxy_next_upstream": "error timeout",
        "proxy_next_upstream_tries": 0,
        "max_fails": 3,
        "fail_timeout": 15_000,
        "listen_backlog": 511,
        "reuseport": True,
        "upstream_keepalive": 32,
        "upstream_keepalive_timeout": 50_000,
        "tls": False,
        "http2": False,
        "http2_max_concurrent_streams": 128,
        "resolver_valid": 0,
        "so_keepalive": False,
    }


@pytest.mark.parametrize("options", ["", " ssl", " reuseport", " ssl reuseport"])
def test_options_of_a_listener_are_read_whichever_others_stand_beside_them(options: str) -> None:
    found = parse_file(NGINX, PRINTED.replace(" reuseport", options))
    assert (found["tls"], found["reuseport"]) == ("ssl" in options, "reuseport" in options)


def test_a_line_that_may_be_absent_tells_its_value() -> None:
    assert parse_file(NGINX, PRINTED)["upstream_keepalive"] == 0
    assert parse_file(NGINX, PRINTED.replace(" reuseport", ""))["reuseport"] is False


@pytest.mark.parametrize("line", ["worker_connections 512;", "keepalive_timeout 75000ms;", "multi_accept on;"])
@pytest.mark.parametrize("instead", ["", "worker_connections many;", "#"])
def test_a_setting_that_the_file_does_not_tell_is_named(line: str, instead: str) -> None:
    with pytest.raises(MissingSettings) as lost:
        parse_file(NGINX, PRINTED.replace(line, instead))
    assert lost.value.knobs == [line.split(maxsplit=1)[0]]


@pytest.mark.parametrize("text", ["", "garbage", "}\n}\n", "# configuration file x:\n", "x 'y;\n", ";\n"])
def test_what_is_no_configuration_tells_nothing(text: str) -> None:
    with pytest.raises(MissingSettings, match="worker_connections"):
        parse_file(NGINX, text)


@pytest.mark.parametrize("answer", [None, [], {}, {"settings": None}, {"settings": {"maxIdleConns": 1}}])
def test_a_page_that_lacks_a_setting_is_refused(answer: object) -> None:
    with pytest.raises(MissingSettings, match="max_idle_conns_per_host"):
        parse_page(ROLES["gateway"], answer)
