"""A pod that is no part of a run, by which the lab learns something of a cluster: its images, what a program says."""

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from lab.engines.kubernetes import objects
from lab.engines.kubernetes.carried_files import TooLarge, pack
from lab.engines.kubernetes.kubectl import Kubectl, KubectlFailed
from lab.engines.kubernetes.objects import ROLE, Images, image_id
from lab.engines.kubernetes.pod_problems import UNSCHEDULABLE_S, find_pod_problem, find_scheduling_problem
from lab.errors import LabError

_Answer = TypeVar("_Answer")
_TRIAL_S = 300
_LOOK_S = 0.3
_ENDED = "command terminated with exit code"


@dataclass(frozen=True)
class Question:
    """What a role's program is asked about a user's files.

    Attributes:
        image: as a container has it.
        command: its own, which ends when it has answered.
        sources: files and folders of this machine that it reads, by their places.
        writable: folders that it writes to.
        hosts: names that it asks the addresses of, though nothing stands there.
    """

    image: Mapping[str, str]
    command: tuple[str, ...]
    settings: Mapping[str, str]
    sources: Mapping[str, Any]
    writable: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()


def find_images(kubectl: Kubectl, containers: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Return the ids of images as the cluster has them, by the names that their containers have.

    Raises:
        LabError: no node takes the pod, or an image cannot be had.
    """
    # Not every image has the program: that the container was made shows the image.
    asked = [{"name": name, **image, "command": ["true"]} for name, image in containers.items()]

    def ids(pod: Mapping[str, Any]) -> dict[str, str] | None:
        found = {one["name"]: one.get("imageID", "") for one in pod["status"].get("containerStatuses", [])}
        return {one: image_id(found[one]) for one in containers} if all(map(found.get, containers)) else None

    with _pod(kubectl, objects.build_trial(_now(), asked)) as job:
        return _await(kubectl, job, ids)[1]


def ask_program(kubectl: Kubectl, images: Images, question: Question, refused: type[LabError]) -> str:
    """Return what a role's program says of a user's files.

    Raises:
        LabError: `refused`, with the program's message; or the cluster cannot ask it.
    """
    try:
        carried = pack(question.sources, {})
    except TooLarge as error:
        raise LabError(f"a cluster cannot have the files: {error}") from None
    run_id = _now()
    name = objects.owner_name(f"{run_id}-trial")
    folders = {f"writable-{number}": folder for number, folder in enumerate(question.writable)}
    # It waits to be asked: what a program prints and what it complains of come apart only so.
    asked = {
        "name": ROLE,
        **question.image,
        "command": ["sleep", str(_TRIAL_S)],
        "env": objects.env_entries(question.settings),
        "volumeMounts": [*({"name": key, "mountPath": one} for key, one in folders.items()), *carried.mounts()],
        **objects.resources(objects.HOLD_CPU, objects.HOLD_MB, 1024),
    }
    small = objects.resources(objects.HOLD_CPU, objects.HOLD_MB, 4 * objects.HOLD_MB)
    before = [{**one, **images.of("collector"), **objects.restricted(), **small} for one in carried.unpacker()]
    volumes = [*({"name": key, "emptyDir": {}} for key in folders), *carried.volumes(name)]
    aliases = [{"ip": "127.0.0.1", "hostnames": [*question.hosts]}] if question.hosts else []
    job = objects.build_trial(run_id, [asked], initContainers=before, volumes=volumes, hostAliases=aliases)

    def runs(pod: Mapping[str, Any]) -> bool | None:
        return any("running" in one["state"] for one in pod["status"].get("containerStatuses", [])) or None

    with _pod(kubectl, job) as made:
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": made["name"], "uid": made["uid"]}
        if maps := carried.config_maps(name, labels=objects.run_labels(run_id), ownerReferences=[owner]):
            kubectl.create(maps)
        pod, _ = _await(kubectl, made, runs)
        try:
            return kubectl("exec", pod, "--container", ROLE, "--", *question.command)
        except KubectlFailed as error:
            if _ENDED not in error.stderr:
                raise
            said = [line for line in error.stderr.splitlines() if _ENDED not in line]
            raise refused("\n".join(said)) from None


def _now() -> str:
    return time.strftime("%Y%m%d-%H%M%S")


@contextlib.contextmanager
def _pod(kubectl: Kubectl, job: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Make a Job, and remove it with its pod; give its metadata."""
    (made,) = kubectl.create([job])
    try:
        yield made["metadata"]
    finally:
        kubectl("delete", "job", made["metadata"]["name"], "--ignore-not-found", "--wait=false")


def _await(
    kubectl: Kubectl, job: Mapping[str, Any], answer: Callable[[Mapping[str, Any]], _Answer | None]
) -> tuple[str, _Answer]:
    """Wait until a Job's pod tells what is asked; return its name, and that."""
    name, begun = job["name"], time.monotonic()
    while (waited_s := time.monotonic() - begun) < _TRIAL_S:
        said = kubectl("get", "pods", "--selector", f"job-name={name}", "--output", "json")
        for pod in json.loads(said)["items"]:
            if (found := answer(pod)) is not None:
                return str(pod["metadata"]["name"]), found
            problem = find_pod_problem(pod)
            if problem is None and waited_s > UNSCHEDULABLE_S:
                problem = find_scheduling_problem(pod)
            if problem:
                raise problem
        time.sleep(_LOOK_S)
    what = f"the cluster did not run a pod with these images within {_TRIAL_S} s"
    raise LabError(what, hint=f"see what holds it up: 'kubectl describe job {name}'")
