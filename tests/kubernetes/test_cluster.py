"""The scenarios on a cluster of two nodes: the same predictions as on one machine, and nothing left afterwards."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.conftest import RUNS_MAX, Run, latest, start, wait_until

from .conftest import names, objects

pytestmark = pytest.mark.e2e

HANG_S = 1800


def run(scenario: str, *arguments: str) -> Run:
    """A run on the cluster, made again if a busy machine spoiled it."""
    ended = once(scenario, *arguments)
    for _ in range(1, RUNS_MAX):
        if ended.exit_code != 3 or ended.busy is None:
            break
        ended = once(scenario, *arguments)
    return ended


def once(scenario: str, *arguments: str) -> Run:
    process = start("run", scenario, "--engine", "kubernetes", *arguments)
    output, _ = process.communicate(timeout=HANG_S)
    return Run(process.returncode, output, latest(scenario))


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """Whatever a run came to, nothing of it is left in the cluster."""
    yield
    wait_until(lambda: not names(), "the end of all objects")


@pytest.mark.parametrize(
    "scenario", ["accept-queue-overflow", "long-polling-smoke", "nginx-backlog", "backend-restart"]
)
def test_a_scenario_is_reproduced_as_on_one_machine(scenario: str) -> None:
    ended = run(scenario)
    assert ended.verdict["verdict"] == "reproduced", ended.output
    assert ended.verdict["ledger"]["unexplained"] == 0
    assert ended.exit_code == 0
    assert ended.manifest["host"]["kubernetes"].startswith("v1.")
    assert all(ended.manifest["images"].values())


def test_two_clients_on_another_node_than_the_server() -> None:
    process = start("run", "accept-queue-overflow", "--engine", "kubernetes", "--spread", "--set=load.instances=2")
    nodes: dict[str, str] = {}

    def placed() -> bool:
        for one in objects("pods"):
            if (instance := one["metadata"]["labels"].get("connlab.instance")) and "nodeName" in one["spec"]:
                nodes[instance] = one["spec"]["nodeName"]
        return {"k6-1", "k6-2", "backend-1"} <= set(nodes)

    wait_until(placed, "the pods' nodes", process)
    output, _ = process.communicate(timeout=HANG_S)
    assert nodes["k6-1"] == nodes["k6-2"] != nodes["backend-1"]
    ended = Run(process.returncode, output, latest("accept-queue-overflow"))
    assert ended.verdict["ledger"]["unexplained"] == 0, output
    assert ended.verdict["ledger"]["identities"]["false"] == 0, output


def refused(*arguments: str) -> str:
    ended = run("accept-queue-overflow", *arguments)
    assert ended.exit_code in (2, 4), ended.output
    return ended.output


def test_a_forbidden_sysctl_is_refused_in_the_cluster_s_words() -> None:
    said = refused("--set=kernel.backend.net.unix.max_dgram_qlen=20")
    assert "the cluster forbids a sysctl: " in said
    assert 'forbidden sysctl: "net.unix.max_dgram_qlen"' in said
    assert "allowedUnsafeSysctls" in said


def test_an_image_that_cannot_be_pulled_is_refused() -> None:
    said = refused("--registry", "registry.invalid/lab")
    assert "the cluster cannot have the image registry.invalid/lab/" in said
    assert "--registry" in said


def test_a_context_that_does_not_exist_is_refused() -> None:
    assert "'kubectl config get-contexts' lists them" in refused("--context", "elsewhere")
