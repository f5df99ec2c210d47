"""A runner of a TestRun, started as k6-operator does, but in a container of this machine: the lab's own k6 in it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from analysis.evidence.rawfiles import Places
from lab.engine.kubernetes import held, objects, testrun
from lab.engine.kubernetes.objects import Images
from lab.engine.protocol import Parts
from lab.scenario.resolve import resolve
from lab.scenario.topology import topology_of

from .conftest import HANG_S, wait_until

pytestmark = pytest.mark.e2e

NAME = "connlab-testrun-runner"
STATUS = "http://127.0.0.1:6565/v1/status"
LET_GO = json.dumps({"data": {"type": "status", "id": "default", "attributes": {"paused": False}}})
# Nobody listens there: what counts is that k6 runs, and what it leaves.
HOSTS = {"backend-1": "127.0.0.1"}


def docker(*arguments: str) -> str:
    done = subprocess.run(["docker", *arguments], capture_output=True, text=True, check=False, timeout=HANG_S)
    assert done.returncode == 0, done.stderr
    return done.stdout


def rendered() -> dict[str, Any]:
    effective = resolve("accept-queue-overflow", ["load.users=2", "load.instances=2", "load.connect_timeout=1s"])
    parts = Parts(effective, topology_of(effective), "run-1", Places(Path("/run-1")))
    pod = objects.pod(parts, "k6-1", Images(), owned=None, hosts={}, spread=False)
    spec: dict[str, Any] = testrun.render("run-1", pod, 2, HOSTS)["spec"]
    return spec


@pytest.fixture
def runner() -> Iterator[None]:
    """The second of two runners, with the operator's command line."""
    spec = rendered()
    first = [part.replace("$$", "$") for part in spec["runner"]["initContainers"][0]["command"]]
    settings = [one for one in spec["runner"]["env"] if "value" in one]
    environment = [part for one in settings for part in ("--env", f"{one['name']}={one['value']}")]
    segment = "--execution-segment=1/2:1 --execution-segment-sequence=0,1/2,1"
    script = f"{spec['script']['localFile']} --address=0.0.0.0:6565 --paused --tag instance_id=2 --tag testrun_name=a"
    labelled = ("--network", "none", "--label", "connlab.check=testrun", "--volume", f"{NAME}:/connlab")
    files = ("--read-only", "--tmpfs", "/tmp:mode=1777", "--tmpfs", "/raw:uid=10001")  # noqa: S108 # in the container
    docker("volume", "create", "--label", "connlab.check=testrun", NAME)
    try:
        docker("run", "--rm", *labelled, "--entrypoint", first[0], "connlab/collector", *first[1:])
        docker(
            *("run", "--detach", "--name", NAME, *labelled, *files, *environment, "--env", "CONNLAB_JOB=connlab-a-2"),
            *("--entrypoint", "sh", "connlab/k6", "-c", f"k6 run --quiet {segment} {spec['arguments']} {script}"),
        )
        yield
    finally:
        docker("rm", "--force", NAME)
        docker("volume", "rm", NAME)


def ask(*arguments: str) -> str:
    command = ("run", "--rm", "--network", f"container:{NAME}", "connlab/collector", "http", *arguments, STATUS)
    return subprocess.run(["docker", *command], capture_output=True, text=True, check=False, timeout=HANG_S).stdout


@pytest.mark.usefixtures("runner")
def test_a_runner_waits_for_the_lab_runs_its_part_and_keeps_its_files() -> None:
    wait_until(lambda: '"status":4' in ask(), "the start line")
    assert '"paused":false' in ask("--method", "PATCH", "--body", LET_GO)
    assert docker("exec", NAME, *held.awaited_exit_code()) == "0\n"
    header, *_, end = map(json.loads, docker("exec", NAME, "cat", "/raw/requests.jsonl").splitlines())
    assert (header["instance"], end["requests"]) == ("k6-2", 1)
    assert docker("inspect", "--format", "{{.State.Running}}", NAME) == "true\n"
