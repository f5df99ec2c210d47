"""The one door to the `kubectl` command line: which cluster it speaks to, and what its errors mean."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lab.engines.programs import CommandLine, Following, ProgramClient, ProgramFailed

GUIDE = "docs/kubernetes.md"


_NO_ANSWER = ("was refused", "connection refused", "Unable to connect", "no such host", "i/o timeout")


class KubectlFailed(ProgramFailed):
    """A kubectl command ended with an error of its own."""

    def __init__(self, command: Sequence[str], exit_code: int, stderr: str) -> None:
        super().__init__(command, exit_code, stderr, _way_on(stderr))


def _way_on(stderr: str) -> str | None:
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
    """Give the JSON documents that stand one after the other."""
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
        """Run `kubectl …` and give what it printed.

        Raises:
            KubectlFailed: it ended with an error.
            LabError: there is no kubectl, or it did not answer in time.
        """
        ended = self.client.run(self._with_cluster(arguments), timeout_s=timeout_s, stdin=stdin)
        if ended.exit_code != 0:
            raise KubectlFailed(["kubectl", *arguments], ended.exit_code, ended.stderr)
        return ended.stdout

    def follow(self, *arguments: str, talks: bool = False) -> Following:
        """Start a `kubectl …` that goes on telling, and may be talked to; raises LabError where there is no kubectl."""
        return self.client.follow(self._with_cluster(arguments), talks=talks)

    def objects(self, kinds: str, selector: str) -> list[dict[str, Any]]:
        """Give the objects of these kinds that a label selects; raises as a call."""
        return list(json.loads(self("get", kinds, "--selector", selector, "--output", "json"))["items"])

    def create(self, objects: Iterable[Mapping[str, Any]], *options: str) -> list[dict[str, Any]]:
        """Make objects in one call and give what the cluster made of them; raises as a call."""
        listed = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        return list(_each(self("create", "--output", "json", *options, "--filename", "-", stdin=json.dumps(listed))))

    def add(self, pod: str, container: Mapping[str, Any], *options: str) -> None:
        """Add an ephemeral container to a pod, which then has it as long as it exists; raises as a call.

        Args:
            pod: its name.
            container: as Kubernetes describes one.
            options: of the request, such as dryRun=All.
        """
        made = json.loads(self("get", "pod", pod, "--output", "json"))
        made["spec"].setdefault("ephemeralContainers", []).append(container)
        # Whatever else changes in the pod meanwhile: the cluster takes nothing but the new container.
        for name in ("managedFields", "resourceVersion"):
            made["metadata"].pop(name, None)
        url = f"/api/v1/namespaces/{made['metadata']['namespace']}/pods/{pod}/ephemeralcontainers"
        query = f"?{'&'.join(options)}" if options else ""
        self("replace", "--raw", f"{url}{query}", "--filename", "-", stdin=json.dumps(made))

    def _with_cluster(self, arguments: Sequence[str]) -> list[str]:
        context = ["--context", self.context] if self.context else []
        return [*context, *(["--namespace", self.namespace] if self.namespace else []), *arguments]
