"""The start of a run: its subnet, and every way in which a container cannot start, in the engine's words."""

from collections.abc import Callable
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

import pytest

from analysis.evidence.rawfiles import Places
from lab.engines.compose import startup
from lab.engines.kubernetes.pod_problems import find_container_problem
from lab.engines.protocol import Parts
from lab.errors import BadInput, LabError
from lab.scenarios.topology import topology_of
from tests.lab.container_states import NEVER, state
from tests.lab.engine import InMemoryDocker, InMemoryWatch
from tests.lab.support import MINIMAL, Make, yaml_with

RUNC = "failed to create task for container: OCI runtime create failed: runc create failed: unable to start container"
OF_BACKEND = "  backend:\n    accept_count: 1\n"
SHOP = """\
services:
  shop:
    image: acme/shop:1
    command: [serve]
    user: "70"
    volumes: [./conf:/etc/shop]
    depends_on: [db]
  db: {image: "postgres:17"}
"""
TEXT = SHOP + yaml_with(MINIMAL, {"[k6, backend]": "[k6, shop]", OF_BACKEND: "", "users: 3": "users: 3\n    path: /"})


Failed = Callable[..., str]


@pytest.fixture
def failed(effective: Make, fake_docker: InMemoryDocker, tmp_path: Path) -> Failed:
    """Start a shop whose containers are in some states after Compose has given up, and give the message."""

    def start(*states: str) -> str:
        (tmp_path / "scenarios" / "one" / "conf").mkdir(parents=True)
        fake_docker.says("compose * up *", stderr="Error response from daemon: it says so", exit_code=1)
        fake_docker.says("ps *", "".join(f"{one.partition(' ')[0].removeprefix('/')}\n" for one in states))
        fake_docker.says("inspect *", "".join(states))
        made = effective(text=TEXT)
        with pytest.raises((BadInput, LabError)) as refused:
            startup.start(Parts(made, topology_of(made), "r", Places(tmp_path)), InMemoryWatch())
        return str(refused.value)

    return start


@pytest.mark.parametrize(
    ("service", "error", "line", "hint"),
    [
        ("shop-1", f'{RUNC} process: exec: "serve": executable file not found in $PATH: unknown', 4, "no such program"),
        ("shop-1", f'{RUNC} process: exec: "/s": stat /s: no such file or directory: unknown', 4, "no such program"),
        ("shop-1", f'{RUNC} process: exec: "/s": permission denied: unknown', 4, "let every user execute it"),
        ("shop-1", f"{RUNC} process: exec /s: exec format error: unknown", 4, "for another kind of processor"),
        ("shop-1", "unable to find user 70: no matching entries in passwd file", 5, "write the user's number"),
        (
            "shop-1",
            f'{RUNC} process: error mounting "/conf" to rootfs at "/etc/shop": not a directory',
            6,
            "a file onto",
        ),
        ("shop-1", "something new", 2, ""),
        ("db", f'{RUNC} process: exec: "pg": executable file not found in $PATH: unknown', 8, "no such program"),
    ],
)
def test_a_service_that_cannot_start_is_said_in_the_engine_s_words_with_its_place(
    failed: Failed, service: str, error: str, line: int, hint: str
) -> None:
    said = failed(state(service, error=error, code=127))
    assert f"scenario.yaml:{line}: {service} cannot start: {error}" in said
    assert hint in said
    assert "nothing listens" not in said


@pytest.mark.parametrize(
    "joining",
    [
        "cannot join network of a non running container: c0ffee",
        # It ended while the other one joined it.
        f"{RUNC} process: can't get final child's PID from pipe: EOF: unknown",
    ],
)
def test_what_cannot_join_a_container_that_has_ended_is_not_the_cause(failed: Failed, joining: str) -> None:
    ended = state("collector-shop-1", code=2)
    said = failed(state("shop-1", error=joining, code=128), ended)
    assert said == "collector-shop-1 ended with exit code 2 during its start, and said nothing"


def test_a_collector_that_cannot_start_is_the_lab_s_own_failure(failed: Failed) -> None:
    said = failed(state("collector-shop-1", error="no such device", code=128))
    assert said == "collector-shop-1 cannot start: no such device"


@pytest.mark.parametrize(
    ("ended", "log", "said"),
    [
        (
            {"code": 1},
            "exec /s: exec format error",
            ":\n  exec /s: exec format error\nhint: its program is for another",
        ),
        (
            {"code": 1},
            "exec /s: no such file",
            ":\n  exec /s: no such file\nhint: its image lacks the program, or what",
        ),
        ({"code": 0}, "", ", and said nothing\nhint: let its program stay in the foreground"),
        ({"code": 137, "OOMKilled": True}, "", ", and said nothing\nhint: raise memory_mb"),
        ({"code": 1}, "no configuration", ":\n  no configuration"),
    ],
)
def test_a_service_that_ends_as_it_starts_is_said_with_its_last_words_and_its_place(
    failed: Failed, fake_docker: InMemoryDocker, ended: dict[str, Any], log: str, said: str
) -> None:
    fake_docker.says("logs *", f"{log}\n")
    memory = ", out of memory" if "OOMKilled" in ended else ""
    code = f"{ended['code']}{memory} during its start"
    assert f"scenario.yaml:2: shop-1 ended with exit code {code}{said}" in failed(state("shop-1", **ended))


def test_a_service_that_has_ended_is_not_started_again_by_the_wait_for_it(
    failed: Failed, fake_docker: InMemoryDocker
) -> None:
    fake_docker.says("compose * up *", once=True)
    assert "shop-1 ended with exit code 3" in failed(state("shop-1", code=3))
    assert not any(" --wait " in call for call in fake_docker.calls)


def test_what_compose_cannot_make_is_said_in_its_own_words(failed: Failed, fake_docker: InMemoryDocker) -> None:
    fake_docker.says("exec *", '{"listeners": []}')
    never = state("shop-1", StartedAt=NEVER)
    assert "it says so" in failed(never, state("collector-shop-1", running=True))


@pytest.mark.parametrize("reason", ["StartError", "ContainerCannotRun"])
def test_the_cluster_s_words_of_a_container_that_cannot_start_are_said(reason: str) -> None:
    words = f'failed to create containerd task: {RUNC} process: exec: "k": executable file not found in $PATH: unknown'
    ended = {"terminated": {"exitCode": 128, "reason": reason, "message": words}}
    found = find_container_problem({"name": "role", "image": "connlab/k6:latest", "state": ended}, "k6-1")
    assert f"the cluster cannot start role of k6-1: {reason}: {words}" in str(found)
    assert "no such program" in str(found)
    running = {"name": "role", "image": "a", "state": {"terminated": {"exitCode": 1, "reason": "Error"}}}
    assert find_container_problem(running, "k6-1") is None


# --- the subnet of the network --------------------------------------------------------------------------------

HEADER = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
DEFAULT = "eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n"


@pytest.fixture
def routes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let the kernel's table of routes be a file of the test's own, with a default route alone."""
    file = tmp_path / "route"
    file.write_text(HEADER + DEFAULT)
    monkeypatch.setattr(startup, "_ROUTES", file)
    return file


def test_the_first_one_is_taken_where_nothing_is_in_the_way(routes: Path, fake_docker: InMemoryDocker) -> None:
    assert routes.is_file()
    assert fake_docker.calls == []
    assert startup.find_free_subnet() == startup.FIRST_SUBNET == IPv4Network("198.18.0.0/24")


def test_routes_and_networks_are_passed_by(routes: Path, fake_docker: InMemoryDocker) -> None:
    # 198.18.0.0/23, as the kernel prints it.
    routes.write_text(HEADER + DEFAULT + "br-1\t000012C6\t00000000\t0001\t0\t0\t0\t00FEFFFF\t0\t0\t0\n")
    fake_docker.says("network ls *", "one\ntwo\n")
    six = '{"Subnet":"fd00::/64"}'
    fake_docker.says("network inspect *", f'[{{"Subnet":"198.18.2.0/24","Gateway":"198.18.2.1"}},{six}]\nnull\n')
    assert startup.find_free_subnet() == IPv4Network("198.18.3.0/24")


def test_where_none_is_free_the_way_on_is_reported(routes: Path, fake_docker: InMemoryDocker) -> None:
    assert routes.is_file()
    fake_docker.says("network ls *", "one\n")
    fake_docker.says("network inspect *", '[{"Subnet":"198.0.0.0/8"}]\n')
    with pytest.raises(LabError, match=r"no subnet of 198.18.0.0/15 is free.*\n.*docker network prune"):
        startup.find_free_subnet()


def test_elsewhere_than_on_linux_the_engine_alone_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fake_docker: InMemoryDocker
) -> None:
    monkeypatch.setattr(startup, "_ROUTES", tmp_path / "nothing")
    assert startup.find_free_subnet() == startup.FIRST_SUBNET
    assert len(fake_docker.calls) == 1
