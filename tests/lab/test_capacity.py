"""What a run needs, and what this machine does not have."""

from pathlib import Path

import pytest

from lab.engines.compose.engine import Compose
from lab.errors import BadInput
from lab.runs import capacity
from lab.scenarios.resolved import ResolvedScenario
from tests.lab.support import THROUGH_NGINX, Make, resolving

MILLION = ("load.users=1000000", "load.arrival_gap=0s", "backend.max_connections=8192")


def test_generators_share_users_ports_and_memory(effective: Make) -> None:
    found, problems = capacity.compute_demand(effective(*MILLION, "load.instances=64"), apart=True)
    k6, backend = found.roles
    assert (k6.instances, k6.connections, k6.ports, k6.ports_max) == (64, 15_625, 15_625, 28_232)
    assert (backend.connections, backend.ports) == (8192, None)
    assert found.memory_mb == 64 * k6.memory_mb + backend.memory_mb
    assert problems == []


def test_haproxy_holds_no_more_connections_than_its_limit_unless_a_file_of_the_user_s_says_that(
    effective: Make, tmp_path: Path
) -> None:
    through = THROUGH_NGINX.replace("nginx", "haproxy")
    assert capacity.compute_demand(effective(*MILLION, text=through), apart=True)[0].roles[1].connections == 2 * 2000
    home = tmp_path / "shop"
    home.mkdir()
    (home / "haproxy.cfg").write_text(
        "defaults\n mode http\nfrontend a\n bind *:8080\n default_backend b\nbackend b\n server c backend:8080\n"
    )
    own = resolving(home, through.replace("knobs:", "haproxy: {config: ./haproxy.cfg}\nknobs:"))(*MILLION)
    assert capacity.compute_demand(own, apart=True)[0].roles[1].connections == 2_000_000


def test_a_client_without_ports_enough_is_refused_with_what_it_takes(effective: Make) -> None:
    _, (problem,) = capacity.compute_demand(effective(*MILLION, "load.instances=2"), apart=True)
    assert problem.what == "500,000 users of one k6 need 500,000 ports to one address, and it has 28,232"
    assert problem.hint is not None
    assert "load.instances=36" in problem.hint
    assert capacity.compute_demand(effective(*MILLION, "load.instances=36"), apart=True)[1] == []


def test_a_heap_that_the_connections_fill_is_refused(effective: Make) -> None:
    asked = effective(*MILLION[:2], "load.instances=64", "backend.max_connections=1000000")
    (problem,) = capacity.compute_demand(asked, apart=True)[1]
    assert "of the heap of backend-1" in problem.what


@pytest.mark.parametrize(("apart", "captures"), [(False, 1), (True, 2)])
def test_on_several_machines_every_server_captures(effective: Make, *, apart: bool, captures: int) -> None:
    asked = effective("capture.max_mb=100", text=THROUGH_NGINX)
    found, _ = capacity.compute_demand(asked, apart=apart)
    assert found.captures_mb == 100 * captures
    assert [each.role for each in found.roles] == ["k6", "nginx", "backend"]


def test_requests_are_foreseen_where_users_make_a_set_number(effective: Make) -> None:
    million = effective("load.users=1000", "load.calls=1000", "load.keep_alive=true")
    assert capacity.compute_demand(million, apart=False)[0].records_mb == 411


@pytest.mark.parametrize(
    ("patched", "overrides", "message"),
    [
        ({"runs.machine.memory_kb": 500_000}, ["load.users=5000"], "MiB of memory for 5,000 users"),
        ({"runs.machine.disk_free_bytes": 1 << 20}, [], "1 MiB are free"),
        (
            {"runs.machine.disk_free_bytes": 1 << 30},
            ["backend.instances=3", "capture.client=headers"],
            "may write 1,280 MiB below .*, and 1,024 MiB are free",
        ),
        (
            {"engines.compose.engine.Compose.open_files_cap": 4_096},
            ["load.users=5000"],
            "load.users = 5,000 needs about 5,128 open files in one process of k6",
        ),
        (
            {"runs.machine.memory_kb": 64 << 20},
            ["load.users=20000", "backend.max_connections=20000"],
            r"20,000 connections take about 371 MiB of the heap of backend-1, and it has 256 \(backend.heap_mb\)",
        ),
        (
            {"scenarios.sysctls.missing_sysctl": ("this kernel has no such sysctl", None)},
            ["kernel.k6.net.ipv4.tcp_x=1"],
            "this kernel has no such",
        ),
    ],
)
def test_what_the_machine_cannot_hold_is_refused_with_numbers(
    effective: Make, monkeypatch: pytest.MonkeyPatch, patched: dict[str, object], overrides: list[str], message: str
) -> None:
    monkeypatch.setattr(Compose, "open_files_cap", lambda _: None)
    for name, value in patched.items():
        monkeypatch.setattr(f"lab.{name}", lambda *_, value=value: value)
    resolved: ResolvedScenario = effective(*overrides)
    with pytest.raises(BadInput, match=message):
        capacity.check_capacity(resolved, Compose())
