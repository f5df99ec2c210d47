"""`connlab observe --pod`: which pod is taken, what is refused before anything is added, and what it leaves."""

import json
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from formats import manifest
from lab.engines.kubernetes import kubectl, pod_sidecar
from lab.engines.kubernetes.engine import Kubernetes
from lab.engines.kubernetes.kubectl import Kubectl, KubectlFailed
from lab.engines.kubernetes.objects import Images
from lab.engines.kubernetes.pod_sidecar import PodSidecars
from lab.engines.programs import CompletedCommand
from lab.errors import BadInput, FilesLost, LabError
from lab.observe import observing
from lab.observe.options import parse_options
from lab.observe.targets import TargetNames, find_targets
from tests.lab.engine import InMemoryDocker
from tests.lab.support import connlab
from tests.lab.waiting import HANG_S, is_at_work, wait_until

RUNNING: dict[str, Any] = {"running": {}}


def pod(*, phase: str = "Running", web: object = RUNNING, uid: str = "u1", **more: object) -> dict[str, Any]:
    """What the cluster says of a pod of two containers."""
    statuses = [
        {"name": "web", "state": web, "containerID": "containerd://c1"},
        {"name": "proxy", "state": RUNNING, "containerID": "containerd://c2"},
    ]
    containers = [
        {"name": "web", "image": "acme/shop:1", "command": ["node"], "args": ["shop.js"]},
        {"name": "proxy", "image": "envoyproxy/envoy"},
    ]
    return {
        "metadata": {"name": "shop", "namespace": "lab", "uid": uid},
        "spec": {"nodeName": "node-2", "containers": containers, **more},
        "status": {"phase": phase, "containerStatuses": statuses},
    }


class Cluster(InMemoryDocker):
    """A cluster that grants all but `lacks`, and has one pod.

    Attributes:
        found: the pod; None if there is none.
        collector: the state of each collector that is added.
        added: these, as they were asked for.
    """

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, Any] | None = pod()
        self.lacks = ""
        self.collector: dict[str, Any] = {"running": {}}
        self.added: list[dict[str, Any]] = []
        self.tried: list[dict[str, Any]] = []

    def run(self, arguments: Any, *, stdin: str | None = None, **options: Any) -> CompletedCommand:  # noqa: ANN401 # as its base
        command = " ".join(arguments)
        ended = super().run(arguments, stdin=stdin, **options)
        if ended.exit_code or ended.stdout:
            return ended
        if " create --output json" in f" {command}":
            rows = [{"status": {"allowed": right[2] != self.lacks}} for right in kubectl.OBSERVING]
            return CompletedCommand(0, "\n".join(map(json.dumps, rows)))
        if " replace --raw " in f" {command}" and stdin is not None:
            made = json.loads(stdin)["spec"]["ephemeralContainers"][-1]
            (self.tried if "dryRun=All" in command else self.added).append(made)
        if " get pod " in f" {command}":
            return CompletedCommand(0, json.dumps(self._with_added()) if self.found else "")
        return ended

    def _with_added(self) -> dict[str, Any]:
        assert self.found
        statuses = [
            {
                "name": one["name"],
                "image": one["image"],
                "imageID": "connlab/collector@sha256:1",
                "state": self.collector,
            }
            for one in self.added
        ]
        return {**self.found, "status": {**self.found["status"], "ephemeralContainerStatuses": statuses}}


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def pods(cluster: Cluster) -> PodSidecars:
    return PodSidecars(Kubectl(client=cluster), Images())


def test_a_pod_is_found_and_its_program_known_by_its_command(cluster: Cluster) -> None:
    (found,) = find_targets(TargetNames(pod="lab/shop/web"), pods(cluster))
    assert (found.record.instance, found.record.kind) == ("lab-shop-web", "pod")
    assert found.record.program is not None
    assert found.record.program.name == "Node.js"
    assert (found.processes, found.container.machine) == (True, "node-2")
    # Nothing but a dry run has been asked for.
    assert ([one["targetContainerName"] for one in cluster.tried], cluster.added) == (["web"], [])


def test_without_a_container_the_network_alone_is_seen(cluster: Cluster) -> None:
    (found,) = find_targets(TargetNames(pod="lab/shop"), pods(cluster))
    assert (found.record.image, found.processes) == ("acme/shop:1, envoyproxy/envoy", False)
    assert "targetContainerName" not in cluster.tried[0]


@pytest.mark.parametrize(
    ("found", "name", "message"),
    [
        (None, "lab/shop", "there is no pod 'shop' in the namespace 'lab'; 'kubectl get pods --namespace lab' lists"),
        (
            pod(phase="Pending"),
            "lab/shop",
            "the pod 'shop' does not run (Pending); see what holds it up: 'kubectl desc",
        ),
        (pod(), "lab/shop/db", "the pod 'shop' has no container 'db'; those that run: web, proxy"),
        (
            pod(web={"waiting": {"reason": "CrashLoopBackOff"}}),
            "lab/shop/web",
            "the container 'web' of 'shop' does not run (CrashLoopBackOff); leave --container out",
        ),
    ],
)
def test_what_does_not_run_is_refused(cluster: Cluster, found: dict[str, Any] | None, name: str, message: str) -> None:
    cluster.found = found
    with pytest.raises(BadInput) as refused:
        find_targets(TargetNames(pod=name), pods(cluster))
    assert str(refused.value).startswith(message)
    assert cluster.added == []


def test_a_missing_right_is_named_before_anything_is_added(cluster: Cluster) -> None:
    cluster.lacks = "pods/ephemeralcontainers"
    with pytest.raises(LabError, match="in the namespace 'lab' the lab may not: update pods/ephemeralcontainers"):
        pods(cluster).find_container("lab/shop")


@pytest.mark.parametrize(
    ("said", "hint"),
    [
        (
            'pods "shop" is forbidden: violates PodSecurity "baseline:latest": non-default capabilities',
            "label the namespace so that a collector may run there",
        ),
        ('Error from server (Forbidden): pods "shop" is forbidden: User "me" cannot update', "has the Role"),
    ],
)
def test_a_namespace_that_takes_no_collector_is_refused_in_the_cluster_s_words(
    cluster: Cluster, said: str, hint: str
) -> None:
    cluster.says("* replace --raw *ephemeralcontainers?dryRun=All *", stderr=said, exit_code=1)
    with pytest.raises(KubectlFailed) as refused:
        pods(cluster).find_container("lab/shop")
    assert said in refused.value.what
    assert hint in str(refused.value)


@pytest.mark.parametrize("reason", ["ErrImageNeverPull", "ImagePullBackOff"])
def test_an_image_that_the_node_cannot_have_is_refused(cluster: Cluster, reason: str, tmp_path: Path) -> None:
    found = pods(cluster).find_container("lab/shop")
    cluster.collector = {"waiting": {"reason": reason, "message": "no such manifest"}}
    with pytest.raises(LabError, match=f"cannot have the image connlab/collector:latest: {reason}: no such manifest"):
        pods(cluster).start("c", {}, tmp_path, target=found.id, processes=False)


def test_a_collector_has_no_right_but_to_capture_whatever_the_pod_asks_of_its_own(
    cluster: Cluster, tmp_path: Path
) -> None:
    found = pods(cluster).find_container("lab/shop/web")
    environment = {"CONNLAB_DEADLINE_S": "360"}
    made = pods(cluster).start("connlab-observe-" + "x" * 60, environment, tmp_path, target=found.id, processes=True)
    (added,) = cluster.added
    assert added["securityContext"]["capabilities"] == {"drop": ["ALL"], "add": ["NET_RAW", "WAKE_ALARM"]}
    assert (added["securityContext"]["runAsUser"], added["securityContext"]["runAsNonRoot"]) == (0, False)
    assert not added["securityContext"]["allowPrivilegeEscalation"]
    assert added["targetContainerName"] == "web"
    assert {"name": "CONNLAB_DEADLINE_S", "value": "360"} in added["env"]
    # Kubernetes refuses these in an ephemeral container.
    assert not {"resources", "ports", "startupProbe", "lifecycle"} & set(added)
    assert len(added["name"]) == 63
    assert made.image() == "sha256:1"


def test_a_container_that_could_reach_the_collector_is_seen_without_its_processes(cluster: Cluster) -> None:
    assert cluster.found
    web = cluster.found["spec"]["containers"][0]
    web["securityContext"] = {"capabilities": {"add": ["SYS_PTRACE"]}}
    (found,) = find_targets(TargetNames(pod="lab/shop/web"), pods(cluster))
    assert (found.processes, found.container.apart is None) == (False, False)
    web["securityContext"] = {"privileged": True}
    assert not find_targets(TargetNames(pod="lab/shop/web"), pods(cluster))[0].processes
    assert find_targets(TargetNames(pod="lab/shop/proxy"), pods(cluster))[0].processes


@pytest.mark.parametrize(
    ("shared", "message"),
    [
        ("hostPID", "lab/shop is in the host's own process namespace"),
        ("hostNetwork", "in the host's own network namespace"),
    ],
)
def test_a_pod_in_its_node_s_namespaces_is_refused_without_leave(cluster: Cluster, shared: str, message: str) -> None:
    assert cluster.found
    cluster.found["spec"][shared] = True
    with pytest.raises(BadInput, match=f"{message}.*add --host"):
        find_targets(TargetNames(pod="lab/shop"), pods(cluster))
    assert cluster.added == []
    (found,) = find_targets(TargetNames(pod="lab/shop", host=True), pods(cluster))
    assert (found.container.with_host, found.processes) == (shared == "hostPID", False)


def test_a_second_collector_has_a_name_of_its_own(cluster: Cluster, tmp_path: Path) -> None:
    found = pods(cluster).find_container("lab/shop")
    for _ in range(2):
        pods(cluster).start("c", {}, tmp_path, target=found.id, processes=False)
    assert len({one["name"] for one in cluster.added}) == 2


def test_a_pod_that_was_made_anew_is_another_and_a_container_too(cluster: Cluster) -> None:
    of_pod, of_container = (pods(cluster).find_container(name).id for name in ("lab/shop", "lab/shop/web"))
    assert pods(cluster).is_running(of_pod)
    assert pods(cluster).is_running(of_container)
    cluster.found = pod(uid="u2", web={"waiting": {"reason": "CrashLoopBackOff"}})
    assert not pods(cluster).is_running(of_pod)
    assert not pods(cluster).is_running(of_container)
    cluster.found = None
    assert not pods(cluster).is_running(of_pod)


def test_a_collector_is_ended_then_emptied_then_let_go(cluster: Cluster, tmp_path: Path) -> None:
    found = pods(cluster).find_container("lab/shop")
    made = pods(cluster).start("c", {}, tmp_path, target=found.id, processes=False)
    name = cluster.added[0]["name"]
    before = len(cluster.calls)
    made.stop()
    said = [one for one in cluster.calls[before:] if " get pod " not in one]
    assert [one.partition(" -- ")[0] for one in said] == [
        f"--namespace lab exec shop --container {name}",
        f"--namespace lab cp --container {name} --retries 3 shop:/raw {tmp_path}",
        f"--namespace lab exec shop --container {name}",
    ]
    assert "connlab.pid" in said[0]
    assert "connlab.holder" in said[2]


def test_files_that_are_lost_are_said_to_be(cluster: Cluster, tmp_path: Path) -> None:
    found = pods(cluster).find_container("lab/shop/web")
    made = pods(cluster).start("c", {}, tmp_path, target=found.id, processes=True)
    cluster.says("* exec *", stderr="container not found", exit_code=1)
    cluster.collector = {"terminated": {"exitCode": 137}}
    with pytest.raises(FilesLost, match="what the collector in the pod 'shop' recorded is lost"):
        made.stop()
    assert made.ended() == "exit code 137"


# --- the command --------------------------------------------------------------------------------------------------


@pytest.fixture
def watch(cluster: Cluster, elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], manifest.Manifest]:
    """Observe the pod for a second, and give the manifest."""
    monkeypatch.setattr("lab.runs.run_results.analyse_run", lambda _: {})
    cluster.says("* collector inspect *", json.dumps({"sysctls": {}, "addresses": ["192.0.2.9"], "listeners": []}))
    cluster.says("* date +%s%6N", "1763956800000000\n")
    cluster.says("* version *", json.dumps({name: {"gitVersion": "v1"} for name in ("serverVersion", "clientVersion")}))
    cluster.says("version *", json.dumps({name: {"gitVersion": "v1"} for name in ("serverVersion", "clientVersion")}))

    def take() -> manifest.Manifest:
        engine = Kubernetes(Kubectl(client=cluster))
        targets = find_targets(TargetNames(pod="lab/shop/web"), engine.sidecars())
        options = parse_options("1s", "headers", 256, None, None, host=False)
        try:
            observing.observe(targets, options, engine, ["connlab"])
        finally:
            (file,) = elsewhere.glob("results/observed-lab-shop-web/2*/manifest.json")
        return manifest.load_manifest(file.parent)

    return take


def test_a_pod_is_observed_and_its_node_s_clock_is_looked_at(watch: Callable[[], manifest.Manifest]) -> None:
    told = watch()
    assert (told.status, told.images, told.nodes) == (
        "complete",
        {"collector": "sha256:1"},
        {"lab-shop-web": "node-2"},
    )
    assert [one.shown_us for one in told.clocks] == [1763956800000000] * 6
    assert told.observed is not None
    assert told.observed.targets[0].kind == "pod"


def test_a_container_that_ends_takes_the_recording_with_it(
    cluster: Cluster,
    watch: Callable[[], manifest.Manifest],
    capsys: pytest.CaptureFixture[str],
    elsewhere: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster.says("* cp *", stderr="container not found", exit_code=1)
    monkeypatch.setattr(PodSidecars, "is_running", lambda *_: False)
    with pytest.raises(FilesLost, match="leave --container out"):
        watch()
    (file,) = elsewhere.glob("results/observed-lab-shop-web/2*/manifest.json")
    assert manifest.load_manifest(file.parent).status == "failed"
    said = capsys.readouterr().err
    assert "lab/shop/web ended while it was observed\n" in said


def test_it_says_that_its_container_stays_in_the_pod(cluster: Cluster) -> None:
    targets = find_targets(TargetNames(pod="lab/shop/web"), pods(cluster))
    says = "\n".join(observing.announce(targets, parse_options("60s", "headers", 256, None, None, host=False)))
    assert "its entry stays there" in says
    assert "takes its collector away" not in says
    assert "processor time and memory of its processes" in says


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--pod", "shop"], "--pod: 'shop' is not a pod; write NAMESPACE/POD, such as lab/shop-7c9d-x2x"),
        (["--pod", "lab/--all"], "'lab/--all' is not a pod"),
        (["--pod", "lab/shop", "--container", "a", "--container", "b"], "--pod takes one --container"),
        (["--pod", "lab/shop", "--pid", "1"], "--pid is of this machine, and --pod of a cluster; name one of the two"),
        (["--container", "shop", "--context", "mine"], "--context and --registry need --pod; name the pod by --pod"),
        (
            ["--pod", "lab/shop", "--host"],
            "--host: the lab does not know the node's interfaces; name one: --interface eth0",
        ),
    ],
)
def test_a_pod_is_named_with_its_namespace_and_alone(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lab.engines.selection._choice.engine", None)
    assert connlab("observe", *arguments) == 2
    assert message in capsys.readouterr().err


# --- the shell in it ----------------------------------------------------------------------------------------------


def started(folder: Path, *program: str) -> subprocess.Popen[bytes]:
    """Start a container's command with the folder in place of the container's /tmp."""
    command = [part.replace("$$", "$").replace("/tmp/", f"{folder}/") for part in pod_sidecar.holding_command(*program)]  # noqa: S108
    return subprocess.Popen(command, env={"PATH": "/usr/bin:/bin"})


def await_file(file: Path) -> str:
    wait_until(lambda: file.is_file() and bool(file.read_text()))
    return file.read_text().strip()


@pytest.mark.parametrize("code", [0, 99])
def test_a_container_outlives_its_program_until_it_may_go_unless_it_failed(tmp_path: Path, code: int) -> None:
    with started(tmp_path, "sh", "-c", 'exit "$1"', "sh", str(code)) as process:
        assert await_file(tmp_path / "connlab.exit") == str(code)
        if code == 0:
            assert await_file(tmp_path / "connlab.holder") == str(process.pid)
            assert process.poll() is None
            process.send_signal(signal.SIGTERM)
        assert process.wait(HANG_S) == code


@pytest.mark.parametrize("_attempt", range(20))
def test_a_container_that_is_to_go_takes_its_program_along(tmp_path: Path, _attempt: int) -> None:
    """It ends even if the signal comes before the shell's child has become the program."""
    with started(tmp_path, "sleep", "1000") as process:
        program = int(await_file(tmp_path / "connlab.pid"))
        process.send_signal(signal.SIGTERM)
        assert process.wait(HANG_S) == 0
        wait_until(lambda: not is_at_work(program))
