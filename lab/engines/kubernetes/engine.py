"""The engine Kubernetes, as lab.engines.protocol asks for one."""

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from lab import parallel, paths
from lab.engines import protocol
from lab.engines.kubernetes import objects
from lab.engines.kubernetes.containers import Containers
from lab.engines.kubernetes.objects import COLLECTOR, Images, checkout_selector, image_id
from lab.engines.kubernetes.pod_sidecar import PodSidecars
from lab.engines.kubernetes.startup import UNSCHEDULABLE_S, Start, find_pod_problem, find_scheduling_problem
from lab.engines.kubernetes.watch import Watch
from lab.engines.protocol import STOP_GRACE_S, Cleaned, Finding, Parts, Sidecars
from lab.errors import EngineFailed, LabError, Problem
from lab.scenarios.client_addresses import client_addresses
from lab.scenarios.own_configuration import OwnConfiguration
from lab.scenarios.own_script import OwnScript
from lab.scenarios.resolved import ResolvedScenario
from lab.scenarios.topology import Topology

_TRIAL_S = 300
_LOOK_S = 0.3
_KINDS = "jobs.batch,networkpolicies.networking.k8s.io,pods"
_ELSEWHERE = "run it with --engine compose"
# Of the actions: a pod's containers take no signal from the lab but the one that ends them, and have fixed limits.
_NOT_YET = ("reload", "cpu", "link")


@dataclass
class Kubernetes(Containers):
    """A pod for each instance of a run, in one namespace of a cluster.

    Attributes:
        spread: whether roles are to be on nodes of their own; else all of a run are on one node.
        metrics: the port on which each collector serves its current figures; None if none does.
    """

    registry: Images = field(default_factory=Images)
    spread: bool = False
    metrics: int | None = None
    on_this_machine: bool = False

    def examine(self) -> Iterable[Finding]:
        """Look at the cluster, and at the lab's rights in it."""
        try:
            found = self.versions()
        except LabError as error:
            return [Finding("Kubernetes", "missing", error.what.splitlines()[-1].strip(), error.hint)]
        cluster = Finding("Kubernetes", "ok", f"{found['kubernetes']}, kubectl {found['kubectl']}")
        name = "rights in the cluster"
        try:
            self.kubectl.require_rights()
        except LabError as error:
            return [cluster, Finding(name, "missing", error.what, error.hint)]
        return [cluster, Finding(name, "ok", f"all, in the namespace '{self.kubectl.find_namespace()}'")]

    def versions(self) -> Mapping[str, str]:
        """Return the versions of the cluster and of kubectl."""
        return self.kubectl.versions()

    def open_files_cap(self) -> int | None:
        """Return nothing: the nodes' container runtime has it."""
        return None

    def cannot(self, resolved: ResolvedScenario, topology: Topology) -> Iterator[Problem]:
        """Yield what Kubernetes cannot, or what the lab cannot do on it yet."""
        yield from self.kubectl.check_target(paths.RESULTS)
        if resolved.registry.services:
            yield Problem("services of a scenario's own do not run on Kubernetes yet", hint=_ELSEWHERE)
        if resolved.scenario.configurations:
            yield Problem("a configuration of a scenario's own does not run on Kubernetes yet", hint=_ELSEWHERE)
        if resolved.scenario.knobs.load.workload == "script":
            yield Problem("a script of a scenario's own does not run on Kubernetes yet", hint=_ELSEWHERE)
        if client_addresses(resolved, topology).of_instances:
            where = resolved.where("load", "url" if topology.url and topology.url.address else "ip_family")
            yield Problem("clients come to the addresses that the cluster gives its pods", where, _ELSEWHERE)
        if resolved.scenario.network:
            yield Problem("links do not run on Kubernetes yet", resolved.where("network"), _ELSEWHERE)
        for index, action in enumerate(resolved.scenario.actions):
            if action.do in _NOT_YET:
                what = f"the action '{action.do}' does not run on Kubernetes yet"
                yield Problem(what, resolved.where("actions", index, "do"), _ELSEWHERE)
        for instance in topology.second_names:
            knob = f"{topology.role_of(instance)}.addresses"
            what = f"a pod has one address, and {knob} asks for a second one for {instance}"
            yield Problem(what, resolved.where_knob(knob), _ELSEWHERE)

    def sidecars(self) -> Sidecars:
        """Ask the cluster for pods, and add collectors to them."""
        return PodSidecars(self.kubectl, self.registry)

    def examine_script(self, script: OwnScript) -> str | None:  # noqa: ARG002
        """Return nothing: `cannot` refuses scripts."""
        return None

    def examine_configuration(self, own: OwnConfiguration) -> str | None:  # noqa: ARG002
        """Return nothing: `cannot` refuses configurations."""
        return None

    def images(self, names: Iterable[str]) -> dict[str, str]:
        """Let a pod that ends at once show that the cluster has the images, and which.

        Raises:
            LabError: a right is missing, no node takes the pod, or an image cannot be had.
        """
        self.kubectl.require_rights()
        wanted = list(dict.fromkeys(names))
        (made,) = self.kubectl.create(
            [objects.build_image_trial(time.strftime("%Y%m%d-%H%M%S"), self.registry, wanted)]
        )
        name, begun = made["metadata"]["name"], time.monotonic()
        try:
            while (waited_s := time.monotonic() - begun) < _TRIAL_S:
                said = self.kubectl("get", "pods", "--selector", f"job-name={name}", "--output", "json")
                for pod in json.loads(said)["items"]:
                    if pod["status"].get("phase") == "Succeeded":
                        ids = {one["name"]: one["imageID"] for one in pod["status"]["containerStatuses"]}
                        return {one: image_id(ids[one]) for one in wanted}
                    problem = find_pod_problem(pod)
                    if problem is None and waited_s > UNSCHEDULABLE_S:
                        problem = find_scheduling_problem(pod)
                    if problem:
                        raise problem
                time.sleep(_LOOK_S)
            what = f"the cluster did not run a pod with the lab's images within {_TRIAL_S} s"
            raise LabError(what, hint=f"see what holds it up: 'kubectl describe job {name}'")
        finally:
            self.kubectl("delete", "job", name, "--ignore-not-found", "--wait=false")

    def service_images(self, resolved: ResolvedScenario) -> dict[str, str]:
        """Return none: `cannot` refuses services of a scenario's own."""
        return dict.fromkeys(resolved.registry.services, "")

    def watch(self, run_id: str) -> Watch:
        """Watch the run's pods."""
        return Watch(self.kubectl, run_id)

    def start(self, parts: Parts, watch: protocol.Watch) -> None:
        """Make the pods, and wait until the startup probes of all collectors are answered."""
        if not isinstance(watch, Watch):
            raise TypeError("the watch is not this engine's")
        self.begin(parts, watch)
        Start(self.kubectl, parts, watch, self.registry, self.last_words, self.spread, self.metrics).start()

    def machines(self, topology: Topology) -> Mapping[str, str]:
        """Return the node of each pod."""
        _, watch = self.of_run
        pods = {one: watch.pod(one) for one in topology.all}
        return {one: pod["spec"]["nodeName"] for one, pod in pods.items() if pod}

    def ask(self, instance: str, *arguments: str, timeout_s: float = 20) -> str:
        """Carry out a command in the container of an instance's collector."""
        return self.kubectl(
            "exec", self.pod_name(instance), "--container", COLLECTOR, "--", *arguments, timeout_s=timeout_s
        )

    def stop(self, instances: Iterable[str], grace_s: int = STOP_GRACE_S) -> None:
        """End roles beside each other."""
        parallel.each(lambda one: self.end_role(one, grace_s), list(instances))

    def signal(self, instance: str, signal: str) -> None:
        """Refuse, as `cannot` has already."""
        raise EngineFailed(f"{instance} cannot be sent {signal} on Kubernetes")

    def limit_cpus(self, instance: str, cpus: float | None) -> None:  # noqa: ARG002
        """Refuse, as `cannot` has already."""
        raise EngineFailed(f"the processors of {instance} cannot be limited on Kubernetes")

    def stop_along_the_path(self, topology: Topology, grace_s: int = STOP_GRACE_S) -> None:
        """End the roles along the path, then their collectors; then bring their files out."""
        for group in topology.instances.values():
            parallel.each(lambda one: self.end_role(one, grace_s), group)
        parallel.each(lambda one: self.end_collector(one, grace_s), topology.all)
        self.await_ends(topology.all)
        self.fetch(topology)

    def remove(self) -> list[str]:
        """Remove all objects of this checkout's runs, at once and by force."""
        listed = self.kubectl("get", _KINDS, "--selector", checkout_selector(), "--output", "name").split()
        if listed:
            now = ("--grace-period", "0", "--force", "--ignore-not-found", "--wait=true")
            self.kubectl("delete", _KINDS, "--selector", checkout_selector(), *now, timeout_s=120)
        return listed

    def clean(self) -> Cleaned:
        """Remove all objects of this checkout's runs; the images in the nodes are the cluster's."""
        return Cleaned(containers=self.remove())
