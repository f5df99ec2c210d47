import pytest

from lab.roles.nginx_conf import knobs_of

# As `nginx -T` prints it, cut to what tells the cases apart.
PRINTED = """\
# configuration file /tmp/nginx/main.d/10-workers.conf:
daemon off;
worker_processes auto;
# configuration file /tmp/nginx/events.d/11-connections.conf:
worker_connections 512;  # two for each proxied request
multi_accept on;
# configuration file /tmp/nginx/http.d/20-client-keepalive.conf:
keepalive_timeout 75000ms;
# configuration file /tmp/nginx/http.d/40-proxy-connection.conf:
proxy_http_version 1.1;
proxy_set_header Connection "";
proxy_set_header Host $proxy_host;
proxy_next_upstream error timeout;
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
"""

POOL = """\
# configuration file /tmp/nginx/upstream.d/31-keepalive.conf:
keepalive 32;
keepalive_timeout 60000ms;
"""


def test_each_knob_is_read_from_its_own_context() -> None:
    assert knobs_of(PRINTED + POOL) == {
        "worker_processes": "auto",
        "worker_connections": 512,
        "multi_accept": True,
        "keepalive_timeout": 75_000,
        "proxy_http_version": "1.1",
        "proxy_connection": "",
        "proxy_next_upstream": "error timeout",
        "max_fails": 3,
        "fail_timeout": 15_000,
        "listen_backlog": 511,
        "reuseport": True,
        "upstream_keepalive": 32,
        "upstream_keepalive_timeout": 60_000,
    }


def test_without_a_pool_none_is_kept() -> None:
    assert knobs_of(PRINTED)["upstream_keepalive"] == 0


@pytest.mark.parametrize("text", ["", "garbage", "}\n}\n", "# configuration file x:\n", "x 'y;\n", ";\n"])
def test_what_is_no_configuration_tells_nothing(text: str) -> None:
    assert knobs_of(text) == {"upstream_keepalive": 0}
