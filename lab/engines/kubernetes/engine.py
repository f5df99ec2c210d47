"""The engine Kubernetes, as lab.engines.protocol asks for one."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from analysis.evidence.rawfiles import Places
from lab import parallel, paths
from lab.engines import protocol
from lab.engines.cpu_stat import CpuStat
from lab.engines.kubernetes import trial
from lab.engines.kubernetes.containers import Containers
from lab.engines.kubernetes.objects import COLLECTOR, Images, checkout_selector
from lab.engines.kubernetes.pod_sidecar import PodSidecars
from lab.engines.kubernetes.pods import Pods
from lab.engines.kubernetes.refusals import cluster_problems
from lab.engines.kubernetes.running_pods import RunningPods
from lab.engines.kubernetes.startup import Start
from lab.engines.kubernetes.trial import Question
from lab.engines.kubernetes.watch import Watch
from lab.engines.protocol import STOP_GRACE_S, Cleaned, Finding, Parts, Sidecars
from lab.errors import ConfigurationRefused, EngineFailed, LabError, Problem, ScriptRefused
from lab.scenarios import certificates
from lab.scenarios.overrides import Override
from lab.scenarios.own_configuration import MOUNTED, OwnConfiguration
from lab.scenarios.own_script import OwnScript
from lab.scenarios.resolved import ResolvedScenario
from lab.scenarios.running_checks import as_found
from lab.scenarios.topology import Topology, topology_of

_KINDS = "jobs.batch,networkpolicies.networking.k8s.io,pods,configmaps"
_TMP = "/tmp"  # noqa: S108 # in the container


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
    running: RunningPods = field(init=False)
    _asked: list[tuple[OwnScript | OwnConfiguration, str]] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        """Look for pods that run already in the same cluster."""
        self.running = RunningPods(self.kubectl, self.registry)

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

    def cannot(self, resolved: ResolvedScenario, topology: Topology) -> Iterator[Problem]:  # noqa: ARG002 # of resolved
        """Yield what Kubernetes cannot."""
        yield from self.kubectl.check_target(paths.RESULTS)
        yield from cluster_problems(self.pods_of(resolved))
        yield from self.running.problems(resolved)

    def found(self, resolved: ResolvedScenario) -> list[Override]:
        """Ask the cluster for the Services that the scenario names, and their pods."""
        return [
            each
            for role, one in self.running.find(resolved).items()
            for each in as_found(resolved, role, port=one.ports[0] if one.ports else None, instances=len(one.pods))
        ]

    def sidecars(self) -> Sidecars:
        """Ask the cluster for pods, and add collectors to them."""
        return PodSidecars(self.kubectl, self.registry)

    def examine_script(self, script: OwnScript) -> str | None:
        """Let k6 read the script in a pod that has its folder."""
        image = {"image": script.image, "imagePullPolicy": "IfNotPresent"} if script.image else self.registry.of("k6")
        sources = {str(target): source for source, target in script.mounts().items()}
        command = ("check-knobs", "connlab-k6", "inspect")
        question = Question(image, command, script.settings(), sources, ("/raw", _TMP))
        return self._ask(script, question, ScriptRefused)

    def examine_configuration(self, own: OwnConfiguration) -> str | None:
        """Let the role's program test the configuration in a pod that has its folder."""
        image, command = self.registry.of(own.role), ("check-knobs", f"connlab-{own.role}", "test")
        if own.image:
            image = self.registry.of_own(own.image.made)
            command = ("/connlab/bin/bash", "/connlab/entry", "test")
        question = Question(
            *(image, command, certificates.settings_of_trial(own), {str(MOUNTED): own.folder}),
            ("/raw", _TMP, *own.declared.writable),
            tuple(own.hosts),
        )
        return self._ask(own, question, ConfigurationRefused)

    def _ask(self, of: OwnScript | OwnConfiguration, question: Question, refused: type[LabError]) -> str:
        """Ask a program once: what it says of the same files stays the same."""
        known = next((said for asked, said in self._asked if asked == of), None)
        if known is None:
            known = trial.ask_program(self.kubectl, self.registry, question, refused)
            self._asked.append((of, known))
        return known

    def images(self, names: Iterable[str]) -> dict[str, str]:
        """Let a pod that ends at once show that the cluster has the images, and which.

        Raises:
            LabError: a right is missing, no node takes the pod, or an image cannot be had.
        """
        self.kubectl.require_rights()
        return trial.find_images(self.kubectl, {name: self.registry.of(name) for name in dict.fromkeys(names)})

    def service_images(self, resolved: ResolvedScenario) -> dict[str, str]:
        """Let a pod show that the cluster has the images of the user's own, and which.

        Raises:
            LabError: an image cannot be had.
        """
        pods = self.pods_of(resolved)
        made = {pods.role_of(name): pods.container(name) for name in pods.names}
        own = {role: self.registry.of_container(one, role) for role, one in made.items() if one.image}
        return trial.find_images(self.kubectl, own) if own else {}

    def pods_of(self, resolved: ResolvedScenario) -> Pods:
        """Return what the pods of a scenario would be made of."""
        return Pods(Parts(resolved, topology_of(resolved), "trial", Places(Path())), self.registry)

    def watch(self, run_id: str) -> Watch:
        """Watch the run's pods."""
        return Watch(self.kubectl, run_id)

    def start(self, parts: Parts, watch: protocol.Watch) -> None:
        """Make the pods, and wait until the startup probes of all collectors are answered."""
        if not isinstance(watch, Watch):
            raise TypeError("the watch is not this engine's")
        pods = Pods(parts, self.registry, self.spread, self.metrics)
        self.begin(pods, watch)
        self.running.begin(parts.resolved, parts.topology)
        Start(self.kubectl, pods, watch, self.last_words, self.running).start()

    def machines(self, topology: Topology) -> Mapping[str, str]:
        """Return the node of each pod."""
        _, watch = self.of_run
        pods = {one: watch.pod(one) for one in topology.all}
        return {one: pod["spec"]["nodeName"] for one, pod in pods.items() if pod} | self.running.nodes

    def ask(self, instance: str, *arguments: str, timeout_s: float = 20) -> str:
        """Carry out a command in the container of an instance's collector."""
        if collector := self.running.collector(instance):
            return collector.ask(*arguments, timeout_s=timeout_s)
        return self.kubectl(
            "exec", self.pod_name(instance), "--container", COLLECTOR, "--", *arguments, timeout_s=timeout_s
        )

    def stop(self, instances: Iterable[str], grace_s: int = STOP_GRACE_S) -> None:
        """End roles beside each other."""
        parallel.each(lambda one: self.end_role(one, grace_s), list(instances))

    def limit_cpus(self, instance: str, cpus: float | None) -> CpuStat | None:  # noqa: ARG002
        """Refuse, as `cannot` has already."""
        raise EngineFailed(f"the processors of {instance} cannot be limited on Kubernetes")

    def stop_along_the_path(self, topology: Topology, grace_s: int = STOP_GRACE_S) -> None:
        """End the roles along the path, then their collectors; then bring their files out."""
        for group in topology.instances.values():
            parallel.each(lambda one: self.end_role(one, grace_s), group)
        parallel.each(lambda one: self.end_collector(one, grace_s), topology.all)
        self.await_ends(topology.all)
        self.fetch(topology)
        self.running.leave()

    def remove(self) -> list[str]:
        """Remove all objects of this checkout's runs, at once and by force, and end collectors elsewhere."""
        left = self.running.abandon()
        listed = self.kubectl("get", _KINDS, "--selector", checkout_selector(), "--output", "name").split()
        if listed:
            now = ("--grace-period", "0", "--force", "--ignore-not-found", "--wait=true")
            self.kubectl("delete", _KINDS, "--selector", checkout_selector(), *now, timeout_s=120)
        return [*listed, *left]

    def clean(self) -> Cleaned:
        """Remove all objects of this checkout's runs; the images in the nodes are the cluster's."""
        return Cleaned(containers=self.remove())
