"""The scenarios on a cluster of two nodes: the same predictions as on one machine, and nothing left afterwards."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from lab.setup_scripts import image_tags
from tests.e2e.conftest import (
    SHORTER_OVERFLOW,
    Run,
    connlab,
    interrupt,
    killed_at,
    latest,
    run_until_calm,
    start,
    turn,
    wait_until,
)
from tests.own_results import RESULTS

from .conftest import ROOT, build_into_nodes, names, objects

pytestmark = pytest.mark.e2e

HANG_S = 1800
# A few users, who stay until somebody ends the run.
LONG = ("--set=load.users=20", "--set=load.ramp_hold=30m", "--set=load.max_duration=1h")


def run(scenario: str, *arguments: str) -> Run:
    """A run on the cluster, made again if a busy machine spoiled it."""
    return run_until_calm(scenario, "--engine", "kubernetes", *arguments)


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """Whatever a run came to, nothing of it is left in the cluster."""
    yield
    wait_until(lambda: not names(), "the end of all objects")


def assert_reproduced(ended: Run) -> None:
    assert ended.verdict["verdict"] == "reproduced", ended.output
    assert ended.verdict["ledger"]["unexplained"] == 0
    assert ended.exit_code == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("nginx-backlog", "--arm", "small-backlog"),
        ("backend-restart", "--arm", "one-backend"),
        ("haproxy-maxconn-queue", "--arm", "proxy"),
        ("gateway-pool-sized", "--set=load.calls=4"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_scenario_is_reproduced_as_on_one_machine(arguments: tuple[str, ...]) -> None:
    ended = run(*arguments)
    assert_reproduced(ended)
    assert ended.manifest["host"]["kubernetes"].startswith("v1.")
    assert all(ended.manifest["images"].values())


@pytest.mark.usefixtures("whole_turn")
def test_two_clients_on_another_node_than_the_server() -> None:
    options = ("--engine", "kubernetes", "--spread", "--set=load.instances=2", *SHORTER_OVERFLOW)
    process = start("run", "accept-queue-overflow", *options)
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
    assert ended.manifest["nodes"] == nodes
    assert_one_clock(ended.folder, 3)


@pytest.mark.parametrize(
    ("arguments", "image"),
    [
        # TLS and HTTP/2, at a distance.
        (("goaway-in-a-burst", "--arm", "ended"), None),
        (("websocket-falls-silent", "--arm", "impatient"), "talk"),
        # gRPC.
        (("grpc-three-servers", "--arm", "kept"), "calls"),
        # A link that loses packets.
        (("lost-or-dropped", "--arm", "lost"), None),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else value or "the lab's",
)
def test_streams_and_links_are_the_same_over_both_nodes(arguments: tuple[str, ...], image: str | None) -> None:
    scenario = arguments[0]
    if image:
        built = f"connlab-own/{scenario}-{image}"
        application = ROOT / "scenarios" / scenario / "app"
        build_into_nodes(f"{built}:latest", by=["docker", "build", "--quiet", "--tag", built, application])
    ended = run(*arguments, "--spread")
    assert_reproduced(ended)
    assert len(set(ended.manifest["nodes"].values())) == 2, ended.manifest["nodes"]
    if scenario == "goaway-in-a-burst":
        # Each hop of a path is captured at its server.
        assert [hop["observers"] for hop in ended.read("derived/ledger")["hops"]] == [["nginx"], ["backend-1"]]
        assert_one_clock(ended.folder, 3)


def assert_one_clock(folder: Path, machines: int) -> None:
    """The nodes are containers of the lab's machine, so all clocks are one, as far as the lab can tell."""
    first, *others = json.loads((folder / "derived" / "clocks.json").read_bytes())["machines"]
    assert len(others) == machines - 1
    assert (first["machine"] is None, others[-1]["machine"] is None) == (False, True)
    assert all(abs(each["ahead_us"]) <= each["residual_us"] for each in others)


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
    # Nobody listens there, so the node has its answer at once.
    said = refused("--registry", "127.0.0.1:9/lab")
    assert "the cluster cannot have the image 127.0.0.1:9/lab/" in said
    assert "--registry" in said


def test_a_context_that_does_not_exist_is_refused() -> None:
    assert "'kubectl config get-contexts' lists them" in refused("--context", "elsewhere")


def loaded() -> subprocess.Popen[str]:
    """A run whose load has begun."""
    process = start("run", "long-polling-smoke", "--engine", "kubernetes", *LONG)

    def measures() -> bool:
        files = sorted((RESULTS / "long-polling-smoke").glob("2*/manifest.json"))
        told: dict[str, Any] = json.loads(files[-1].read_bytes()) if files else {"status": None}
        return told["status"] == "running" and any(each["name"] == "measure" for each in told["phases"])

    wait_until(measures, "the load", process)
    return process


def made(least: int) -> bool:
    """Whether so many objects of the lab's are in the cluster."""
    return len(names()) >= least


@pytest.mark.usefixtures("whole_turn")
def test_runs_that_are_aborted_at_different_times_leave_nothing() -> None:
    # With the owner alone, with its policy, and while pods start.
    for least, ends in ((1, signal.SIGINT), (2, signal.SIGTERM), (4, signal.SIGINT)):
        process = start("run", "long-polling-smoke", "--engine", "kubernetes", *LONG)
        try:
            wait_until(partial(made, least), "the run's objects", process)
            os.killpg(process.pid, ends)
            output, _ = process.communicate(timeout=HANG_S)
        finally:
            process.kill()
        assert process.returncode == 4, output
        assert "the run was aborted" in output
        wait_until(lambda: not names(), "the end of all objects")


def test_after_a_kill_of_the_lab_the_cluster_removes_everything_by_itself() -> None:
    arguments = ("run", "long-polling-smoke", "--engine=kubernetes", *LONG)
    with turn():
        killed_at(lambda: any(name.endswith("-k6-1") for name in names()), *arguments)
    assert names()
    wait_until(lambda: not names(), "the end of all objects")


# --- what runs already --------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("whole_turn")
def test_a_pod_under_load_is_observed_and_goes_on_as_before_and_its_end_ends_the_run_with_a_word() -> None:
    process = loaded()
    try:
        (pod,) = [one for one in objects("pods") if one["metadata"]["labels"].get("connlab.instance") == "backend-1"]
        name = pod["metadata"]["name"]
        named = ("--pod", f"{pod['metadata']['namespace']}/{name}", "--container", "role")
        watched = connlab("observe", *named, "--duration", "5s", "--json")
        assert watched.returncode == 0, watched.stderr
        assert "its entry stays there" in watched.stderr
        account = json.loads(watched.stdout)
        (target,) = account["targets"]
        assert {each["port"] for each in target["listeners"]} >= {8080}
        assert sum(each["connections"] for each in target["servers"]) > 0
        assert_one_clock(Path(account["folder"]), 2)

        (after,) = [one for one in objects("pods") if one["metadata"]["name"] == name]
        assert after["status"]["containerStatuses"] == pod["status"]["containerStatuses"], "nothing of it has changed"
        wait_until(lambda: ended(name), "the end of the collector", process)
        subprocess.run(["kubectl", "delete", "pod", name, "--grace-period=0", "--force"], check=True)
        output, _ = process.communicate(timeout=HANG_S)
    finally:
        if process.poll() is None:
            interrupt(process)
    assert process.returncode == 4, output
    assert "backend-1" in output, output


def ended(pod: str) -> bool:
    """Whether all that was added to a pod has ended."""
    (found,) = [one for one in objects("pods") if one["metadata"]["name"] == pod]
    return all("terminated" in one["state"] for one in found["status"]["ephemeralContainerStatuses"])


STRICT = "connlab-strict"
STILL = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "still", "namespace": STRICT},
    "spec": {
        "automountServiceAccountToken": False,
        "containers": [
            {"name": "web", "image": "connlab/collector:latest", "imagePullPolicy": "Never", "args": ["hold"]}
        ],
    },
}


def kubectl(*arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["kubectl", *arguments], input=stdin, capture_output=True, text=True, check=False)


@pytest.fixture
def still() -> Iterator[str]:
    """A pod of somebody else's, which does nothing."""
    try:
        assert kubectl("create", "namespace", STRICT).returncode == 0
        # The namespace gets its service account a little later.
        wait_until(lambda: kubectl("create", "-f", "-", stdin=json.dumps(STILL)).returncode == 0, "the pod")
        waited = kubectl("wait", "--for=condition=Ready", "--timeout=120s", "--namespace", STRICT, "pod/still")
        assert waited.returncode == 0, waited.stderr
        yield f"{STRICT}/still"
    finally:
        kubectl("delete", "namespace", STRICT, "--ignore-not-found")


def test_a_pod_that_cannot_be_observed_is_refused_in_the_cluster_s_words(still: str) -> None:
    def refused(*arguments: str) -> str:
        ended = connlab("observe", "--duration", "1s", *arguments)
        assert ended.returncode in (2, 4), ended.stdout
        assert "Traceback" not in ended.stderr
        return ended.stderr

    assert "there is no pod 'gone' in the namespace" in refused("--pod", f"{STRICT}/gone")
    assert "has no container 'db'; those that run: web" in refused("--pod", still, "--container", "db")
    said = refused("--pod", still, "--registry", "registry.invalid/lab")
    image = f"registry.invalid/lab/collector:{image_tags()['collector']}"
    assert f"the cluster cannot have the image {image}" in said
    kubectl("label", "namespace", STRICT, "pod-security.kubernetes.io/enforce=baseline")
    said = refused("--pod", still)
    assert 'violates PodSecurity "baseline:latest"' in said
    assert "label the namespace so that a collector may run there" in said
