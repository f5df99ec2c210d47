"""`load.url` and `load.ip_family`: what a scenario says of where its load goes, and what clients get of it."""

from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

import pytest

from analysis.evidence.rawfiles import Places
from lab.engines.compose.run_file import build_run_file
from lab.errors import BadInput
from lab.scenarios.resolved import ResolvedScenario
from lab.scenarios.topology import topology_of
from tests.lab.support import MINIMAL, resolving

PATH = next(line for line in MINIMAL.splitlines() if line.startswith("path:"))
NGINX = """\
events { }
http {
    server { listen 80; return 301 https://$host$request_uri; }
    server { listen 443 ssl; listen [::]:443 ssl; server_name shop.example;
        ssl_certificate a.pem; ssl_certificate_key a.key;
        location / { proxy_pass http://app:3000; } }
}
"""


def with_load(load: str, path: str = "[k6, nginx, backend]") -> str:
    own = "nginx: {config: ./nginx.conf}\n" if "nginx" in path else ""
    return MINIMAL.replace(PATH, f"path: {path}\n{own}load: {load}")


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "nginx.conf").write_text(NGINX)
    return folder


def services(found: ResolvedScenario) -> Any:  # noqa: ANN401 # of a run's file
    places = Places(Path("/results/shop/1"))
    return build_run_file(found, topology_of(found), "1", places, IPv4Network("198.18.0.0/24"))["services"]


def test_the_url_gives_scheme_host_port_and_path_to_the_lab_s_workloads(shop: Path) -> None:
    found = resolving(shop, with_load("{url: https://shop.example/cart/}"))()
    made = services(found)
    assert made["k6-1"]["environment"]["CONNLAB_TARGETS"] == "https://shop.example"
    assert made["k6-1"]["environment"]["CONNLAB_PATH"] == "/cart"
    assert "shop.example" in made["collector-nginx"]["networks"]["lab"]["aliases"]
    assert (found.roles["nginx"].port, found.roles["nginx"].tls) == (443, True)


def test_the_root_of_a_url_is_a_page_of_a_service_alone(shop: Path) -> None:
    assert resolving(shop, with_load("{url: http://shop.example:8080/}", "[k6, backend]"))().values["load.path"] == (
        "/api/delay"
    )
    of_service = with_load("{url: http://shop.example:5000}\nservices: {app: {image: app, port: 5000}}", "[k6, app]")
    knobs = of_service[of_service.index("knobs:") : of_service.index("predictions:")]
    users = "knobs: {load: {workload: users, users: 1, arrival_gap: 1s, calls: 1}}\n"
    assert resolving(shop, of_service.replace(knobs, users))().values["load.path"] == "/"


def test_a_generator_gets_the_url_and_its_parts(shop: Path) -> None:
    text = with_load('{url: "https://shop.example/cart", wrk: "{target}/1 {host} {port}"}', "[wrk, nginx, backend]")
    text = text.replace(text[text.index("knobs:") : text.index("predictions:")], "")
    text = text.replace("client.requests.ok == load.users", "ledger.connections.nginx.failed == 0")
    assert services(resolving(shop, text)())["wrk-1"]["command"] == [
        *("https://shop.example/cart/1", "shop.example", "443")
    ]


def test_clients_over_ipv6_know_the_first_server_by_its_ipv6_address_alone(shop: Path) -> None:
    made = services(resolving(shop, with_load("{url: https://shop.example/, ip_family: ipv6}"))())
    client, server, behind = (made[f"collector-{one}"] for one in ("k6-1", "nginx", "backend-1"))
    [address] = {one.partition("=")[2] for one in client["extra_hosts"]}
    assert server["environment"]["CONNLAB_ADDRESSES"] == f"{address}/64"
    assert client["environment"]["CONNLAB_ADDRESSES"] not in ("", f"{address}/64")
    assert "CONNLAB_ADDRESSES" not in behind["environment"]
    assert "extra_hosts" not in server
    assert server["sysctls"]["net.ipv6.conf.all.disable_ipv6"] == "0"


@pytest.mark.parametrize(
    ("url", "own"), [("https://[2001:db8::7]/", "2001:db8::7/64"), ("https://10.1.2.7/", "10.1.2.7/24")]
)
def test_the_first_server_has_the_address_that_a_url_names(shop: Path, url: str, own: str) -> None:
    made = services(resolving(shop, with_load(f'{{url: "{url}"}}'))())
    assert made["k6-1"]["environment"]["CONNLAB_TARGETS"] == url.rstrip("/")
    assert made["collector-nginx"]["environment"]["CONNLAB_ADDRESSES"] == own


def test_a_link_of_ipv4_does_not_stand_for_clients_over_ipv6(shop: Path) -> None:
    (shop / "nginx.conf").write_text(NGINX.replace("listen 80;", "listen [::]:80;").replace("listen 443 ssl;", ""))
    text = with_load("{url: https://shop.example/}\nnetwork: {k6: {nginx: {delay: 20ms}}}")
    with pytest.raises(BadInput, match=r"clients come over IPv6, .* write load: \{ip_family: ipv4\}"):
        resolving(shop, text)()


@pytest.mark.parametrize(
    ("load", "path", "said"),
    [
        ("{url: shop.example}", "[k6, backend]", "begins with neither http:// nor https://"),
        ("{url: 'http://shop.example/?a=1'}", "[k6, backend]", "has more than scheme, host, port and path"),
        ("{url: 'http://localhost:8080/'}", "[k6, backend]", "is the client's own machine"),
        ("{url: https://shop.example/}", "[k6, backend]", "port 443 with TLS, and backend listens on port 8080"),
        ("{url: 'http://k6-1:8080/'}", "[k6, backend]", "which is k6-1's name"),
        ("{url: 'http://10.1.2.7:8080/', ip_family: ipv6}", "[k6, backend]", "an address of the other family"),
        ("{environment: {A: b}}", "[k6, backend]", "or url alone"),
    ],
)
def test_a_load_that_cannot_go_there_is_refused(shop: Path, load: str, path: str, said: str) -> None:
    with pytest.raises(BadInput) as refused:
        resolving(shop, with_load(load, path))()
    assert said in str(refused.value)


def test_the_lab_s_own_proxies_that_listen_on_ipv4_alone_are_named(shop: Path) -> None:
    text = with_load("{ip_family: ipv6}").replace("nginx: {config: ./nginx.conf}\n", "")
    with pytest.raises(BadInput, match="own nginx listens on IPv4 alone"):
        resolving(shop, text)()
