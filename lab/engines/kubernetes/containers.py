"""Acts on the containers of a run's pods, ends them in order, and brings out what they left."""

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab import parallel
from lab.engines.kubernetes.kubectl import Kubectl
from lab.engines.kubernetes.objects import (
    COLLECTOR,
    HOLD,
    ROLE,
    instance_of,
    pod_name,
    service_of,
)
from lab.engines.kubernetes.pods import Pods, build_added_role
from lab.engines.kubernetes.watch import Watch, container_statuses
from lab.engines.programs import StreamingCommand
from lab.engines.protocol import Parts
from lab.errors import LabError
from lab.scenarios.topology import Topology, collector_of

# The kubelet looks at its containers once a second, and tells the cluster then.
_TOLD_S = 15
_LOGS_S = 60

# Run where all processes of the pod are seen. $1: a container's id; its first process has the lowest number.
_PIDS = 'pids() { grep -lsF "$1" /proc/[0-9]*/cgroup | cut -d/ -f3 | sort -n; }; '
# It goes on when it is told to, or when nobody is there to tell it.
_PAUSE = _PIDS + 'all=$(pids "$1"); kill -s STOP $all && echo done; read -r _; kill -s CONT $all && echo done'
_SEND_FIRST = _PIDS + 'kill -s "$2" $(pids "$1" | head -n 1)'
_AWAIT = (
    _PIDS
    + 'first=$(pids "$1" | head -n 1); n=0; while [ -n "$first" ] && [ -d "/proc/$first" ] && [ $n -lt "$2" ]; '
    + 'do sleep 0.1; n=$((n + 1)); done; [ -z "$first" ] || [ ! -d "/proc/$first" ] && echo ended'
)


@dataclass
class Containers:
    """The containers of the run that was begun, if one was."""

    kubectl: Kubectl = field(default_factory=Kubectl)
    _begun: tuple[Pods, Watch] | None = field(default=None, init=False)
    _paused: dict[str, tuple[StreamingCommand, Iterator[str]]] = field(default_factory=dict, init=False)

    def begin(self, pods: Pods, watch: Watch) -> None:
        """Take the containers of a run from now on."""
        self._begun = pods, watch

    @property
    def pods(self) -> Pods:
        """Return what the pods of the run are made of."""
        return self._of_run()[0]

    @property
    def of_run(self) -> tuple[Parts, Watch]:
        """Return the parts of the run, and what watches them."""
        pods, watch = self._of_run()
        return pods.parts, watch

    def _of_run(self) -> tuple[Pods, Watch]:
        if self._begun is None:
            raise LabError("nothing of this run has been started in the cluster")
        return self._begun

    def pause(self, instance: str) -> None:
        """Stop each process of a role. One command does both ends: a second one would take a while to begin.

        Raises:
            LabError: the role does not run, or its processes cannot be stopped.
        """
        container = self._running(instance, ROLE)
        if container is None:
            raise LabError(f"{instance} does not run")
        command = ("exec", "--stdin", self.pod_name(instance), "--container", HOLD)
        following = self.kubectl.follow(*command, "--", "sh", "-c", _PAUSE, "sh", container, talks=True)
        answers = iter(following)
        self._paused[instance] = following, answers
        self._confirm(instance, answers)

    def resume(self, instance: str) -> None:
        """Let the processes of a paused role go on.

        Raises:
            LabError: the cluster does not say that they do.
        """
        following, answers = self._paused[instance]
        following.say("")
        try:
            self._confirm(instance, answers)
        finally:
            following.end()

    @staticmethod
    def _confirm(instance: str, answers: Iterator[str]) -> None:
        if next(answers, "") != "done\n":
            raise LabError(f"the cluster did not send the signal to {instance}")

    def end_role(self, instance: str, grace_s: int) -> None:
        """End a role by its program's own signal, and kill it if it has not ended after the grace."""
        resolved, topology = self.of_run[0].resolved, self.of_run[0].topology
        role = topology.role_of(instance)
        own = resolved.registry.services.get(role)
        signal = (own and own.stop_signal) or topology.roles[role].stop_signal
        self._end(instance, ROLE, HOLD, signal.removeprefix("SIG"), grace_s)

    def signal(self, instance: str, signal: str) -> None:
        """Send a signal to a role's first process.

        Raises:
            LabError: the role does not run, or the cluster does not carry the command out.
        """
        container = self._running(instance, ROLE)
        if container is None:
            raise LabError(f"{instance} does not run")
        self._shell(instance, HOLD, _SEND_FIRST, container, signal.removeprefix("SIG"))

    def end_collector(self, instance: str, grace_s: int) -> None:
        """End a collector. It is root, so that only another process of its own container may signal it."""
        self._end(instance, COLLECTOR, COLLECTOR, "TERM", grace_s)

    def _end(self, instance: str, kind: str, sender: str, signal: str, grace_s: int) -> None:
        container = self._running(instance, kind)
        if container is None:
            return
        for sent, wait_s in ((signal, grace_s), ("KILL", grace_s)):
            # What ends the container may end the command that asked for it.
            with contextlib.suppress(LabError):
                self._shell(instance, sender, _SEND_FIRST, container, sent)
            try:
                waited = self._shell(instance, HOLD, _AWAIT, container, str(10 * wait_s), timeout_s=wait_s + 30)
            except LabError:
                return  # its pod is gone or does not answer, and the others are still to be ended
            if "ended" in waited:
                return

    def start_again(self, instance: str) -> None:
        """Add the role's container to an instance's pod, anew or at last, which starts it in the same namespaces."""
        number = len(self._of_role(instance)) + 1
        self.kubectl.add(self.pod_name(instance), build_added_role(self.pods.role_container(instance), number))

    def exit_codes(self, topology: Topology) -> dict[str, int | None]:
        """Return the exit code of each instance, of its last start; null for one that never ran."""
        codes = {}
        for instance in topology.all:
            ended = [one["state"].get("terminated", {}) for one in self._of_role(instance)]
            codes[instance] = ended[-1].get("exitCode") if ended else None
        return codes

    def await_ends(self, instances: Iterable[str]) -> None:
        """Wait until the cluster has told how these have ended; what it does not tell in time is not known."""

        def has_ended(one: str) -> bool:
            return all(self._running(one, kind) is None for kind in (ROLE, COLLECTOR))

        waiting = [one for one in instances if self.of_run[1].pod(one)]
        self.of_run[1].await_pods(waiting, lambda pod: has_ended(instance_of(pod)), _TOLD_S)

    def keep_logs(self, topology: Topology, raw: Path) -> None:
        """Write what each container said."""

        def keep(instance: str) -> None:
            if self.of_run[1].pod(instance) is None:
                return
            names = [one["name"] for one in self._of_role(instance)]
            for file, containers in (("container.log", names), ("collector.log", [COLLECTOR])):
                said = []
                # Half a log is better than a run that ends for it.
                for name in containers:
                    with contextlib.suppress(LabError):
                        said.append(
                            self.kubectl("logs", self.pod_name(instance), "--container", name, timeout_s=_LOGS_S)
                        )
                path = raw / instance / file
                path.unlink(missing_ok=True)
                with path.open("x") as stream:
                    stream.write("".join(said))

        parallel.each(keep, topology.all)

    def last_words(self, service: str) -> str:
        """Return the end of what a container said, indented; empty if it said nothing."""
        for instance in self.pods.names:
            if service not in (instance, collector_of(instance)):
                continue
            names = [one["name"] for one in self._of_role(instance)] or [ROLE]
            container = names[-1] if service == instance else COLLECTOR
            with contextlib.suppress(LabError):
                said = self.kubectl(
                    "logs", self.pod_name(instance), "--container", container, "--tail", "10", timeout_s=10
                )
                return "".join(f"\n  {line}" for line in said.strip().splitlines())
        return ""

    def fetch(self, topology: Topology) -> None:
        """Bring the files of all instances into the run's folder.

        Raises:
            LabError: they cannot be had of an instance whose pod is there.
        """
        places = self.of_run[0].places

        def fetch(instance: str) -> None:
            self.kubectl.copy_out(self.pod_name(instance), HOLD, "/raw", places.collector(instance).parent)

        parallel.each(fetch, [one for one in topology.all if self._running(one, HOLD)])

    def _running(self, instance: str, kind: str) -> str | None:
        """Return the id of a container that runs; of a role's the one that was started last."""
        found = self._of_role(instance) if kind == ROLE else self._statuses(instance)
        for one in reversed(found):
            if "running" in one.get("state", {}) and (kind == ROLE or one["name"] == kind):
                return str(one["containerID"]).partition("://")[2]
        return None

    def _of_role(self, instance: str) -> list[Mapping[str, Any]]:
        return [one for one in self._statuses(instance) if service_of(instance, one["name"]) == instance]

    def _statuses(self, instance: str) -> list[Mapping[str, Any]]:
        return container_statuses(self.of_run[1].pod(instance) or {})

    def _shell(self, instance: str, container: str, script: str, *arguments: str, timeout_s: float = 20) -> str:
        command = ("sh", "-c", script, "sh", *arguments)
        return self.kubectl(
            "exec", self.pod_name(instance), "--container", container, "--", *command, timeout_s=timeout_s
        )

    def pod_name(self, instance: str) -> str:
        """Name an instance's pod."""
        return pod_name(self.of_run[0].run_id, instance)
