"""What a cluster says of a pod that cannot be ready, in words for the user."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from lab.engines.kubernetes.kubectl import GUIDE, Kubectl
from lab.engines.start_failures import start_failure_hint, where_sysctl
from lab.errors import BadInput, LabError, Problem
from lab.scenarios.resolved import ResolvedScenario

# A cluster that grows by itself takes longer to have a new node; the lab does not wait for that.
UNSCHEDULABLE_S = 20
_NOT_HAD = ("ErrImageNeverPull", "ErrImagePull", "ImagePullBackOff", "InvalidImageName")
# A container that the node's runtime could not start has ended, and its log is empty.
_NOT_STARTED = ("StartError", "ContainerCannotRun")
_NOT_MADE = ("CreateContainerConfigError", "CreateContainerError", "RunContainerError")
_SYSCTL = re.compile(r'"(?P<name>net\.[a-z0-9_.]+)"')
_SYSCTL_FILE = re.compile(r"/proc/sys/(?P<path>net/[a-z0-9_/-]+)(?P<why>[^\n]*)")


def find_pod_problem(pod: Mapping[str, Any], resolved: ResolvedScenario | None = None) -> BadInput | LabError | None:
    """Return why a pod can never be ready; None if it still may."""
    status = pod.get("status", {})
    message = str(status.get("message", ""))
    if status.get("reason") == "SysctlForbidden" or "forbidden sysctl" in message:
        found = _SYSCTL.search(message)
        where = where_sysctl(resolved, found["name"]) if found else None
        hint = f"let the nodes' kubelets allow it (allowedUnsafeSysctls), or leave it out: {GUIDE}"
        return BadInput(Problem(f"the cluster forbids a sysctl: {_last(message)}", where, hint))
    if status.get("phase") == "Failed" and status.get("reason"):
        return LabError(f"the cluster ended {pod['metadata']['name']}: {status['reason']}: {_last(message)}")
    kinds = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
    problems = (find_container_problem(one, pod["metadata"]["name"]) for kind in kinds for one in status.get(kind, []))
    return next(filter(None, problems), None)


def find_container_problem(status: Mapping[str, Any], pod: str) -> LabError | None:
    """Return why a container of a pod cannot start; None if it still may."""
    waiting = status.get("state", {}).get("waiting", {})
    said = f"{waiting.get('reason')}: {_last(waiting.get('message', ''))}"
    if waiting.get("reason") in _NOT_HAD:
        hint = f"load it into the nodes, or push it and name the registry by --registry: {GUIDE}"
        return LabError(f"the cluster cannot have the image {status['image']}: {said}", hint=hint)
    if waiting.get("reason") in _NOT_MADE:
        return LabError(f"the cluster cannot start {status['name']} of {pod}: {said}", hint=start_failure_hint(said))
    ended = status.get("state", {}).get("terminated", {})
    if ended.get("reason") in _NOT_STARTED:
        said = f"{ended['reason']}: {_last(ended.get('message', ''))}"
        return LabError(f"the cluster cannot start {status['name']} of {pod}: {said}", hint=start_failure_hint(said))
    return None


def find_scheduling_problem(pod: Mapping[str, Any]) -> LabError | None:
    """Return why no node takes a pod; None if one has, or may be about to."""
    for one in pod.get("status", {}).get("conditions", []):
        if one["type"] == "PodScheduled" and one.get("reason") == "Unschedulable":
            what = f"no node of the cluster takes {pod['metadata']['name']}: {one.get('message', '')}"
            return LabError(what, hint="free processors or memory of a node, or ask for less load")
    return None


def read_warnings(
    kubectl: Kubectl, pod: str, resolved: ResolvedScenario | None = None
) -> Iterator[BadInput | LabError]:
    """Yield what the cluster's warnings about a pod mean: a sysctl that a node's kernel lacks, or their last words."""
    selector = f"involvedObject.name={pod},type=Warning"
    events = json.loads(kubectl("get", "events", "--field-selector", selector, "--output", "json"))["items"]
    messages = [str(one.get("message", "")) for one in events if one.get("reason") == "FailedCreatePodSandBox"]
    for message in messages:
        if found := _SYSCTL_FILE.search(message):
            name = found["path"].replace("/", ".")
            what = f"a node's kernel refuses {name} in a pod{found['why']}"
            yield BadInput(
                Problem(what, where_sysctl(resolved, name), "leave it out, or take nodes with another kernel")
            )
    if messages:
        yield LabError(f"a node cannot make {pod}: {_last(messages[-1])}")


def _last(message: str) -> str:
    return message.strip().splitlines()[-1].strip() if message.strip() else "(it said nothing)"
