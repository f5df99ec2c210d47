"""Clients as a TestRun: what the lab asks of k6-operator, and how it does without what the operator lacks.

No operator runs in any test. What the lab renders is held against the operator's published fields
(testdata/testrun.schema.json), and the shell in it is carried out as it stands; tests/e2e/test_testrun.py has k6 in it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from analysis.evidence.rawfiles import Places
from lab import paths
from lab.engine import choice
from lab.engine.kubernetes import held, objects, rights, testrun
from lab.engine.kubernetes.ending import Containers
from lab.engine.kubernetes.engine import Kubernetes
from lab.engine.kubernetes.kubectl import Kubectl, KubectlFailed
from lab.engine.kubernetes.objects import Images
from lab.engine.kubernetes.starting import Start
from lab.engine.kubernetes.watch import Watch
from lab.engine.protocol import Parts
from lab.errors import BadInput
from lab.scenario.topology import topology_of
from tests.lab.engine import InMemoryDocker
from tests.lab.support import MINIMAL, Make, yaml_with

PUBLISHED = Draft202012Validator(json.loads((Path(__file__).parent / "testdata/testrun.schema.json").read_text()))
TWO = yaml_with(MINIMAL, {"users: 3": "users: 3\n    instances: 2"})
OWNER = {"apiVersion": "batch/v1", "kind": "Job", "name": "connlab-run-1", "uid": "1"}
HOSTS = {"backend-1": "192.0.2.7"}
# Far more than a shell takes, on a busy machine too.
LIMIT_S = 300


def parts_of(make: Make, *overrides: str) -> Parts:
    effective = make(*overrides, text=TWO)
    return Parts(effective, topology_of(effective), "run-1", Places(Path("/run-1")))


def rendered(make: Make, *overrides: str, registry: str | None = None, port: int | None = None) -> dict[str, Any]:
    pod = objects.pod(
        parts_of(make, *overrides),
        "k6-1",
        Images(registry),
        owned=OWNER,
        hosts={},
        spread=False,
        metrics_port=port,
    )
    return testrun.render("run-1", pod, 2, HOSTS)


def of_start(made: dict[str, Any], name: str) -> dict[str, Any]:
    return next(dict(one) for one in made["spec"]["runner"]["initContainers"] if one["name"] == name)


def settings(container: dict[str, Any]) -> dict[str, str]:
    return {one["name"]: one["value"] for one in container["env"] if "value" in one}


def expanded(command: list[str]) -> list[str]:
    """A command as Kubernetes hands it on."""
    return [part.replace("$$", "$") for part in command]


@pytest.mark.parametrize("registry", [None, "registry.example/lab"])
@pytest.mark.parametrize("port", [None, 9645])
def test_a_testrun_has_the_operator_s_published_fields_and_no_others(
    effective: Make, registry: str | None, port: int | None
) -> None:
    made = rendered(effective, "kernel.k6.net.ipv4.tcp_syn_retries=3", registry=registry, port=port)
    PUBLISHED.validate(made)
    PUBLISHED.validate(testrun.trial())


@pytest.mark.parametrize("field", ["hostAliases", "shareProcessNamespace", "command"])
def test_a_field_that_the_operator_does_not_publish_is_found(effective: Make, field: str) -> None:
    made = rendered(effective)
    made["spec"]["runner"][field] = []
    assert not PUBLISHED.is_valid(made)


def test_there_are_as_many_runners_as_instances_and_each_learns_which_it_is(effective: Make) -> None:
    made = rendered(effective)
    assert made["spec"]["parallelism"] == 2
    assert made["metadata"]["ownerReferences"] == [OWNER]
    told = settings(made["spec"]["runner"]) | settings(of_start(made, "collector"))
    assert not {"CONNLAB_INSTANCE", "CONNLAB_ROLE", "CONNLAB_SEGMENT"} & set(told)
    assert told["CONNLAB_TARGETS"] == "http://192.0.2.7:8080"
    assert told["CONNLAB_SEGMENT_SEQUENCE"] == "0,1/2,1"


def test_the_collector_runs_beside_k6_with_what_it_has_beside_any_role(effective: Make) -> None:
    made = rendered(effective)
    collector = of_start(made, "collector")
    assert collector["restartPolicy"] == "Always"
    assert made["spec"]["runner"]["containerSecurityContext"]["capabilities"] == {
        "drop": ["ALL"],
        "add": ["NET_ADMIN", "NET_RAW"],
    }
    assert {one["mountPath"] for one in collector["volumeMounts"]} == {"/raw", "/tmp"}  # noqa: S108 # in the container


def test_k6_gets_the_arguments_that_its_own_image_gives_it(effective: Make) -> None:
    entry_point = (paths.ROOT / "k6/connlab-k6").read_text()
    arguments = rendered(effective)["spec"]["arguments"].split(" ")
    assert all(one in entry_point.replace("\\\n", "") for one in arguments)
    assert rendered(effective)["spec"]["script"] == {"localFile": "/usr/share/connlab-k6/workloads/users.js"}
    assert (paths.ROOT / "k6/workloads/users.js").is_file()


def test_the_starter_s_image_has_no_program_that_could_start_a_runner(effective: Make) -> None:
    assert rendered(effective)["spec"]["starter"]["image"] == "connlab/collector:latest"
    installed = [(paths.ROOT / file).read_text() for file in ("collector/Dockerfile", "setup/base.Dockerfile")]
    assert not any("curl" in one for one in installed)


# --- the shell in it ----------------------------------------------------------------------------------------------


def carried_out(script: list[str], folder: Path, **environment: str) -> subprocess.Popen[str]:
    """Start a container's command with the folder in place of the container's /tmp."""
    command = [part.replace("/tmp/", f"{folder}/") for part in script]  # noqa: S108 # in the container
    return subprocess.Popen(command, env={"PATH": "/usr/bin:/bin", **environment}, stdout=subprocess.PIPE, text=True)


def await_file(file: Path) -> str:
    end = time.monotonic() + LIMIT_S
    while not (file.is_file() and file.read_text()):
        assert time.monotonic() < end, f"there is no {file}"
        time.sleep(0.02)
    return file.read_text().strip()


@pytest.mark.parametrize("after_failure", [True, False])
def test_a_container_outlives_its_program_until_it_may_go(tmp_path: Path, after_failure: bool) -> None:  # noqa: FBT001
    script = held.command(held.script(after_failure=after_failure), "sh", "-c", 'exit "$1"', "sh", "99")
    with carried_out(expanded(script), tmp_path) as process:
        assert await_file(tmp_path / "connlab.exit") == "99"
        if after_failure:
            assert await_file(tmp_path / "connlab.holder") == str(process.pid)
            assert process.poll() is None
            process.send_signal(signal.SIGTERM)
        assert process.wait(LIMIT_S) == (0 if after_failure else 99)


@pytest.mark.parametrize("_attempt", range(20))
def test_a_container_that_is_to_go_takes_its_program_along(tmp_path: Path, _attempt: int) -> None:
    """It ends even if the signal comes before the shell's child has become the program."""
    with carried_out(expanded(held.command(held.script(after_failure=True), "sleep", "1000")), tmp_path) as process:
        program = int(await_file(tmp_path / "connlab.pid"))
        process.send_signal(signal.SIGTERM)
        assert process.wait(LIMIT_S) == 0
        end = time.monotonic() + LIMIT_S
        while Path(f"/proc/{program}/cmdline").is_file() and Path(f"/proc/{program}/cmdline").read_bytes():
            assert time.monotonic() < end
            time.sleep(0.02)


def test_the_operator_s_command_finds_a_k6_that_knows_its_instance_and_stays(effective: Make, tmp_path: Path) -> None:
    """The operator runs `sh -c "k6 run …"`, with PATH as the TestRun has it."""
    real, programs, temporary = (tmp_path / one for one in ("real", "connlab", "tmp"))
    for folder in (real, programs, temporary):
        folder.mkdir()
    (real / "k6").write_text('#!/bin/sh\necho "$CONNLAB_INSTANCE: $*"\nexit 99\n')
    (real / "k6").chmod(0o755)
    made = rendered(effective)
    path = settings(made["spec"]["runner"])["PATH"].split(":")
    assert path[0] == "/connlab"

    def moved(text: str) -> str:
        ours = text.replace("/tmp/", f"{temporary}/")  # noqa: S108 # in the container
        return ours.replace("/connlab/", f"{programs}/").replace(":".join(path[1:]), f"{real}:/usr/bin:/bin")

    subprocess.run([moved(one) for one in expanded(of_start(made, "programs")["command"])], check=True)
    ran = ["sh", "-c", "k6 run --quiet --execution-segment=0:1/2 x.js --paused --tag testrun_name=connlab-c0ffee"]
    environment = {"PATH": f"{programs}:{real}:/usr/bin:/bin", "CONNLAB_JOB": "connlab-c0ffee-2"}
    with subprocess.Popen(ran, env=environment, stdout=subprocess.PIPE, text=True, process_group=0) as process:
        assert await_file(temporary / "connlab.exit") == "99"
        assert process.stdout
        arguments = "run --quiet --execution-segment=0:1/2 x.js --paused --tag testrun_name=connlab-c0ffee"
        assert process.stdout.readline() == f"k6-2: {arguments}\n"
        assert process.poll() is None
        asked = [moved(one) for one in held.awaited_exit_code()]
        assert subprocess.run(asked, capture_output=True, text=True, check=True).stdout == "99\n"
        os.kill(int(await_file(temporary / "connlab.holder")), signal.SIGTERM)


# --- what the cluster says ----------------------------------------------------------------------------------------


def runner(number: int, **k6: object) -> dict[str, Any]:
    """What the cluster says of a runner's pod."""
    labels = {"connlab.instance": "k6", "k6_cr": "connlab-c0ffee", "job-name": f"connlab-c0ffee-{number}"}
    running: dict[str, Any] = {"running": {}}
    status = {
        "containerStatuses": [{"name": "k6", "state": k6 or running, "containerID": "containerd://1"}],
        "initContainerStatuses": [
            {"name": "programs", "state": {"terminated": {"exitCode": 0}}},
            {"name": "collector", "state": running, "containerID": "containerd://2"},
        ],
    }
    metadata = {"name": f"connlab-c0ffee-{number}-x2x", "labels": labels}
    return {"type": "MODIFIED", "object": {"metadata": metadata, "status": status}}


def test_a_runner_s_instance_is_told_by_its_job_and_its_beginning_is_no_end() -> None:
    seen = Watch(Kubectl(client=InMemoryDocker()), "run-1")
    seen.take(runner(2))
    assert seen.name("k6-2") == "connlab-c0ffee-2-x2x"
    assert (seen.ended("k6-2"), seen.ended("collector-k6-2")) == (None, None)


def test_a_collector_that_the_cluster_starts_again_has_ended() -> None:
    seen, told = Watch(Kubectl(client=InMemoryDocker()), "run-1"), runner(1)
    told["object"]["status"]["initContainerStatuses"][1]["lastState"] = {"terminated": {"exitCode": 1}}
    seen.take(told)
    assert seen.ended("collector-k6-1") == "collector-k6-1 ended with exit code 1"


def test_the_end_of_k6_is_asked_for_where_its_container_stays() -> None:
    client = InMemoryDocker()
    # The first command is cut off on its way.
    client.says("exec connlab-c0ffee-1-x2x --container k6 -- *", "", once=True)
    client.says("exec connlab-c0ffee-1-x2x --container k6 -- *", "99\n")
    kubectl = Kubectl(client=client)
    seen = Watch(kubectl, "run-1")
    seen.take(runner(1))
    testrun.follow_ends(kubectl, seen, ["k6-1"])
    assert seen.await_pods(["k6-1"], lambda _: seen.exit_code("k6-1") is not None, LIMIT_S)
    # The removal of the pod says nothing new.
    seen.take(runner(1, terminated={"exitCode": 137}))
    assert seen.exit_code("k6-1") == 99


def test_a_runner_is_ended_and_emptied_by_its_own_containers(effective: Make) -> None:
    client = InMemoryDocker()
    kubectl, parts = Kubectl(client=client), parts_of(effective)
    seen = Watch(kubectl, "run-1")
    seen.take(runner(1))
    seen.tell_end("k6-1", "k6", 0)
    containers = Containers(kubectl, parts, seen, parts.topology.clients)
    containers.stop("k6-1", 1)
    containers.stop_collector("k6-1", 1)
    containers.await_ends(parts.topology.clients)
    containers.fetch(parts.topology)
    pod = "connlab-c0ffee-1-x2x"
    assert [call.split(" -- ")[0] for call in client.calls[:2]] == [
        f"exec {pod} --container k6",
        f"exec {pod} --container collector",
    ]
    assert sorted(client.calls[2:]) == [
        f"cp --container collector --retries 3 {pod}:/raw /run-1/raw/k6-1/collector",
        f"cp --container k6 --retries 3 {pod}:/raw /run-1/raw/k6-1/role",
    ]
    assert containers.exit_codes(parts.topology)["k6-1"] == 0


def test_a_start_makes_the_servers_pods_and_then_one_testrun(effective: Make) -> None:
    """The pods never come to be ready here: what counts is what was made, and that the runners' Jobs were not."""
    client = InMemoryDocker()
    made: list[dict[str, Any]] = []

    class Recording(Kubectl):
        def create(self, objects: Any, *options: str) -> list[dict[str, Any]]:  # noqa: ANN401
            listed = list(objects)
            made.extend({**one, "tried": bool(options)} for one in listed)
            return [{"metadata": {"name": "connlab-run-1", "uid": "1"}} for _ in listed]

    kubectl, parts = Recording(client=client), parts_of(effective)
    seen = Watch(kubectl, "run-1")
    for number in (1, 2):
        told = runner(number)
        told["object"]["status"] |= {"podIP": "192.0.2.1", "conditions": [{"type": "Ready", "status": "True"}]}
        seen.take(told)
    server = {"name": "connlab-run-1-backend-1", "labels": {"connlab.instance": "backend-1"}}
    ready = {"podIP": "192.0.2.7", "conditions": [{"type": "Ready", "status": "True"}]}
    seen.take({"type": "ADDED", "object": {"metadata": server, "status": ready}})
    start = Start(kubectl, parts, seen, Images(), lambda _: "", False, None, parts.topology.clients)
    start.start()
    kinds = [one["kind"] for one in made if not one["tried"]]
    assert kinds == ["Job", "NetworkPolicy", "Pod", "TestRun"]
    assert {one["kind"] for one in made if one["tried"]} == {"Pod", "TestRun"}
    assert settings(made[-1]["spec"]["runner"])["CONNLAB_TARGETS"] == "http://192.0.2.7:8080"
    policy = next(one for one in made if one["kind"] == "NetworkPolicy")
    assert policy["spec"]["ingress"][1] == {"ports": [{"protocol": "TCP", "port": 6565}]}
    healthy = [call for call in client.calls if "collector healthy" in call]
    assert [call.split()[1] for call in healthy] == ["connlab-c0ffee-1-x2x", "connlab-c0ffee-2-x2x"]


# --- refusals -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "way_on"),
    [
        ('error: no matches for kind "TestRun" in version "k6.io/v1alpha1"', "install k6-operator in the cluster"),
        (
            'TestRun in version "v1alpha1" cannot be handled as a TestRun: unknown field "spec.initializer.disabled"',
            "take a newer k6-operator",
        ),
    ],
)
def test_a_cluster_without_the_kind_is_refused_before_anything_starts(
    monkeypatch: pytest.MonkeyPatch, said: str, way_on: str
) -> None:
    asked: list[object] = []
    monkeypatch.setattr(rights, "refuse_without_rights", lambda _, wanted: asked.extend(wanted))
    client = InMemoryDocker()
    client.says("create --output json --dry-run=server *", stderr=said, exit_code=1)
    with pytest.raises(KubectlFailed) as refused:
        Kubernetes(Kubectl(client=client), clients="testrun").images(["k6", "collector"])
    assert said in refused.value.what
    assert way_on in str(refused.value.way_on)
    assert len(client.calls) == 1
    assert ("create", "k6.io", "testruns") in asked


def test_k6_s_own_report_is_refused_with_the_line_that_asks_for_it(effective: Make) -> None:
    asked = effective("load.dashboard=true")
    engine = Kubernetes(clients="testrun")
    (problem,) = engine.cannot(asked, topology_of(asked))
    assert str(problem.where) == "--set load.dashboard=true"
    assert list(Kubernetes().cannot(asked, topology_of(asked))) == []


def test_a_testrun_is_refused_for_compose() -> None:
    with pytest.raises(BadInput, match="--clients is of the engine Kubernetes; add --engine kubernetes"):
        choice.choose("compose", clients="testrun")
