"""What a run asks of an engine, whatever stands behind it: `compose` is one, the tests have another in memory.

A collector shares its role's namespaces, so it reaches what nobody else does: the functions at the end ask it.
"""

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, Self

from analysis.evidence.rawfiles import Places
from lab.engines.cpu_stat import CpuStat
from lab.errors import EngineFailed, LabError, Problem
from lab.scenarios.overrides import Override
from lab.scenarios.own_configuration import OwnConfiguration
from lab.scenarios.own_script import OwnScript
from lab.scenarios.resolved import ResolvedScenario
from lab.scenarios.topology import Topology

# How long an instance has to end in order.
STOP_GRACE_S = 15
_POLL_S = 0.1
# Who shares a collector's process namespace reaches its files by /proc/<pid>/root if the collector has no capability
# that they lack. No engine gives this one by default, and all it grants is to wake a machine that sleeps.
_APART = "WAKE_ALARM"
# What a collector may: capture packets, and nothing that its target asks of it.
CAPABILITIES = ("NET_RAW", _APART)
# What it needs besides for the kernel's own events.
EVENT_CAPABILITIES = ("BPF", "PERFMON")
# Whoever has one of these reaches them all the same.
_REACHING = frozenset({"ALL", "SYS_PTRACE", _APART})


@dataclass(frozen=True)
class Finding:
    """One thing that the lab needs.

    Attributes:
        state: `missing` = no run is possible; `warn` = some are not, or their figures suffer.
        hint: what to do about it.
    """

    name: str
    state: Literal["ok", "warn", "missing"]
    found: str
    hint: str | None = None


@dataclass
class Cleaned:
    """What is gone, by name, and what could not be removed, with the reason."""

    containers: list[str] = field(default_factory=list)
    networks: list[str] = field(default_factory=list)
    volumes: list[str] = field(default_factory=list)
    images: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Parts:
    """What an engine starts for a run: an instance of each role, and a collector that holds its namespaces.

    Attributes:
        run_id: what everything that is started is labelled with.
        places: where each instance and each collector writes.
        certificates: what each instance gets of them (lab.scenarios.certificates); none without TLS.
    """

    resolved: ResolvedScenario
    topology: Topology
    run_id: str
    places: Places
    certificates: Mapping[str, str] = field(default_factory=dict)


class Watch(ABC):
    """The instances and collectors of a run that have ended so far, as the engine said; as a context it listens."""

    def __init__(self) -> None:
        self._exits: dict[str, int] = {}
        self._expected: dict[str, int | None] = {}
        self._out_of_memory: set[str] = set()

    def end(self, service: str, code: int, *, out_of_memory: bool = False) -> None:
        """Take in that a service has ended."""
        if out_of_memory:
            self._out_of_memory.add(service)
        (self._expected if service in self._expected else self._exits)[service] = code

    def expect(self, service: str, *, end: bool) -> None:
        """Take the next end of a service for one that was asked for, or no longer."""
        if end:
            self._expected[service] = None
        else:
            del self._expected[service]

    def expected_exit_code(self, service: str) -> int | None:
        """Return the exit code of a service whose end is expected; None until it has ended."""
        return self._expected[service]

    def exit_code(self, service: str) -> int | None:
        """Return the exit code of a service that ended unasked; None while it runs."""
        return self._exits.get(service)

    def ended(self, service: str) -> str | None:
        """Return how a service ended unasked, if it has."""
        code = self.exit_code(service)
        memory = ", out of memory" if service in self._out_of_memory else ""
        return None if code is None else f"{service} ended with exit code {code}{memory}"

    @abstractmethod
    def __enter__(self) -> Self:
        """Listen."""

    @abstractmethod
    def __exit__(self, *_: object) -> None:
        """Listen no more."""

    @abstractmethod
    def check(self) -> None:
        """Raise LabError if the engine no longer says what ends."""


def event_capabilities(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the capabilities that a collector needs for the kernel's events, if its settings ask for them."""
    return EVENT_CAPABILITIES if environment.get("CONNLAB_EVENTS") == "kernel" else ()


def why_apart(capabilities: Iterable[str], *, privileged: bool) -> str | None:
    """Return why a collector stays out of a container's process namespace; None if it need not.

    Args:
        capabilities: that the container has beyond the engine's default.
        privileged: whether it has all of them.
    """
    held = {one.upper().removeprefix("CAP_") for one in capabilities} & _REACHING
    if not held and not privileged:
        return None
    rights = f"the capability {min(held)}" if held else "all capabilities"
    return f"it has {rights}, so it could change what a collector there records"


@dataclass(frozen=True)
class Container:
    """A container that runs, or a pod with all of its containers.

    Attributes:
        pid: of its first process, as this host counts; 0 on another one.
        on_host: whether its network namespace is the host's.
        words: its image and command line, by which a program is known.
        processes: whether it has a process namespace that a collector can join.
        apart: why a collector stays out of that, if there is a reason.
        machine: on which it runs; None for this one.
        with_host: whether its process namespace is the host's, and no collector can stay out of it.
    """

    id: str
    name: str
    image: str
    pid: int
    on_host: bool
    words: str
    processes: bool = True
    apart: str | None = None
    machine: str | None = None
    with_host: bool = False


class Sidecar(Protocol):
    """A collector beside a target. Every verb raises EngineFailed if the engine fails."""

    def ask(self, *arguments: str) -> str:
        """Run a command in it, and give what the command prints."""

    def image(self) -> str:
        """Return the id of its image."""

    def ended(self) -> str | None:
        """Return its last words, once it has ended; None while it runs."""

    def stop(self) -> None:
        """Let it write what it has and end, then remove it.

        Raises:
            FilesLost: what it wrote cannot be had any more.
        """

    def remove(self) -> None:
        """Remove it, whatever it does; where nobody can, it ends."""


def await_healthy(
    collector: Sidecar, beside: str, within_s: float, end: float, note: Callable[[], str] = lambda: ""
) -> None:
    """Wait until a collector samples, and its capture listens.

    Args:
        collector: that was started.
        beside: what it observes, for a message.
        within_s: how long it had, for a message.
        end: when that is over, by the monotonic clock.
        note: what to say besides if it has ended.

    Raises:
        LabError: it has ended, or is not ready in time.
    """
    while True:
        try:
            collector.ask("collector", "healthy", "--within=5s")
        except EngineFailed:
            said = collector.ended()
        else:
            return
        if said is not None:
            raise LabError(f"the collector beside {beside} ended{note()}: {said}")
        if time.monotonic() > end:
            raise LabError(f"the collector beside {beside} was not ready within {within_s:g} s")
        time.sleep(_POLL_S)


class Sidecars(Protocol):
    """Finds what runs already, and puts collectors beside it. Every verb raises LabError if no engine answers."""

    def find_container(self, name: str) -> Container:
        """Find a container that runs.

        Raises:
            BadInput: there is none of this name, or it does not run.
        """

    def find_project_containers(self, project: str, service: str | None) -> list[Container]:
        """Find the running containers of a Compose project, or of one of its services.

        Raises:
            BadInput: there is none.
        """

    def find_process_container(self, pid: int) -> Container | None:
        """Return the container that a process of the host belongs to; None if it belongs to none."""

    def is_running(self, container_id: str) -> bool:
        """Return whether a container runs."""

    def start(
        self, name: str, environment: Mapping[str, str], folder: Path, *, target: str | int, processes: bool
    ) -> Sidecar:
        """Put a collector beside a target.

        Args:
            name: for the collector.
            environment: its settings.
            folder: where it writes.
            target: the id of a container, or a process of the host.
            processes: whether it joins the container's process namespace too.

        Raises:
            EngineFailed: it does not start.
        """


class Engine(Protocol):
    """Starts, steers and removes the parts of a run. Every verb raises LabError if the engine fails.

    Attributes:
        on_this_machine: whether the instances share this machine's kernel and memory, and write where the lab reads.
        metrics: the port on which each collector serves its current figures; None if none does.
    """

    on_this_machine: bool
    metrics: int | None

    def cannot(self, resolved: ResolvedScenario, topology: Topology) -> Iterator[Problem]:
        """Yield what a configuration asks for that this engine cannot do."""

    def found(self, resolved: ResolvedScenario) -> list[Override]:
        """Return what the engine has of services that run already, where a scenario does not say it.

        Raises:
            BadInput: there is no such service.
        """

    def examine(self) -> Iterable[Finding]:
        """Check the machine: say what this engine lacks on it, and a hint; raises nothing."""

    def versions(self) -> Mapping[str, str]:
        """Return the versions of the engine's programs, by their names in the manifest's `host`."""

    def open_files_cap(self) -> int | None:
        """Return the number of files that a process of an instance may open; None if unlimited, or not known."""

    def sidecars(self) -> Sidecars:
        """Return what finds containers that run already, and puts collectors beside them."""

    def examine_script(self, script: OwnScript) -> str | None:
        """Let k6 read a user's own script without running it.

        Returns:
            What `k6 inspect --execution-requirements` prints; None if there is no image of k6 yet.

        Raises:
            ScriptRefused: k6 does not take the script.
        """

    def examine_configuration(self, own: OwnConfiguration) -> str | None:
        """Let a role's program test a user's own configuration without running it.

        Returns:
            The configuration as the program read it; None if there is no image of the role yet.

        Raises:
            ConfigurationRefused: the program does not take it.
        """

    def images(self, names: Iterable[str]) -> dict[str, str]:
        """Return the ids of the lab's images by their short names; those that are missing are built first."""

    def service_images(self, resolved: ResolvedScenario) -> dict[str, str]:
        """Return the ids of the images of a scenario's own services, by the services' names; pulls or builds them.

        Raises:
            BadInput: an image cannot be had.
        """

    def start(self, parts: Parts, watch: Watch) -> None:
        """Make the namespaces, start the roles in them, and wait until all are ready.

        Raises:
            BadInput: the kernel refuses a sysctl.
        """

    def machines(self, topology: Topology) -> Mapping[str, str]:
        """Return the machine on which each instance runs; none if all run on this one."""

    def watch(self, run_id: str) -> Watch:
        """Watch the exits of a run's parts."""

    def ask(self, instance: str, *arguments: str, timeout_s: float = 20) -> str:
        """Run a command in an instance's collector, which shares its namespaces, and give what it prints.

        By this the lab reads back, warms up, and lets the clients go.

        Raises:
            EngineFailed: the command ended with an error.
        """

    def pause(self, instance: str) -> None:
        """Freeze all of an instance's processes."""

    def resume(self, instance: str) -> None:
        """Let a paused instance go on."""

    def stop(self, instances: Iterable[str], grace_s: int = STOP_GRACE_S) -> None:
        """Stop instances in order, and kill those that have not ended after the grace."""

    def signal(self, instance: str, signal: str) -> None:
        """Send a signal, such as SIGHUP, to an instance's first process."""

    def limit_cpus(self, instance: str, cpus: float | None) -> CpuStat | None:
        """Let an instance use so many processors at most; None takes the limit away.

        Returns:
            What the kernel had counted until then of limits that held the instance; None where that cannot be read.
        """

    def start_again(self, instance: str) -> None:
        """Start an instance that was stopped, in the same namespaces; it may not be ready yet."""

    def stop_along_the_path(self, topology: Topology, grace_s: int = STOP_GRACE_S) -> None:
        """Stop the roles along the path, then their collectors, which so record the roles' end.

        A server that ended beside its proxy would now and then be first to close the connections that the proxy keeps,
        and the capture would have it close what the experiment left open.
        """

    def exit_codes(self, topology: Topology) -> dict[str, int | None]:
        """Return the exit code of every instance; null for one that never ran."""

    def keep_logs(self, topology: Topology, raw: Path) -> None:
        """Write what each part said to raw/<instance>/container.log and collector.log."""

    def last_words(self, service: str) -> str:
        """Return the end of what an instance or a collector said, indented; empty if it said nothing."""

    def remove(self) -> list[str]:
        """Remove all parts of the lab's runs, at once and by force; give the names of what was left over."""

    def clean(self) -> Cleaned:
        """Remove everything that the lab made in the engine, its images too."""


def request_from(engine: Engine, instance: str, url: str, *, method: str = "GET", body: str | None = None) -> Any:  # noqa: ANN401 # JSON
    """Send a request from inside an instance's namespace and return the answer's JSON; null for an empty one."""
    more = ("--body", body) if body is not None else ()
    answer = engine.ask(instance, "collector", "http", "--method", method, *more, url)
    return _json(answer or "null", f"{instance} at {url}")


def inspect_tls(engine: Engine, instance: str, port: int, oldest: str) -> dict[str, Any]:
    """Return what an instance's listener of TLS takes from a version on, as handshakes inside its namespace show."""
    return ask_collector(engine, instance, "tls", "--oldest", oldest, f"127.0.0.1:{port}")


def await_ready(engine: Engine, instance: str, within_s: float) -> None:
    """Wait until a server that was started again is ready, as its collector waited for it at first."""
    engine.ask(instance, "collector", "ready", "--within", f"{within_s:g}s", timeout_s=within_s + 10)


def inspect_namespace(engine: Engine, instance: str, sysctls: Iterable[str]) -> dict[str, Any]:
    """Return what the kernel says of an instance's namespace: sysctls, listeners, addresses."""
    arguments = [part for name in sysctls for part in ("--sysctl", name)]
    return ask_collector(engine, instance, "inspect", *arguments)


def ask_collector(engine: Engine, instance: str, *arguments: str, timeout_s: float = 20) -> dict[str, Any]:
    """Return the JSON object with which an instance's collector answers a command.

    Raises:
        LabError: it answers with anything else, or not at all.
    """
    answer = _json(engine.ask(instance, "collector", *arguments, timeout_s=timeout_s), f"collector-{instance}")
    if not isinstance(answer, dict):
        raise LabError(f"collector-{instance} did not answer '{arguments[0]}' with an object: {answer!r}")
    return answer


def _json(text: str, source: str) -> Any:  # noqa: ANN401 # JSON
    try:
        return json.loads(text)
    except ValueError:
        raise LabError(f"{source} did not answer with JSON: {text[:200]!r}") from None
