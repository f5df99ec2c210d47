"""The `kubectl` command line: which cluster it speaks to, what the lab may do there, and what its errors mean."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.engines.programs import CommandLine, ProgramClient, ProgramFailed, StreamingCommand
from lab.errors import LabError, Problem

GUIDE = "docs/kubernetes.md"
# Verb, API group, resource.
Right = tuple[str, str, str]

# What the Role of docs/kubernetes.md grants.
RIGHTS: tuple[Right, ...] = (
    *((verb, "", "pods") for verb in ("create", "get", "list", "watch", "delete")),
    ("create", "", "pods/exec"),
    ("get", "", "pods/log"),
    ("update", "", "pods/ephemeralcontainers"),
    *((verb, "", "configmaps") for verb in ("create", "list", "delete")),
    ("list", "", "events"),
    *((verb, "batch", "jobs") for verb in ("create", "list", "delete")),
    *((verb, "networking.k8s.io", "networkpolicies") for verb in ("create", "list", "delete")),
)
# Those that an observation of a pod takes.
OBSERVING: tuple[Right, ...] = (
    ("get", "", "pods"),
    ("create", "", "pods/exec"),
    ("get", "", "pods/log"),
    ("update", "", "pods/ephemeralcontainers"),
)
_FILES_S = 600
_NO_ANSWER = ("was refused", "connection refused", "Unable to connect", "no such host", "i/o timeout")


class KubectlFailed(ProgramFailed):
    """A kubectl command ended with an error of its own."""


def _find_hint(stderr: str) -> str | None:
    if "forbidden: User" in stderr:
        return f"let the cluster's administrator grant it: {GUIDE} has the Role"
    if "violates PodSecurity" in stderr:
        return f"label the namespace so that a collector may run there: {GUIDE}"
    if any(one in stderr for one in _NO_ANSWER):
        return "see whether the cluster runs: 'kubectl cluster-info'; --context names another one"
    if "context" in stderr and ("does not exist" in stderr or "was not found" in stderr):
        return "'kubectl config get-contexts' lists them"
    return None


def _each(text: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON documents that stand one after the other."""
    decoder, at = json.JSONDecoder(), 0
    while at < len(text.rstrip()):
        document, end = decoder.raw_decode(text[at:].lstrip())
        at += end + len(text[at:]) - len(text[at:].lstrip())
        yield document


_INSTALLED = f"install kubectl, and let KUBECONFIG name your cluster: {GUIDE}"
PROGRAM = CommandLine("kubectl", "see whether the cluster answers: 'kubectl cluster-info'", _INSTALLED)


@dataclass(frozen=True)
class Kubectl:
    """kubectl, for one cluster and one namespace of it.

    Attributes:
        context: of the kubeconfig; None for its current one.
        namespace: None for the context's own.
    """

    context: str | None = None
    namespace: str | None = None
    client: ProgramClient = PROGRAM

    def __call__(self, *arguments: str, timeout_s: float = 60, stdin: str | None = None) -> str:
        """Run `kubectl …` and return what it printed.

        Raises:
            KubectlFailed: it ended with an error.
            LabError: there is no kubectl, or it did not answer in time.
        """
        ended = self.client.run(self._with_cluster(arguments), timeout_s=timeout_s, stdin=stdin)
        if ended.exit_code != 0:
            hint = _find_hint(ended.stderr)
            raise KubectlFailed(["kubectl", *arguments], ended.exit_code, ended.stderr, hint=hint)
        return ended.stdout

    def follow(self, *arguments: str, talks: bool = False) -> StreamingCommand:
        """Start a `kubectl …` that prints until it is ended, and may be talked to; raises LabError without kubectl."""
        return self.client.follow(self._with_cluster(arguments), talks=talks)

    def create(self, objects: Iterable[Mapping[str, Any]], *options: str) -> list[dict[str, Any]]:
        """Make objects in one call and return what the cluster made of them; raises as a call."""
        listed = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        return list(_each(self("create", "--output", "json", *options, "--filename", "-", stdin=json.dumps(listed))))

    def add(self, pod: str, container: Mapping[str, Any], *options: str) -> None:
        """Add an ephemeral container to a pod, which then has it as long as it exists; raises as a call.

        `options` are of the request, such as dryRun=All.
        """
        made = json.loads(self("get", "pod", pod, "--output", "json"))
        made["spec"].setdefault("ephemeralContainers", []).append(container)
        # Whatever else changes in the pod meanwhile: the cluster takes nothing but the new container.
        for name in ("managedFields", "resourceVersion"):
            made["metadata"].pop(name, None)
        url = f"/api/v1/namespaces/{made['metadata']['namespace']}/pods/{pod}/ephemeralcontainers"
        query = f"?{'&'.join(options)}" if options else ""
        self("replace", "--raw", f"{url}{query}", "--filename", "-", stdin=json.dumps(made))

    def copy_out(self, pod: str, container: str, folder: str, target: Path) -> None:
        """Bring the files of a folder out, by tar in the container; raises as a call."""
        self("cp", "--container", container, "--retries", "3", f"{pod}:{folder}", str(target), timeout_s=_FILES_S)

    @staticmethod
    def check_target(folder: Path) -> Iterator[Problem]:
        """Yield why no files can be copied into a folder: kubectl takes what stands before a colon for a pod."""
        if ":" in str(folder):
            what = f"kubectl cannot copy files into {folder}: it reads the part before the colon as a pod's name"
            yield Problem(what, hint="name another one by CONNLAB_RESULTS")

    def find_namespace(self) -> str:
        """Return the namespace that is used; raises as a call."""
        return self.namespace or self("config", "view", "--minify", "--output", "jsonpath={..namespace}") or "default"

    def versions(self) -> dict[str, str]:
        """Return the versions of the cluster and of kubectl; raises as a call."""
        said = json.loads(self("version", "--output", "json"))
        return {"kubernetes": said["serverVersion"]["gitVersion"], "kubectl": said["clientVersion"]["gitVersion"]}

    def require_rights(self, rights: Sequence[Right] = RIGHTS) -> None:
        """Refuse a namespace in which the lab may not do all that it needs.

        Raises:
            LabError: the missing rights, or the cluster does not answer.
        """
        namespace, asked = self.find_namespace(), []
        for verb, group, resource in rights:
            name, _, part = resource.partition("/")
            of_resource = {"resource": name, **({"subresource": part} if part else {})}
            attributes = {"namespace": namespace, "verb": verb, "group": group, **of_resource}
            review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}
            asked.append({**review, "spec": {"resourceAttributes": attributes}})
        lacking = [
            f"{verb} {resource}{f'.{group}' if group else ''}"
            for (verb, group, resource), answer in zip(rights, self.create(asked), strict=True)
            if not answer["status"].get("allowed")
        ]
        if lacking:
            what = f"in the namespace '{namespace}' the lab may not: {', '.join(lacking)}"
            raise LabError(what, hint=f"let the cluster's administrator grant it: {GUIDE} has the Role")

    def _with_cluster(self, arguments: Sequence[str]) -> list[str]:
        context = ["--context", self.context] if self.context else []
        return [*context, *(["--namespace", self.namespace] if self.namespace else []), *arguments]
