"""The engine Kubernetes: what it asks of a cluster, and what it makes of the answers. A real one: tests/kubernetes."""

import json
import re
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from analysis.evidence.rawfiles import Places
from lab import paths
from lab.engines import selection
from lab.engines.kubernetes import objects, pod_problems
from lab.engines.kubernetes.containers import Containers
from lab.engines.kubernetes.engine import Kubernetes
from lab.engines.kubernetes.kubectl import OBSERVING, RIGHTS, Kubectl, KubectlFailed
from lab.engines.kubernetes.objects import Images, owner_name
from lab.engines.kubernetes.pods import Pods, build_added_role
from lab.engines.kubernetes.running_pods import RunningPods
from lab.engines.kubernetes.startup import Start
from lab.engines.kubernetes.watch import Watch
from lab.engines.protocol import Parts
from lab.errors import BadInput, LabError
from lab.roles.declared_roles import ROLES
from lab.scenarios.resolved import ResolvedScenario
from lab.scenarios.topology import topology_of
from tests.lab.engine import InMemoryDocker
from tests.lab.support import MINIMAL, THROUGH_NGINX, Make

OWNER = {"kind": "Job", "name": "connlab-run-1", "uid": "1"}


def pod(
    make: Make,
    instance: str,
    *overrides: str,
    registry: str | None = None,
    spread: bool = False,
    text: str = MINIMAL,
    metrics_port: int | None = None,
) -> dict[str, Any]:
    effective = make(*overrides, text=text)
    made = pods_of(effective, registry, spread=spread, metrics=metrics_port)
    return made.build(instance, owned=OWNER, hosts={"192.0.2.7": ["backend-1"]})


def pods_of(
    found: ResolvedScenario, registry: str | None = None, *, spread: bool = False, metrics: int | None = None
) -> Pods:
    return Pods(Parts(found, topology_of(found), "run-1", Places(Path("/run-1"))), Images(registry), spread, metrics)


def container(pod: dict[str, Any], name: str) -> dict[str, Any]:
    return next(dict(one) for one in pod["spec"]["containers"] if one["name"] == name)


def test_the_collector_alone_has_capabilities_and_all_others_are_restricted(effective: Make) -> None:
    made = pod(effective, "k6-1")
    added = {one["name"]: one["securityContext"]["capabilities"].get("add") for one in made["spec"]["containers"]}
    assert added == {"collector": ["NET_ADMIN", "NET_RAW"], "role": None, "hold": None}
    restricted = [container(made, name)["securityContext"] for name in ("role", "hold")]
    assert all(one["runAsNonRoot"] and one["capabilities"]["drop"] == ["ALL"] for one in restricted)
    assert all(not one["securityContext"]["allowPrivilegeEscalation"] for one in made["spec"]["containers"])


def test_no_container_but_the_collector_can_write_the_collector_s_files(effective: Make) -> None:
    # `hold` has the user of the role, which reaches all that it mounts by /proc/<pid>/root.
    made = pod(effective, "k6-1")
    mounts = {(one["name"], each["name"]): each for one in made["spec"]["containers"] for each in one["volumeMounts"]}
    writers = {name for (name, volume), each in mounts.items() if volume == "collector-raw" and "readOnly" not in each}
    assert writers == {"collector"}
    assert all(each["readOnly"] is True for (name, _), each in mounts.items() if name == "hold")


def test_a_pod_ends_by_itself_belongs_to_the_run_and_has_no_word_with_the_cluster(effective: Make) -> None:
    made = pod(effective, "k6-1")
    assert made["spec"]["activeDeadlineSeconds"] > 0
    assert made["spec"]["automountServiceAccountToken"] is False
    assert made["metadata"]["ownerReferences"] == [OWNER]
    assert made["metadata"]["labels"]["connlab.run"] == "run-1"
    assert all({"requests", "limits"} == set(one["resources"]) for one in made["spec"]["containers"])


def test_no_container_starts_after_the_role_which_may_read_its_table_of_hosts_just_then(effective: Make) -> None:
    assert [one["name"] for one in pod(effective, "backend-1")["spec"]["containers"]] == ["collector", "hold", "role"]


def test_a_pod_has_its_sysctls_and_knows_what_stands_behind_it_by_name(effective: Make) -> None:
    made = pod(effective, "k6-1", "kernel.k6.net.ipv4.tcp_syn_retries=3")
    assert made["spec"]["securityContext"]["sysctls"] == [{"name": "net.ipv4.tcp_syn_retries", "value": "3"}]
    assert made["spec"]["hostAliases"] == [{"ip": "192.0.2.7", "hostnames": ["backend-1"]}]
    environment = {one["name"]: one["value"] for one in container(made, "role")["env"]}
    assert environment["CONNLAB_TARGETS"] == "http://backend-1:8080"


def test_a_dollar_in_a_value_is_no_variable_of_the_cluster_s() -> None:
    """It would fill in $(…), and takes a doubled $ for one."""
    given = {"A": "/a$(HOME)", "B": "$$(HOME)"}
    assert [one["value"] for one in objects.env_entries(given)] == ["/a$$(HOME)", "$$$$(HOME)"]


def test_images_are_loaded_into_nodes_or_pulled_from_a_registry(effective: Make) -> None:
    assert container(pod(effective, "k6-1"), "role")["image"] == "connlab/k6:latest"
    pulled = container(pod(effective, "k6-1", registry="registry.example/lab/"), "role")
    assert re.fullmatch(r"registry\.example/lab/k6:\d+\.\d+\.\d+-[0-9a-f]{16}", pulled["image"])
    assert pulled["imagePullPolicy"] == "IfNotPresent"


def test_all_pods_of_a_run_are_on_one_node_unless_they_are_to_be_spread(effective: Make) -> None:
    assert set(pod(effective, "k6-1")["spec"]["affinity"]) == {"podAffinity"}
    assert set(pod(effective, "k6-1", spread=True)["spec"]["affinity"]) == {"podAntiAffinity"}


def test_where_pods_are_spread_every_server_captures(effective: Make) -> None:
    def mode(instance: str, *, spread: bool) -> str:
        made = pod(effective, instance, spread=spread, text=THROUGH_NGINX)
        return next(
            str(one["value"]) for one in container(made, "collector")["env"] if one["name"] == "CONNLAB_CAPTURE"
        )

    assert [mode("backend-1", spread=spread) for spread in (False, True)] == ["off", "headers"]
    assert [mode("nginx", spread=spread) for spread in (False, True)] == ["headers", "headers"]


def test_everything_goes_with_its_owner_which_the_cluster_removes_at_the_deadline() -> None:
    made = objects.build_owner("20261123-041500", Images(), 100)
    assert made["spec"]["ttlSecondsAfterFinished"] == 0
    assert made["spec"]["template"]["spec"]["containers"][0]["args"] == ["hold", "--for", "100s"]
    rules = objects.build_network_policy("run-1", OWNER)["spec"]
    assert rules["ingress"][0]["from"] == rules["egress"][0]["to"] == [{"podSelector": rules["podSelector"]}]


def test_a_role_that_was_stopped_is_added_to_its_pod_anew(effective: Make) -> None:
    made = pod(effective, "backend-1")
    again = build_added_role(pods_of(effective()).role_container("backend-1"), 2)
    assert again["name"] == "role-2"
    assert {name: again[name] for name in ("image", "env", "volumeMounts")} == {
        name: container(made, "role")[name] for name in ("image", "env", "volumeMounts")
    }
    assert "resources" not in again


# --- what the cluster says --------------------------------------------------------------------------------------


def said(instance: str, *, kind: str = "MODIFIED", **containers: dict[str, Any]) -> dict[str, Any]:
    statuses = [{"name": name, "image": "connlab/k6:latest", "state": state} for name, state in containers.items()]
    metadata = {"name": f"connlab-run-1-{instance}", "labels": {"connlab.instance": instance}}
    return {"type": kind, "object": {"metadata": metadata, "status": {"containerStatuses": statuses}}}


def watch() -> Watch:
    return Watch(Kubectl(client=InMemoryDocker()), "run-1")


def test_a_container_that_has_ended_is_told_once() -> None:
    seen = watch()
    seen.take(said("k6-1", role={"running": {}}, collector={"running": {}}))
    assert seen.ended("k6-1") is None
    seen.take(said("k6-1", role={"terminated": {"exitCode": 137, "reason": "OOMKilled"}}, collector={"running": {}}))
    assert seen.ended("k6-1") == "k6-1 ended with exit code 137, out of memory"
    assert seen.ended("collector-k6-1") is None


@pytest.mark.parametrize(
    ("ended", "message"),
    [
        (
            {"reason": "StartError", "message": 'exec: "k": no such file'},
            "cannot start role of .*-k6-1: StartError: exec: ",
        ),
        ({"reason": "Error"}, "k6-1 ended with exit code 128 during its start:\n  its words"),
    ],
)
def test_a_container_that_cannot_start_is_said_in_the_runtime_s_words(
    effective: Make, ended: dict[str, Any], message: str
) -> None:
    seen, made = watch(), effective()
    seen.take(said("k6-1", role={"terminated": {"exitCode": 128, **ended}}, collector={"running": {}}))
    parts = Parts(made, topology_of(made), "run-1", Places(Path("/run")))
    kubectl = Kubectl(client=InMemoryDocker())
    start = Start(kubectl, Pods(parts, Images()), seen, lambda _: "\n  its words", RunningPods(kubectl, Images()))
    with pytest.raises(LabError, match=message):
        start.refuse_ended()


def test_what_somebody_adds_to_a_pod_is_no_part_of_the_run() -> None:
    seen, told = watch(), said("backend-1", role={"running": {}})
    added = {"name": "connlab-observe-1-lab-shop-c0ffee", "state": {"terminated": {"exitCode": 0}}}
    told["object"]["status"]["ephemeralContainerStatuses"] = [added]
    seen.take(told)
    assert seen.ended("backend-1") is None
    added["name"] = "role-2"
    seen.take(told)
    assert seen.ended("backend-1") == "backend-1 ended with exit code 0"


def test_an_end_that_was_asked_for_is_none_of_the_run_s() -> None:
    seen = watch()
    seen.expect("backend-1", end=True)
    seen.take(said("backend-1", role={"terminated": {"exitCode": 143}}))
    assert (seen.exit_code("backend-1"), seen.expected_exit_code("backend-1")) == (None, 143)
    seen.expect("backend-1", end=False)
    # The same word again, as each change of a pod brings it.
    seen.take(said("backend-1", role={"terminated": {"exitCode": 143}}))
    assert seen.ended("backend-1") is None


def test_a_pod_that_is_removed_has_ended_with_all_its_parts() -> None:
    seen = watch()
    seen.take(said("backend-1", kind="DELETED", role={"running": {}}))
    assert seen.ended("backend-1") == "the pod of backend-1 was removed from the cluster"
    assert seen.ended("collector-backend-1") == "the pod of backend-1 was removed from the cluster"
    assert seen.ended("k6-1") is None
    # Nothing more is asked of it: the others still have to be ended, and to hand out their files.
    assert seen.pod("backend-1") is None


def test_a_pod_that_is_gone_keeps_no_other_from_its_end(effective: Make) -> None:
    client = InMemoryDocker()
    client.says("exec connlab-run-1-backend-1 *", stderr="pods not found", exit_code=1)
    client.says("exec *", "ended\n")
    parts = Parts(effective(), topology_of(effective()), "run-1", Places(Path("/run-1")))
    seen = Watch(Kubectl(client=client), "run-1")
    for instance in ("k6-1", "backend-1"):
        seen.take(said_of_containers(instance))
    containers = Containers(Kubectl(client=client))
    containers.begin(Pods(parts, Images()), seen)
    for instance in ("backend-1", "k6-1"):
        containers.end_role(instance, 1)
    signal, awaited = client.calls[-2:]
    assert (signal.split()[-1], awaited.startswith("exec connlab-run-1-k6-1 ")) == ("TERM", True)


@pytest.mark.parametrize("indent", [None, 4])
def test_what_kubectl_prints_is_read_in_each_of_its_forms(indent: int | None) -> None:
    client = InMemoryDocker()
    told = [said("k6-1", role={"running": {}}), said("k6-1", role={"terminated": {"exitCode": 0}})]
    client.stays("get pods --watch *", "".join(json.dumps(one, indent=indent) + "\n" for one in told))
    with Watch(Kubectl(client=client), "run-1") as seen:
        assert seen.await_pods(["k6-1"], lambda _: seen.exit_code("k6-1") is not None, 60)
        assert seen.exit_code("k6-1") == 0


@pytest.mark.parametrize(
    ("answers", "said"), [("done\ndone\n", ""), ("", "the cluster did not send the signal to k6-1")]
)
def test_one_command_holds_a_role_and_lets_it_go_on(effective: Make, answers: str, said: str) -> None:
    client = InMemoryDocker()
    client.stays("exec --stdin connlab-run-1-k6-1 --container hold *", answers) if answers else client.says("exec *")
    kubectl, made = Kubectl(client=client), effective()
    parts = Parts(made, topology_of(made), "run-1", Places(Path("/run-1")))
    seen = Watch(kubectl, "run-1")
    containers = Containers(kubectl)
    containers.begin(Pods(parts, Images()), seen)
    with pytest.raises(LabError, match="k6-1 does not run"):
        containers.pause("k6-1")
    told = said_of_containers("k6-1")
    seen.take(told)
    with pytest.raises(LabError, match=said) if said else nullcontext():
        containers.pause("k6-1")
        containers.resume("k6-1")
    assert len(client.calls) == 1
    assert client.calls[0].endswith(" c0ffee")
    # A line lets it go on.
    assert client.heard == ([] if said else [""])


def said_of_containers(instance: str) -> dict[str, Any]:
    told = said(instance, role={"running": {}})
    told["object"]["status"]["containerStatuses"][0]["containerID"] = "containerd://c0ffee"
    return told


def test_a_forbidden_sysctl_is_refused_with_its_line_and_a_hint(effective: Make) -> None:
    status = {"reason": "SysctlForbidden", "message": 'forbidden sysctl: "net.ipv4.tcp_syn_retries" not allowlisted'}
    asked = effective("kernel.k6.net.ipv4.tcp_syn_retries=3")
    found = pod_problems.find_pod_problem({"metadata": {"name": "p"}, "status": {"phase": "Failed", **status}}, asked)
    assert isinstance(found, BadInput)
    assert "tcp_syn_retries=3" in str(found.problems[0].where)
    assert "allowedUnsafeSysctls" in str(found)


@pytest.mark.parametrize("reason", ["ErrImageNeverPull", "ImagePullBackOff"])
def test_an_image_that_cannot_be_had_is_said_in_the_cluster_s_words(reason: str) -> None:
    pod = said("k6-1", role={"waiting": {"reason": reason, "message": "no such manifest"}})["object"]
    found = pod_problems.find_pod_problem(pod)
    assert isinstance(found, LabError)
    assert f"connlab/k6:latest: {reason}: no such manifest" in found.what


def test_a_pod_that_is_being_made_has_no_trouble() -> None:
    assert (
        pod_problems.find_pod_problem(said("k6-1", role={"waiting": {"reason": "ContainerCreating"}})["object"]) is None
    )


def test_a_sysctl_that_a_node_s_kernel_lacks_is_refused(effective: Make) -> None:
    client = InMemoryDocker()
    message = "open /proc/sys/net/ipv4/tcp_rto_max_ms: no such file or directory: unknown"
    events = {"items": [{"reason": "FailedCreatePodSandBox", "message": message}]}
    client.says("get events *", json.dumps(events))
    found = next(pod_problems.read_warnings(Kubectl(client=client), "p", effective()))
    assert str(found).startswith("a node's kernel refuses net.ipv4.tcp_rto_max_ms in a pod: no such file")


def test_each_missing_right_is_named() -> None:
    client = InMemoryDocker()
    answers = [{"status": {"allowed": right[2] != "pods/exec"}} for right in RIGHTS]
    client.says("* create *", "\n".join(json.dumps(one, indent=2) for one in answers))
    with pytest.raises(LabError, match=r"in the namespace 'lab' the lab may not: create pods/exec\n"):
        Kubectl(namespace="lab", client=client).require_rights()


def test_the_guide_grants_the_rights_that_the_lab_asks_for() -> None:
    guide = (paths.ROOT / "docs/kubernetes.md").read_text()
    rules = re.findall(r"- \{apiGroups: \[\"?([a-z0-9.]*)\"?\], resources: \[(.*?)\], verbs: \[(.*?)\]\}", guide)
    granted = {
        (verb, group, resource)
        for group, named, verbs in rules
        for verb in verbs.split(", ")
        for resource in named.split(", ")
    }
    assert granted == {*RIGHTS}
    assert set(OBSERVING) <= granted


def of_trial(**status: object) -> InMemoryDocker:
    """A cluster that grants everything, and says this of the pod that shows its images."""
    client = InMemoryDocker()
    client.says("create *", json.dumps({"metadata": {"name": "trial"}}), after="config view")
    client.says(
        "get pods --selector job-name=trial *", json.dumps({"items": [{"metadata": {"name": "p"}, "status": status}]})
    )
    return client


def test_a_pod_that_ends_at_once_shows_which_images_the_cluster_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Kubectl, "require_rights", lambda kubectl: kubectl("config", "view"))
    ids = [{"name": "k6", "imageID": "registry.example/lab/k6@sha256:1"}, {"name": "collector", "imageID": "sha256:2"}]
    client = of_trial(phase="Succeeded", containerStatuses=ids)
    assert Kubernetes(Kubectl(client=client)).images(["k6", "collector"]) == {"k6": "sha256:1", "collector": "sha256:2"}
    assert client.calls[-1] == "delete job trial --ignore-not-found --wait=false"


def test_an_image_that_the_cluster_lacks_ends_the_run_before_its_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Kubectl, "require_rights", lambda kubectl: kubectl("config", "view"))
    waiting = {"waiting": {"reason": "ErrImageNeverPull", "message": "not present"}}
    client = of_trial(
        phase="Pending", containerStatuses=[{"name": "k6", "image": "connlab/k6:latest", "state": waiting}]
    )
    with pytest.raises(LabError, match="cannot have the image connlab/k6:latest"):
        Kubernetes(Kubectl(client=client)).images(["k6"])
    assert client.calls[-1] == "delete job trial --ignore-not-found --wait=false"


def test_only_what_this_checkout_made_is_removed() -> None:
    client = InMemoryDocker()
    client.says("* get *", "pod/connlab-run-1-k6-1\n")
    assert Kubernetes(Kubectl("mine", "lab", client)).remove() == ["pod/connlab-run-1-k6-1"]
    assert all(
        call.startswith("--context mine --namespace lab ") and "connlab.checkout=" in call for call in client.calls
    )
    assert len(client.calls) == 2


@pytest.mark.parametrize(
    "said",
    [
        "The connection to the server 127.0.0.1:6443 was refused",
        "error validating data: Get ...: dial tcp 127.0.0.1:8080: connect: connection refused",
    ],
)
def test_a_cluster_that_does_not_answer_is_said_with_a_hint(said: str) -> None:
    client = InMemoryDocker()
    client.says("*", stderr=said, exit_code=1)
    with pytest.raises(KubectlFailed, match="--context names another one"):
        Kubectl(client=client)("get", "pods")


def test_a_folder_of_results_that_kubectl_takes_for_a_pod_is_refused(
    effective: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "RESULTS", Path("/home/me/a:b/results"))
    (problem,) = Kubernetes().cannot(effective(), topology_of(effective()))
    assert str(problem).startswith("kubectl cannot copy files into /home/me/a:b/results: ")
    with pytest.raises(BadInput, match="kubectl cannot copy files into /home/me/a:b/results"):
        Kubernetes().sidecars().find_container("lab/shop")


def test_what_kubernetes_cannot_is_refused_before_anything_starts(effective: Make) -> None:
    asked = effective("nginx.addresses=2", text=THROUGH_NGINX)
    problems = list(Kubernetes().cannot(asked, topology_of(asked)))
    assert [str(one.where) for one in problems] == ["--set nginx.addresses=2"]
    limited = "{at: 1s, do: cpu, instance: nginx, cpus: 1, for: 1s}"
    filtered = "{at: 3s, do: filter, instance: nginx, answer: none, for: 1s}"
    actions = f"actions:\n  - {{at: 0s, do: reload, instance: nginx}}\n  - {limited}\n  - {filtered}\n"
    acting = effective(text=THROUGH_NGINX + actions)
    limit, filters = Kubernetes().cannot(acting, topology_of(acting))
    assert limit.what.startswith("the action 'cpu' takes a limit away again")
    assert filters.what == "the action 'filter' does not run on Kubernetes yet"
    assert list(Kubernetes().cannot(effective(), topology_of(effective()))) == []


def test_an_option_of_kubernetes_is_refused_for_compose() -> None:
    with pytest.raises(BadInput, match="--context is of the engine Kubernetes; add --engine kubernetes"):
        selection.select_engine("compose", context="mine")


def test_each_role_ends_by_the_signal_of_its_image() -> None:
    for name, role in ROLES.items():
        stated = re.search(r"^STOPSIGNAL (\S+)$", (paths.ROOT / name / "Dockerfile").read_text(), re.MULTILINE)
        assert role.stop_signal == (stated[1] if stated else "SIGTERM")


def test_names_of_objects_are_as_the_cluster_wants_them() -> None:
    assert re.fullmatch(r"[a-z0-9-]+", owner_name("20261123-041500-A"))
