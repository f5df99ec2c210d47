"""Pods that the lab did not start, and a collector in one as ephemeral container: Sidecars, by kubectl.

Only a container that runs can hand out its files, and nothing else stands beside the collector's in its pod. So its
container stays after the collector's end, until the files are out.
"""

import contextlib
import json
import secrets
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lab import paths
from lab.engines.kubernetes.kubectl import OBSERVING, Kubectl, KubectlFailed
from lab.engines.kubernetes.objects import Images, env_entries, image_id
from lab.engines.kubernetes.pod_problems import find_container_problem
from lab.engines.protocol import CAPABILITIES, Container, event_capabilities, why_apart
from lab.errors import BadInput, EngineFailed, FilesLost, LabError, Problem

# A node may have to pull the image first.
_START_S = 120
_LOOK_S = 0.3
_STOP_GRACE_S = 20
_WORDS = 5
# A container's name is a label of the DNS.
_NAME_MAX = 63
# The pod keeps its container, and the node that container's files: they hold addresses of clients.
_BEFORE = """\
mkdir -p /raw
trap 'rm -rf /raw/*' EXIT
"""
# How long a container stays after its program has ended, where nobody says that it may go.
HOLD_S = 600

# The program's number, its exit code and the number of this shell are for those who come by `kubectl exec`. A shell
# that has just forked may lose any other signal than KILL before it becomes the program.
_RUN = f"""\
echo "$$" >/tmp/connlab.holder
trap 'kill -s KILL "$pid"; exit 0' TERM
"$@" & pid=$!
echo "$pid" >/tmp/connlab.pid
wait "$pid"; code=$?
echo "$code" >/tmp/connlab.exit
[ "$code" = 0 ] || exit "$code"
sleep {HOLD_S} & pid=$!
wait "$pid"
"""
_END = (
    'read -r pid </tmp/connlab.pid; kill -s "$1" "$pid"; n=0; '
    'while [ ! -s /tmp/connlab.exit ] && [ "$n" -lt "$2" ]; do sleep 0.1; n=$((n + 1)); done; [ -s /tmp/connlab.exit ]'
)
# A little later: what ends the container would end this command too.
_RELEASE = 'read -r holder </tmp/connlab.holder || exit; (sleep 0.3; kill "$holder") >/dev/null 2>&1 &'


@dataclass(frozen=True)
class PodSidecar:
    """A collector in a pod. Nobody can take it out again: it ends, and its entry stays in the pod."""

    kubectl: Kubectl
    pod: str
    name: str
    folder: Path

    def ask(self, *arguments: str, timeout_s: float = 60) -> str:
        """Run a command in it; raises KubectlFailed."""
        return self.kubectl("exec", self.pod, "--container", self.name, "--", *arguments, timeout_s=timeout_s)

    def image(self) -> str:
        """Return the id of its image, as the node has it."""
        return image_id(str((self.status() or {}).get("imageID", "")))

    def ended(self) -> str | None:
        """Return what it said, once it has ended; None while it runs."""
        status = self.status()
        if status is None:
            return "its pod was removed"
        ended = status.get("state", {}).get("terminated")
        if ended is None:
            return None
        said = self.kubectl("logs", self.pod, "--container", self.name, "--tail", str(_WORDS))
        return said.strip() or f"exit code {ended['exitCode']}"

    def stop(self) -> None:
        """End the collector, bring its files out, and let its container end.

        Raises:
            FilesLost: the container has ended, with the pod or with the container that it joined.
            LabError: the cluster does not answer.
        """
        try:
            self._end_program()
            self.kubectl.copy_out(self.pod, self.name, "/raw", self.folder)
        except LabError as error:
            with contextlib.suppress(LabError):
                self.remove()
            what = f"what the collector in the pod '{self.pod}' recorded is lost: {error.what}"
            hint = "it ends with its pod, and with --container with that container too: leave --container out"
            raise FilesLost(what, hint=hint) from None
        self.remove()

    def remove(self) -> None:
        """Let its container end, if it still runs."""
        status = self.status()
        if status and "running" in status.get("state", {}):
            self.ask("sh", "-c", _RELEASE)

    def _end_program(self) -> None:
        """End the program, by force if it has not ended after the grace; its container stays.

        Raises:
            KubectlFailed: it does not end, or its container does not run.
        """
        for sent in ("TERM", "KILL"):
            asked = ("sh", "-c", _END, "sh", sent, str(10 * _STOP_GRACE_S))
            try:
                self.ask(*asked, timeout_s=_STOP_GRACE_S + 30)
            except KubectlFailed:
                if sent == "KILL":
                    raise
            else:
                return

    def status(self) -> dict[str, Any] | None:
        """Return what the cluster says of its container; None if there is none."""
        found = _get(self.kubectl, self.pod)
        listed = found["status"].get("ephemeralContainerStatuses", []) if found else []
        return next((dict(one) for one in listed if one["name"] == self.name), None)


@dataclass(frozen=True)
class PodSidecars:
    """The pods of a cluster.

    Attributes:
        kubectl: speaks to the cluster; each pod is named together with its namespace.
    """

    kubectl: Kubectl
    images: Images

    def find_container(self, name: str) -> Container:
        """Find a pod that runs, NAMESPACE/POD, or one of its containers, NAMESPACE/POD/CONTAINER.

        The cluster is asked too whether it would take the collector.

        Raises:
            BadInput: there is none of this name, or it does not run.
            LabError: a right is missing, or the cluster does not take a collector there.
        """
        namespace, pod, *within = name.split("/")
        if problems := list(self.kubectl.check_target(paths.RESULTS)):
            raise BadInput(problems)
        kubectl = replace(self.kubectl, namespace=namespace)
        kubectl.require_rights(OBSERVING)
        found = _get(kubectl, pod)
        if found is None:
            what = f"there is no pod '{pod}' in the namespace '{namespace}'"
            raise BadInput(Problem(what, hint=f"'kubectl get pods --namespace {namespace}' lists those that there are"))
        phase = str(found["status"].get("phase", "Unknown"))
        why = "it is being removed" if found["metadata"].get("deletionTimestamp") else phase
        if why != "Running":
            hint = f"see what holds it up: 'kubectl describe pod {pod} --namespace {namespace}'"
            raise BadInput(Problem(f"the pod '{pod}' does not run ({why})", hint=hint))
        status = _running(found, pod, within[0]) if within else None
        kubectl.add(pod, self._collector("connlab-observe", {}, within[0] if within else None), "dryRun=All")
        of_pod = found["spec"]["containers"]
        named = [one for one in of_pod if not within or one["name"] == within[0]]
        joined = [one for one in (*of_pod, *found["spec"].get("initContainers", [])) if one["name"] in within]
        apart = _apart(joined)
        return Container(
            id=f"{namespace}/{pod}/{status['containerID'] if status else found['metadata']['uid']}",
            name=name,
            image=", ".join(one["image"] for one in named),
            pid=0,
            on_host=bool(found["spec"].get("hostNetwork")),
            words="\n".join(
                f"{one['image']}\n{' '.join([*one.get('command', []), *one.get('args', [])])}" for one in named
            ),
            processes=bool(within) and apart is None,
            apart=apart,
            machine=found["spec"]["nodeName"],
            with_host=bool(found["spec"].get("hostPID")),
        )

    def find_project_containers(self, project: str, service: str | None) -> list[Container]:
        """Raise BadInput: a cluster has no Compose projects."""
        raise BadInput(Problem(f"a cluster has no Compose project '{project}'{f'/{service}' if service else ''}"))

    def find_process_container(self, pid: int) -> Container | None:  # noqa: ARG002
        """Return none: processes of this machine are in none of a cluster's pods, as far as it tells."""
        return None

    def is_running(self, container_id: str) -> bool:
        """Return whether a container runs, or a pod, if that was found and none of its containers."""
        namespace, pod, which = container_id.split("/", 2)
        found = _get(replace(self.kubectl, namespace=namespace), pod)
        if found is None or found["status"].get("phase") != "Running":
            return False
        return which == found["metadata"]["uid"] or any(
            one.get("containerID") == which and "running" in one["state"] for one in _statuses(found)
        )

    def start(
        self, name: str, environment: Mapping[str, str], folder: Path, *, target: str | int, processes: bool
    ) -> PodSidecar:
        """Add a collector to a pod and wait until it runs.

        Raises:
            LabError: the cluster does not take it, or cannot have its image; the pod keeps its entry then.
        """
        namespace, pod, which = str(target).split("/", 2)
        kubectl = replace(self.kubectl, namespace=namespace)
        joins = None
        if processes:
            joins = next(
                (one["name"] for one in _statuses(_get(kubectl, pod)) if one.get("containerID") == which), None
            )
            if joins is None:
                raise EngineFailed(f"the container that was to be observed in {namespace}/{pod} has ended")
        # A pod keeps the name of each container that was ever added to it.
        unique = f"{name[: _NAME_MAX - 9].rstrip('-')}-{secrets.token_hex(4)}"
        kubectl.add(pod, self._collector(unique, environment, joins))
        made = PodSidecar(kubectl, pod, unique, folder)
        end = time.monotonic() + _START_S
        while (status := made.status()) is None or "waiting" in status.get("state", {"waiting": {}}):
            if status and (found := find_container_problem(status, pod)):
                raise found
            if time.monotonic() > end:
                raise EngineFailed(f"the collector in {namespace}/{pod} did not start within {_START_S} s")
            time.sleep(_LOOK_S)
        return made

    def _collector(self, name: str, environment: Mapping[str, str], joins: str | None) -> dict[str, Any]:
        """Return a collector as an ephemeral container; `joins` names the container whose processes it is to see."""
        return {
            "name": name,
            **self.images.of("collector"),
            "command": holding_command("collector", "run", before=_BEFORE),
            "env": env_entries(environment),
            # Whatever the pod asks of its own containers.
            "securityContext": {
                "runAsUser": 0,
                "runAsGroup": 0,
                "runAsNonRoot": False,
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"], "add": [*CAPABILITIES, *event_capabilities(environment)]},
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            **({"targetContainerName": joins} if joins else {}),
        }


def _get(kubectl: Kubectl, pod: str) -> dict[str, Any] | None:
    said = kubectl("get", "pod", pod, "--ignore-not-found", "--output", "json")
    return dict(json.loads(said)) if said.strip() else None


def _running(pod: Mapping[str, Any], name: str, container: str) -> dict[str, Any]:
    """Return the status of a container that runs.

    Raises:
        BadInput: there is none of this name, or it does not run.
    """
    status = next((one for one in _statuses(pod) if one["name"] == container), None)
    if status is None:
        known = ", ".join(one["name"] for one in _statuses(pod) if "running" in one["state"])
        raise BadInput(Problem(f"the pod '{name}' has no container '{container}'", hint=f"those that run: {known}"))
    if "running" not in status["state"]:
        why = next((told.get("reason", state) for state, told in status["state"].items()), "waiting")
        hint = "leave --container out: the collector then sees the pod's network alone, and outlives a restart"
        raise BadInput(Problem(f"the container '{container}' of '{name}' does not run ({why})", hint=hint))
    return status


def _statuses(pod: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """Return what the cluster says of a pod's own containers, and of those that run beside them from its start."""
    status = pod["status"] if pod else {}
    return [dict(one) for one in (*status.get("containerStatuses", []), *status.get("initContainerStatuses", []))]


def _apart(containers: Iterable[Mapping[str, Any]]) -> str | None:
    """Return why a collector stays out of the process namespace of these; None if it need not."""
    asked = [one.get("securityContext", {}) for one in containers]
    added = [name for one in asked for name in one.get("capabilities", {}).get("add", ())]
    return why_apart(added, privileged=any(one.get("privileged") for one in asked))


def holding_command(*program: str, before: str = "") -> list[str]:
    """Return the command of a container that runs a program and stays; if the program fails, it ends with its code.

    Kubernetes takes two dollars there for one. `before` are lines of shell that come first.
    """
    return [part.replace("$", "$$") for part in ("sh", "-c", f"{before}{_RUN}", "sh", *program)]
