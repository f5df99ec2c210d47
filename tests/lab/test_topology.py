import re
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.role import TRAFFIC_PORT
from lab import paths
from lab.engines.container_settings import role_environment
from lab.scenarios.topology import segments, topology_of
from tests.lab.support import MINIMAL, THROUGH_NGINX, Make, yaml_with


def test_one_test_is_shared_in_equal_parts() -> None:
    assert segments(1) == [("0:1", "0,1")]
    assert segments(2) == [("0:1/2", "0,1/2,1"), ("1/2:1", "0,1/2,1")]


@given(st.integers(min_value=1, max_value=64))
def test_the_parts_are_the_whole(count: int) -> None:
    lengths = [Fraction(segment.split(":")[1]) - Fraction(segment.split(":")[0]) for segment, _ in segments(count)]
    assert lengths == [Fraction(1, count)] * count


def test_clients_and_backends_are_numbered_and_nginx_is_not(effective: Make) -> None:
    topology = topology_of(effective("load.instances=2", "backend.instances=3", text=THROUGH_NGINX))
    assert topology.all == ["k6-1", "k6-2", "nginx", "backend-1", "backend-2", "backend-3"]
    assert topology.servers == ["nginx", "backend-1", "backend-2", "backend-3"]
    assert topology.targets == ["http://nginx:8080"]
    assert [topology.role_of(one) for one in ("k6-2", "nginx", "backend-3")] == ["k6", "nginx", "backend"]


def test_without_a_proxy_the_clients_go_to_every_backend(effective: Make) -> None:
    assert topology_of(effective()).targets == ["http://backend-1:8080"]
    assert topology_of(effective("backend.instances=2")).targets == ["http://backend-1:8080", "http://backend-2:8080"]


@pytest.mark.parametrize(("first", "second"), [("nginx", "haproxy"), ("haproxy", "nginx"), ("gateway", "nginx")])
def test_of_two_proxies_the_second_is_a_service_between_others(effective: Make, first: str, second: str) -> None:
    path = f"[k6, {first}, {second}, backend]"
    resolved = effective(text=yaml_with(MINIMAL, {"[k6, backend]": path}))
    assert (resolved.roles[first].kind, resolved.roles[second].kind) == ("proxy", "server")
    # Its log tells whose error the first one passes on.
    assert resolved.roles[second].logs == {"access.jsonl": f"{second}-access"}
    topology = topology_of(resolved)
    assert topology.answering == "backend"
    assert role_environment(resolved, topology, second)["CONNLAB_UPSTREAMS"] == "backend-1:8080"


TRAFFIC, MANAGEMENT, K6 = str(TRAFFIC_PORT), "8081", "6565"
HERE = r"127\.0\.0\.1:(\d+)"


@pytest.mark.parametrize(
    ("file", "place", "port"),
    [
        ("backend/src/main/resources/application.yaml", r"(?m)^  port: (\d+)", TRAFFIC),
        ("gateway/main.go", r"0\.0\.0\.0:(\d+)", TRAFFIC),
        ("nginx/templates/http.d/70-traffic.conf", r"0\.0\.0\.0:(\d+)", TRAFFIC),
        ("backend/src/main/resources/application.yaml", r"(?m)^    port: (\d+)", MANAGEMENT),
        ("collector/internal/management/management.go", r"ServerPort = (\d+)", MANAGEMENT),
        ("nginx/role.yaml", HERE, MANAGEMENT),
        ("gateway/main.go", HERE, MANAGEMENT),
        *((f"{role}/role.yaml", HERE, MANAGEMENT) for role in ("backend", "gateway")),
        ("nginx/templates/http.d/60-management.conf", HERE, MANAGEMENT),
        ("collector/internal/management/management.go", r"K6Port += (\d+)", K6),
        ("k6/connlab-k6", f"--address {HERE}", K6),
        ("lab/runs/phases.py", HERE, K6),
    ],
)
def test_every_part_has_the_same_ports(file: str, place: str, port: str) -> None:
    assert set(re.findall(place, (paths.ROOT / file).read_text())) == {port}
