"""Pods that somebody else runs behind a Service: found by the cluster's own word, and observed from inside."""

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from lab import parallel
from lab.engines.container_settings import collector_environment
from lab.engines.kubernetes.kubectl import OBSERVING, Kubectl, Right
from lab.engines.kubernetes.objects import Images
from lab.engines.kubernetes.pod_sidecar import PodSidecar, PodSidecars
from lab.engines.protocol import Parts, await_healthy
from lab.errors import BadInput, LabError, Problem
from lab.scenarios.resolved import ResolvedScenario
from lab.scenarios.running_checks import running_roles
from lab.scenarios.topology import Topology, collector_of

# What the lab may do in the Service's namespace, besides what it may in its own.
RUNNING: tuple[Right, ...] = (
    *OBSERVING,
    ("get", "", "services"),
    ("list", "discovery.k8s.io", "endpointslices"),
)
_READY_S = 60


@dataclass(frozen=True)
class RunningPod:
    """A pod behind a Service.

    Attributes:
        name: NAMESPACE/POD.
        uid: of the pod.
        node: on which it runs.
    """

    name: str
    uid: str
    address: str
    node: str


@dataclass(frozen=True)
class FoundService:
    """A Service as the cluster has it.

    Attributes:
        ports: on which its pods take traffic.
        selector: the labels of its pods.
        pods: those that are ready, by name.
    """

    name: str
    ports: tuple[int, ...]
    selector: Mapping[str, str]
    pods: tuple[RunningPod, ...]

    @property
    def namespace(self) -> str:
        """Return its namespace."""
        return self.name.partition("/")[0]


def find_service(kubectl: Kubectl, named: str) -> FoundService:
    """Return a Service with the pods that are ready behind it.

    Raises:
        BadInput: there is none of this name, or none of its pods is ready.
        LabError: a right is missing, or the cluster does not answer.
    """
    namespace, _, name = named.partition("/")
    within = replace(kubectl, namespace=namespace)
    within.require_rights(RUNNING)
    said = within("get", "service", name, "--ignore-not-found", "--output", "json")
    if not said.strip():
        hint = f"'kubectl get services --namespace {namespace}' lists those that there are"
        raise BadInput(Problem(f"there is no Service '{name}' in the namespace '{namespace}'", hint=hint))
    selector = json.loads(said)["spec"].get("selector") or {}
    label = f"kubernetes.io/service-name={name}"
    slices = json.loads(within("get", "endpointslices.discovery.k8s.io", "--selector", label, "--output", "json"))
    pods = {pod.name: pod for one in slices["items"] for pod in _ready_pods(one, namespace)}
    ports = {port["port"] for one in slices["items"] for port in one.get("ports") or [] if _is_tcp(port)}
    if not pods:
        hint = f"see 'kubectl describe service {name} --namespace {namespace}'"
        raise BadInput(Problem(f"no pod is ready behind the Service '{named}'", hint=hint))
    in_order = tuple(pods[one] for one in sorted(pods))
    return FoundService(named, tuple(sorted(ports)), selector, in_order)


def _is_tcp(port: Mapping[str, Any]) -> bool:
    return port.get("protocol", "TCP") == "TCP" and port.get("port") is not None


def _ready_pods(found: Mapping[str, Any], namespace: str) -> Iterator[RunningPod]:
    for endpoint in found.get("endpoints") or []:
        of = endpoint.get("targetRef") or {}
        if of.get("kind") == "Pod" and endpoint.get("conditions", {}).get("ready", True):
            node = str(endpoint.get("nodeName", ""))
            yield RunningPod(f"{namespace}/{of['name']}", of["uid"], endpoint["addresses"][0], node)


@dataclass
class RunningPods:
    """The pods of a scenario's services that run already, and the collectors that join them for a run."""

    kubectl: Kubectl
    images: Images
    _found: dict[str, FoundService] = field(default_factory=dict)
    _pods: dict[str, RunningPod] = field(default_factory=dict)
    _collectors: dict[str, PodSidecar] = field(default_factory=dict)

    def find(self, resolved: ResolvedScenario) -> dict[str, FoundService]:
        """Return what the cluster has of each role that runs already; raises as `find_service`."""
        roles = {role: str(service.cluster_service) for role, service in running_roles(resolved).items()}
        for role, named in roles.items():
            if named not in self._found:
                try:
                    self._found[named] = find_service(self.kubectl, named)
                except BadInput as error:
                    where = resolved.where("services", role, "cluster_service")
                    raise BadInput([replace(one, where=where) for one in error.problems]) from None
        return {role: self._found[named] for role, named in roles.items()}

    def problems(self, resolved: ResolvedScenario) -> Iterator[Problem]:
        """Yield where a scenario says something else of these than the cluster does."""
        for role, found in self.find(resolved).items():
            port = resolved.roles[role].port
            if port not in found.ports:
                ports = " and ".join(map(str, found.ports)) or "none"
                what = f"no pod behind {found.name} takes traffic on port {port}: the cluster says {ports}"
                where = resolved.where("services", role, "port")
                yield Problem(what, where, f"write port: {found.ports[0]}" if found.ports else None)
            count = resolved.number(f"{role}.instances")
            if count != len(found.pods):
                what = f"{len(found.pods)} pods are ready behind {found.name}, and {role}.instances is {count}"
                where = resolved.where_knob(f"{role}.instances")
                hint = f"write instances: {len(found.pods)}, or leave it out in a run without arms"
                yield Problem(what, where, hint)

    def begin(self, resolved: ResolvedScenario, topology: Topology) -> None:
        """Take the pods for a run's instances: each role's in the order of their names.

        Raises:
            LabError: a pod is not there any more, or the cluster takes no collector there.
        """
        sidecars = PodSidecars(self.kubectl, self.images)
        for role, found in self.find(resolved).items():
            self._pods |= dict(zip(topology.instances[role], found.pods, strict=True))
        parallel.each(lambda one: sidecars.find_container(self._pods[one].name), list(self._pods))

    @property
    def nodes(self) -> dict[str, str]:
        """Return the node of each instance."""
        return {instance: pod.node for instance, pod in self._pods.items()}

    @property
    def addresses(self) -> dict[str, str]:
        """Return the address of each instance."""
        return {instance: pod.address for instance, pod in self._pods.items()}

    @property
    def selectors(self) -> list[dict[str, Any]]:
        """Return the pods that the load may reach, as peers of a NetworkPolicy."""
        return [
            {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": found.namespace}},
                "podSelector": {"matchLabels": dict(found.selector)},
            }
            for found in self._found.values()
        ]

    def join(self, parts: Parts, *, apart: bool) -> None:
        """Put a collector into each pod, and wait until it samples and captures.

        Raises:
            LabError: the cluster does not take it, or it is not ready in time.
        """
        sidecars = PodSidecars(self.kubectl, self.images)

        def start(instance: str) -> None:
            pod = self._pods[instance]
            environment = collector_environment(
                parts.resolved, parts.topology, instance, parts.run_id, metrics_port=None, apart=apart
            )
            folder = parts.places.collector(instance)
            target = f"{pod.name}/{pod.uid}"
            made = sidecars.start(
                collector_of(instance), environment | {"CONNLAB_OBSERVING": "1"}, folder, target=target, processes=False
            )
            self._collectors[instance] = made
            await_healthy(made, f"the pod {pod.name}", _READY_S, time.monotonic() + _READY_S)

        parallel.each(start, list(self._pods))

    def collector(self, instance: str) -> PodSidecar | None:
        """Return the collector of an instance that runs already; None for one of the run's own."""
        return self._collectors.get(instance)

    def leave(self) -> None:
        """End the collectors and bring out what they recorded.

        Raises:
            FilesLost: a pod took them with it.
        """
        parallel.each(lambda one: self._collectors[one].stop(), list(self._collectors))
        self._collectors.clear()

    def abandon(self) -> list[str]:
        """End the collectors whatever they do; return the names of those that were still there."""
        left = list(self._collectors)
        for instance in left:
            try:
                self._collectors.pop(instance).remove()
            except LabError:
                continue  # it ends by itself at its deadline
        return left
