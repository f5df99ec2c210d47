"""The subnet of a run's network: free of the host's routes and of the engine's networks."""

from ipaddress import IPv4Network
from pathlib import Path

import pytest

from lab.engines.compose import startup
from lab.errors import LabError
from tests.lab.engine import InMemoryDocker

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
