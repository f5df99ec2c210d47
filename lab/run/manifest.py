"""manifest.json: what was run, on what, with which settings, when, and how it ended."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from formats import owner
from formats.safe_open import read_regular
from lab.scenario.effective import Effective, Source
from lab.scenario.fields import Action, Claim, Published, Tolerance
from lab.scenario.topology import Topology
from lab.whole import write_whole

FILE = "manifest.json"
_RESERVE_BYTES = 128 << 10
# The reserves that this process holds, by their folders.
_HELD: dict[Path, int] = {}
Status = Literal["running", "complete", "aborted", "failed"]
PhaseName = Literal["prepare", "warmup", "measure", "drain"]
Scalar = int | bool | str


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", validate_by_name=True)


class Git(_Part):
    """The state of the repository; null where it is not a git repository."""

    commit: str | None = None
    dirty: bool | None = None


class LabVersion(_Part):
    """The program that made the run."""

    version: str
    python: str


class Host(_Part, extra="allow"):
    """The machine, and the versions of the engine's programs by their names, as `docker`."""

    __pydantic_extra__: dict[str, str]

    kernel: str
    distribution: str
    cpus: int
    memory_kb: int


class KnobRecord(_Part):
    """One knob; durations in milliseconds.

    Attributes:
        read_back: what the running server, kernel or proxy says the value is; null where none of them can tell.
        where: the lines of the scenario's own configuration that say it; none for its program's default.
    """

    value: Scalar
    default: Scalar | None
    source: Source
    read_back: Scalar | None = None
    where: list[str] | None = None


class Listener(_Part):
    """A listening socket as the kernel describes it; depth and limit in connections."""

    address: str
    port: int
    depth: int
    limit: int
    drops: int | None = None


class Phase(_Part):
    """A span of the run; Unix epoch in microseconds, the end null while it lasts.

    `…_mono_us` is the same moment by the monotonic clock, which nobody sets.
    """

    name: PhaseName
    start_us: int
    end_us: int | None = None
    start_mono_us: int | None = None
    end_mono_us: int | None = None


class Guess(_Part):
    """What the person at the terminal expected of one figure, told before the run; null where they passed it over.

    Attributes:
        prediction: the id of the prediction that the question was taken from.
        unit: the figure's; empty or `count` for a count.
    """

    prediction: str
    figure: str
    asks: str
    unit: str
    value: int | float | None


class ActionRecord(_Part):
    """What the lab did to a server in the measurement; Unix epoch in microseconds, null for what did not come about.

    Attributes:
        at_ms: when it was to be, from the start of the measurement.
        for_ms: how long it was to last; null if nothing was said.
        start_us: just before the engine was asked.
        down_us: of a restart and a stop: when the server had ended.
        end_us: when it was done: the server ran on, was ready again, or had ended.
        exit_code: of a restart and a stop: the server's at that end.
    """

    do: Literal["pause", "restart", "stop"]
    instance: str
    at_ms: int
    for_ms: int | None = None
    start_us: int | None = None
    down_us: int | None = None
    end_us: int | None = None
    exit_code: int | None = None


class Removed(_Part):
    """What a container left under a name below raw/ that is not a plain file, and the lab therefore removed.

    Attributes:
        file: its path below the run's folder.
        was: what it was, such as `a symbolic link`.
    """

    file: str
    was: str


class Program(_Part):
    """A server that the lab knows: its default backlog, the setting that raises it, and who says so.

    Attributes:
        backlog: null where it depends on another setting.
        setting: null where the program has none.
    """

    name: str
    backlog: int | None = None
    setting: str | None = None
    how: str | None = None
    source: str | None = None


class Target(_Part):
    """What one collector watched.

    Attributes:
        kind: by what it was named.
        name: the container's or the pod's, or the number of the process.
        peer: whether it stands beside a client of the other targets.
        ended: whether it ended while it was observed.
    """

    instance: str
    kind: Literal["container", "service", "process", "pod"]
    name: str
    image: str | None = None
    program: Program | None = None
    peer: bool = False
    ended: bool = False


class Observed(_Part):
    """A system that the lab did not start.

    Attributes:
        for_ms: how long it was to be observed.
        interface: the interface that was captured.
        connect_timeout_ms: how long its clients wait for a connection, if the user said so.
    """

    targets: list[Target]
    for_ms: int
    capture: Literal["headers", "handshakes", "off"]
    capture_max_mb: int
    interface: str
    connect_timeout_ms: int | None = None


class Look(_Part):
    """A look at the clock of an instance's machine, where that is not the lab's; Unix epoch in microseconds.

    Attributes:
        asked_us: just before, by the lab's clock.
        shown_us: what the instance's clock showed.
        told_us: just after, by the lab's clock.
    """

    instance: str
    asked_us: int
    shown_us: int
    told_us: int


class Manifest(_Part):
    """The whole file."""

    model_config = ConfigDict(title="connlab manifest")

    contract: Annotated[Literal["connlab.manifest/1"], Field(alias="schema")] = "connlab.manifest/1"
    scenario: str
    folder: Annotated[
        str | None, Field(description="The folder of a scenario that is not one of the lab's own; null for those")
    ] = None
    title: str | None = None
    question: str | None = None
    run: str
    series: str | None = None
    cell: str = "default"
    repetition: int = 1
    preset: str | None = None
    by_set: Annotated[
        bool,
        Field(description="Whether the scenario with these knobs set is this run: no path or arm besides"),
    ] = True
    status: Status = "running"
    reason: str | None = None
    command: list[str]
    started: str
    ended: str | None = None
    git: Git = Git()
    lab: LabVersion
    images: dict[str, str] = {}
    host: Host
    path: list[str]
    roles: Annotated[
        dict[str, dict[str, Any]], Field(description="The declaration of each role on the path; see role.schema.json")
    ] = {}
    instances: dict[str, list[str]]
    addresses: dict[str, list[str]] = {}
    nodes: Annotated[
        dict[str, str], Field(description="The machine of each instance; empty where the lab's own has all")
    ] = {}
    clocks: list[Look] = []
    knobs: dict[str, KnobRecord]
    sysctls: dict[str, dict[str, str | None]] = {}
    listeners: dict[str, list[Listener]] = {}
    metrics_port: Annotated[
        int | None, Field(description="Where each collector served its figures while the run lasted; null if none did")
    ] = None
    phases: list[Phase] = []
    actions: list[ActionRecord] = []
    exits: dict[str, int | None] = {}
    removed: list[Removed] = []
    slow_ms: int | None = None
    tolerance: Tolerance
    predictions: list[Claim]
    published: Published | None = None
    guesses: list[Guess] = []
    observed: Annotated[
        Observed | None, Field(description="What was watched, if the lab started none of it; else null")
    ] = None
    profile: Annotated[
        dict[str, float] | None,
        Field(
            description="Milliseconds of each step, in the order in which they began, if that was asked for; else null."
            " `prepare/start` is a part of `prepare`"
        ),
    ] = None

    def begin(self, name: PhaseName) -> Phase:
        """Open a phase now, and close the one before it."""
        now_us, mono_us = _now_us()
        self._end_phase(now_us, mono_us)
        self.phases.append(Phase(name=name, start_us=now_us, start_mono_us=mono_us))
        return self.phases[-1]

    def end_phase(self) -> None:
        """Close the open phase, if there is one."""
        self._end_phase(*_now_us())

    def _end_phase(self, now_us: int, mono_us: int) -> None:
        if self.phases and self.phases[-1].end_us is None:
            self.phases[-1].end_us, self.phases[-1].end_mono_us = now_us, mono_us

    def finish(self, status: Status, reason: str | None = None) -> None:
        """Say how the run ended; a run that has ended stays so."""
        if self.status != "running":
            return
        self.end_phase()
        self.status, self.reason, self.ended = status, reason, utc_now()

    def save(self, folder: Path) -> None:
        """Write the file; a reader sees the old one or the new one, whole."""
        write_whole(folder / FILE, self.model_dump_json(by_alias=True, indent=2) + "\n")


def reserve(folder: Path) -> None:
    """Put by the room for a manifest, so that one can still be written when the disk is full; `owner` says what else.

    Raises:
        OSError: there is no room, or it was put by already.
    """
    descriptor = os.open(folder / owner.FILE, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    try:
        with os.fdopen(descriptor, "wb", closefd=False) as stream:
            stream.write(bytes(_RESERVE_BYTES))
    except OSError:
        os.close(descriptor)
        raise
    # Without a lock, as on some network file systems, a run whose process was killed seems to go on.
    with contextlib.suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    _HELD[folder] = descriptor


def release(folder: Path) -> None:
    """Give the room back, just before the last manifest is written."""
    (folder / owner.FILE).unlink(missing_ok=True)
    if (descriptor := _HELD.pop(folder, None)) is not None:
        os.close(descriptor)


def load(folder: Path) -> Manifest:
    """Read a run's manifest.

    Raises:
        OSError, ValueError: there is none, or it is not one of ours.
    """
    return Manifest.model_validate_json(read_regular(folder / FILE))


def _now_us() -> tuple[int, int]:
    """Give this moment by the wall clock and by the monotonic one."""
    return time.time_ns() // 1000, time.monotonic_ns() // 1000


def utc_now() -> str:
    """Give the time as the manifest writes it: `2026-01-31T12:00:00Z`."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def knob_records(effective: Effective, defaults: Mapping[str, Scalar]) -> dict[str, KnobRecord]:
    """Record every knob of the roles on the path with its default and who set it; sysctls have no default here."""
    return {
        name: KnobRecord(value=value, default=defaults.get(name), source=effective.source(name))
        for name, value in effective.on_path().items()
    }


def instances_of(topology: Topology) -> dict[str, list[str]]:
    """Give the instances by role, as the file has them."""
    return {str(role): list(instances) for role, instances in topology.instances.items()}


def actions_of(actions: list[Action]) -> list[ActionRecord]:
    """Give what the file says of actions before they are done."""
    return [ActionRecord(do=one.do, instance=one.instance, at_ms=one.at, for_ms=one.lasts) for one in actions]
