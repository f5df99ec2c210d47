"""The model of manifest.json: what was run, on what, with which settings, when, and how it ended.

The lab writes it; both packages read it. A run that ended early has a manifest with holes, and what stands in it still
counts. A run may come from anybody: `formats.field_types` bounds what its fields may hold, and fields that a later
minor version adds are passed over.
"""

import json
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol, Self, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, ValidationError, model_validator

from formats import role as role_file
from formats import run_liveness
from formats.field_types import (
    MS_MAX,
    Count,
    ExitCode,
    HostName,
    Instance,
    KnobName,
    Ms,
    Named,
    Number,
    Port,
    Scalar,
    SeriesId,
    Us,
)
from formats.knob_types import Unit, refusal
from formats.log_format import LogFormat
from formats.predictions import Claim, Published, Tolerance
from formats.role import TRAFFIC_PORT, Role
from formats.safe_files import atomic_write, read_regular
from formats.sanitize import format_validation_error

FILE = "manifest.json"
SOMAXCONN, PORT_RANGE = "net.core.somaxconn", "net.ipv4.ip_local_port_range"
SCHEMA: Literal["connlab.manifest/1"] = "connlab.manifest/1"
KILLED = "the lab's process ended without a message (killed, or the machine went down)"
Status = Literal["running", "complete", "aborted", "failed"]
PhaseName = Literal["prepare", "warmup", "measure", "drain"]
CaptureMode = Literal["headers", "handshakes", "off"]
EventSource = Literal["off", "kernel"]
# Who set a knob.
Source = Literal["scenario", "set", "preset", "cell", "file", "default"]


class ManifestError(ValueError):
    """There is no usable manifest: the folder is not a run's, or the file is broken or of another version."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True, validate_by_name=True, defer_build=True)


class Git(_Part):
    """The state of the repository; null where it is not a git repository."""

    commit: str | None = None
    dirty: bool | None = None


class LabVersion(_Part):
    """The program that made the run."""

    version: str = ""
    python: str = ""


class Host(_Part, extra="allow"):
    """The machine, and the versions of the engine's programs by their names, as `docker`."""

    __pydantic_extra__: dict[str, Scalar | None]

    kernel: str = ""
    distribution: str = ""
    cpus: Annotated[Count, Field(gt=0)] | None = None
    memory_kb: Count | None = None


class Knob(_Part):
    """One knob.

    Attributes:
        unit: of value, default and read_back, as the knob's declaration has it; null for what has none.
        read_back: what the running server, kernel or proxy says the value is; null where none of them can tell.
        where: the lines of the scenario's own configuration that say it; none for its program's default.
    """

    value: Scalar | None
    default: Scalar | None = None
    source: Source | None = None
    unit: Unit | None = None
    read_back: Scalar | None = None
    where: list[str] | None = None


class Listener(_Part):
    """A listening socket as the kernel describes it; depth and limit in connections."""

    address: str = ""
    port: Port
    depth: Count = 0
    limit: Count
    drops: Count | None = None


class _Socket(Protocol):
    @property
    def address(self) -> str: ...
    @property
    def port(self) -> int: ...


_S = TypeVar("_S", bound=_Socket)


def listeners_of_traffic(listeners: Iterable[_S], port: int, *, ipv6: bool = False) -> list[_S]:
    """Return the sockets to which the load comes: of one for IPv4 and one for IPv6, that of the clients' addresses.

    Each has an accept queue of its own, and that of the other family stays empty.
    """
    found = [one for one in listeners if one.port == port]
    return [one for one in found if (":" in one.address) == ipv6] or found


class Phase(_Part):
    """A span of the run; Unix epoch in microseconds, the end null while it lasts.

    `…_mono_us` is the same moment by the monotonic clock, which nobody sets.
    """

    name: PhaseName
    start_us: Us
    end_us: Us | None = None
    start_mono_us: Us | None = None
    end_mono_us: Us | None = None


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
    value: Number | None


# How long after a reload its old processes close connections.
_OLD_WORKERS_US = 1_000_000
# What the lab does to a server, or to a link.
ActionKind = Literal["pause", "restart", "stop", "drain", "start", "reload", "cpu", "link", "dns", "filter"]

# What is done to no server, and so beside whatever is.
BESIDE_SERVERS: tuple[ActionKind, ...] = ("link", "dns", "filter")

# What a packet filter answers a client that connects.
FilterAnswer = Literal["none", "port-unreachable", "host-prohibited"]


class ActionRecord(_Part):
    """What the lab did to a server or a link in the measurement; null for what did not come about.

    Times are Unix epoch in microseconds.

    Attributes:
        at_ms: when it was to be, from the start of the measurement.
        for_ms: how long it was to last; null if nothing was said.
        grace_ms: how long requests under way might go on; null for the engine's own time.
        cpus: of cpu: the processors that it left the instance.
        throttled_periods: of cpu: in how many periods of 100 ms the instance had used up its share, and its kernel let
            none of its processes run (cpu.stat, nr_throttled); null where the lab cannot read that.
        throttled_us: of cpu: for how long, in sum, once for each processor; null likewise.
        to: of link: the role to which it leads.
        change: of link: what was different meanwhile, by the names of the link's knobs.
        name: of dns: the name that the lab let lead to the instance.
        was: of dns: the instance to which it led before.
        answer: of filter: what a client that connected got.
        start_us: just before the engine was asked.
        down_us: of what ended the server: when it had ended.
        end_us: when it was done: the server or the link was as before, the server was ready again, or had ended.
        exit_code: of what ended the server: its exit code.
    """

    do: ActionKind
    instance: Instance
    at_ms: Ms
    for_ms: Ms | None = None
    grace_ms: Ms | None = None
    cpus: Number | None = None
    throttled_periods: Count | None = None
    throttled_us: Count | None = None
    to: Named | None = None
    change: dict[Named, Scalar] | None = None
    name: HostName | None = None
    was: Instance | None = None
    answer: FilterAnswer | None = None
    start_us: Us | None = None
    down_us: Us | None = None
    end_us: Us | None = None
    exit_code: ExitCode | None = None

    @property
    def ends_it(self) -> bool:
        """Whether the server's process ended, and all that it counted with it."""
        return self.do in ("drain", "restart", "stop")

    @property
    def is_ending(self) -> bool:
        """Whether it promises not to lose requests: processes end in order, for good or for new ones."""
        return self.ends_it or self.do == "reload"

    @property
    def concerns(self) -> str:
        """The instance whose requests it may concern: of a name that moved, the one that the name led to before."""
        return self.was if self.do == "dns" and self.was else self.instance

    @property
    def words(self) -> str:
        """What the lab does, after `to`."""
        if self.do == "cpu":
            return f"limit the processors of {self.instance} to {self.cpus:g}"
        if self.do == "link":
            changed = ", ".join(f"{name} {value}" for name, value in (self.change or {}).items())
            return f"change the link from {self.instance} to {self.to} ({changed})"
        if self.do == "dns":
            return f"move the name {self.name} from {self.was} to {self.instance}"
        if self.do == "filter":
            return f"filter what connects to {self.instance} (answer: {self.answer})"
        return f"{self.do} {self.instance}"


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
    backlog: Count | None = None
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

    instance: Instance
    kind: Literal["container", "service", "process", "pod", "files"]
    name: str
    image: str | None = None
    program: Program | None = None
    peer: bool = False
    ended: bool = False


EvidenceKind = Literal["capture", "dump", "nginx-access", "nginx-error", "haproxy"]


class EvidenceFile(_Part):
    """A file of evidence that somebody else recorded.

    Attributes:
        name: as the user gave it.
        instance: whose evidence it is.
        file: of a log, its name in raw/<instance>/role/.
        timed: whether a dump says when it was made; what does not stands in the order in which it was given.
        anew: whether a dump's counters say what has grown since the last call, as those of `nstat` without -a do.
        idle_percent: how much of the processors was idle by a dump.
        no_address: how often a dump has the error EADDRNOTAVAIL.
        unlimited: listeners whose queue's limit a dump does not tell, each with the connections that wait.
    """

    name: str
    kind: EvidenceKind
    instance: Instance
    file: Named | None = None
    timed: bool = True
    anew: bool = False
    idle_percent: Number | None = None
    no_address: Count = 0
    unlimited: dict[str, Count] = {}


class Observed(_Part):
    """A system that the lab did not start.

    Attributes:
        files: what somebody else recorded; none where collectors watched.
        server: the one server, `address:port`, whose connections the account is about; null for all.
        for_ms: how long it was to be observed.
        interface: the interface that was captured.
        events: whether the kernel's own events were asked for.
        connect_timeout_ms: how long its clients wait for a connection, if the user said so.
    """

    targets: list[Target]
    files: list[EvidenceFile] = []
    server: Annotated[str, Field(pattern=r"^[0-9a-f.:]{2,45}:[0-9]{1,5}$")] | None = None
    for_ms: Ms | None = None
    capture: CaptureMode
    capture_max_mb: Count | None = None
    interface: str | None = None
    events: EventSource = "off"
    connect_timeout_ms: Annotated[Ms, Field(gt=0)] | None = None


class LinkUse(_Part):
    """What a link carried from the moment it was set, the probes included.

    Attributes:
        packets: that came to the link.
        lost: of these, by whatever the link was asked to do.
        unqueued: that the kernel dropped because the collector did not take them; null by netem.
        late: that left more than a millisecond after their time; null by netem.
        late_max_us: how late the worst of them was.
    """

    packets: Count
    lost: Count
    unqueued: Count | None = None
    late: Count | None = None
    late_max_us: Count | None = None


class LinkRecord(_Part):
    """One direction of the way from an instance to a role.

    Attributes:
        instance: the sender, whose collector made the link.
        way: netem: by the kernel; nfqueue: by the collector, which holds the packets.
        asked: by the names of the link's knobs, as `delay` in ms, `loss` in %, `rate` in kbit/s.
        read_back: the same, as the kernel or the collector has it.
        use: null where the collector did not tell it.
    """

    instance: Instance
    to: Named
    way: Literal["netem", "nfqueue"]
    asked: dict[Named, Scalar]
    read_back: dict[Named, Scalar]
    use: LinkUse | None = None


class RoundTrip(_Part):
    """What ICMP echoes measured between two instances, after the links were set and before the load.

    Attributes:
        instance: who sent them.
        to: who answered.
        min_us: of the round trips; null, as the others, where no echo was answered.
        asked_ms: what the links of both directions make together.
        asked_loss_percent: the same, of the share that gets lost on either way.
        loss_low_percent: where a loss as measured may come from, with 95 % confidence (Wilson's interval).
    """

    instance: Instance
    to: Instance
    sent: Count
    received: Count
    min_us: Number | None
    p50_us: Number | None
    p99_us: Number | None
    max_us: Number | None
    asked_ms: Number
    asked_loss_percent: Number
    loss_low_percent: Number
    loss_high_percent: Number


class ClockReading(_Part):
    """A look at the clock of an instance's machine, where that is not the lab's; Unix epoch in microseconds.

    Attributes:
        asked_us: just before, by the lab's clock.
        shown_us: what the instance's clock showed.
        told_us: just after, by the lab's clock.
    """

    instance: Instance
    asked_us: Us
    shown_us: Us
    told_us: Us


def tolerant(model: type[BaseModel]) -> BeforeValidator:
    """Read a part whose unknown keys are mistakes where a person writes it, and a later version's here."""

    # Hundreds of runs have the same roles, and to check one takes a hundredth of a second.
    @lru_cache(maxsize=128)
    def parse(text: str) -> BaseModel:
        return model.model_validate(json.loads(text), extra="ignore")

    def read(value: object) -> object:
        if not isinstance(value, Mapping):
            return value
        try:
            return parse(json.dumps(value))
        except ValidationError as error:
            raise refusal(format_validation_error(error)) from None

    return BeforeValidator(read)


_Role = Annotated[Role, tolerant(Role), PlainSerializer(Role.as_written, dict[str, Any])]


class OwnProgram(_Part):
    """What runs a configuration of the user's own."""

    image: Annotated[
        str | None, Field(description="The user's image that has it, whose id is in `images`; null for the lab's own")
    ] = None
    version: Annotated[str | None, Field(description="As the program itself says; null if it did not")] = None


class ServiceSetting(_Part):
    """A setting of the program that a service of the user's own runs."""

    program: Annotated[str, Field(description="Such as gunicorn")]
    setting: Annotated[str, Field(description="Its own name for it")]
    where: Annotated[
        str | None, Field(description="The file, from the scenario's folder, and the line; null if no line sets it")
    ] = None
    text: Annotated[str | None, Field(description="That line")] = None


class Manifest(_Part):
    """The whole file."""

    model_config = ConfigDict(title="connlab manifest")

    contract: Annotated[Literal["connlab.manifest/1"], Field(alias="schema")]
    scenario: Named
    folder: Annotated[
        str | None, Field(description="The folder of a scenario that is not one of the lab's own; null for those")
    ] = None
    title: str | None = None
    question: str | None = None
    run: Named
    series: SeriesId | None = None
    cell: Named = "default"
    repetition: Count = 1
    preset: Named | None = None
    by_set: Annotated[
        bool,
        Field(description="Whether the scenario with these knobs set is this run: no path or arm besides"),
    ] = True
    status: Status
    reason: str | None = None
    command: list[str] = []
    started: str = ""
    ended: str | None = None
    git: Git = Git()
    lab: LabVersion = LabVersion()
    images: dict[str, str] = {}
    programs: Annotated[
        dict[Named, OwnProgram], Field(description="What runs a configuration of the user's own, by the role")
    ] = {}
    settings: Annotated[
        dict[Named, dict[str, ServiceSetting]],
        Field(
            description="By service: how long its program keeps idle connections (idle), its backlog, and how many"
            " requests it serves at once (workers)"
        ),
    ] = {}
    host: Host = Host()
    path: list[Named] = []
    roles: Annotated[
        dict[Named, _Role], Field(description="The declaration of each role on the path; see role.schema.json")
    ] = {}
    instances: dict[Named, list[Instance]] = {}
    addresses: dict[Instance, list[str]] = {}
    nodes: Annotated[
        dict[Instance, Named], Field(description="The machine of each instance; empty where the lab's own has all")
    ] = {}
    clocks: list[ClockReading] = []
    knobs: dict[KnobName, Knob] = {}
    sysctls: dict[str, dict[str, str | None]] = {}
    listeners: dict[str, list[Listener]] = {}
    links: Annotated[
        list[LinkRecord], Field(description="The links between roles, as asked and read back; empty for loopback's own")
    ] = []
    round_trips: Annotated[list[RoundTrip], Field(description="What was measured over the links before the load")] = []
    metrics_port: Annotated[
        Count | None,
        Field(description="Where each collector served its figures while the run lasted; null if none did"),
    ] = None
    phases: list[Phase] = []
    actions: list[ActionRecord] = []
    exits: dict[str, ExitCode | None] = {}
    removed: list[Removed] = []
    slow_ms: Annotated[Ms, Field(gt=0)] | None = None
    tolerance: Annotated[Tolerance, tolerant(Tolerance)] = Tolerance()
    predictions: list[Annotated[Claim, tolerant(Claim)]] = []
    published: Annotated[Published | None, tolerant(Published)] = None
    guesses: list[Guess] = []
    observed: Annotated[
        Observed | None, Field(description="What was watched, if the lab started none of it; else null")
    ] = None
    profile: Annotated[
        dict[str, Annotated[float, Field(ge=0, le=MS_MAX)]] | None,
        Field(
            description="Milliseconds of each step, in the order in which they began, if that was asked for; else null."
            " `prepare/start` is a part of `prepare`"
        ),
    ] = None

    @model_validator(mode="after")
    def _begins_at_a_client(self) -> Self:
        """A run that ended before its path was known has none; what was observed where it ran has none either."""
        first = next(iter(self.request_path), None)
        lacks = self.status == "complete" if first is None else self.kind_of(first) != "client"
        if lacks and self.observed is None:
            raise ValueError("path does not begin at a client")
        return self

    @model_validator(mode="after")
    def _has_each_prediction_once(self) -> Self:
        ids = [one.id for one in self.predictions]
        if twice := next((one for one in ids if ids.count(one) > 1), None):
            raise ValueError(f"predictions has the id {twice!r} twice")
        return self

    @classmethod
    def of_observation(cls, folder: Path, title: str, observed: Observed, command: Sequence[str]) -> Self:
        """Return the manifest of an observation that begins: each target is an instance, and nothing is a path."""
        return cls(
            contract=SCHEMA,
            status="running",
            scenario=folder.parent.name,
            title=title,
            run=folder.name,
            by_set=False,
            command=list(command),
            started=utc_now(),
            instances={each.instance: [each.instance] for each in observed.targets},
            observed=observed,
        )

    def of_role(self, role: str) -> list[str]:
        """Return the instances of a role, none if it takes no part."""
        return self.instances.get(role, [])

    def kind_of(self, role: str) -> str | None:
        """Return client, proxy or server; None for a role that nothing declares."""
        return self.roles[role].kind if role in self.roles else None

    @property
    def client(self) -> str:
        """The role that makes the load: k6, or a generator of the scenario's own."""
        return next((name for name, role in self.roles.items() if role.kind == "client"), "k6")

    @property
    def clients(self) -> list[str]:
        """The instances that make the load."""
        return self.of_role(self.client)

    @property
    def origin(self) -> str | None:
        """The role that answers the requests; None for what was observed where it ran, which has no path."""
        return next(reversed(self.request_path), None)

    @property
    def request_path(self) -> list[str]:
        """The roles that carry requests, from the client to the one that answers."""
        return role_file.request_path(self.path, self.kind_of)

    @property
    def behind(self) -> tuple[str, str] | None:
        """The role that answers the requests and the server that it asks; None where it asks none."""
        carries = self.request_path
        return (carries[-1], self.path[len(carries)]) if carries and len(self.path) > len(carries) else None

    def value_of(self, knob: str) -> Scalar | None:
        """Return a knob's value, durations in ms; None if the path has no such knob."""
        return self.knobs[knob].value if knob in self.knobs else None

    def integer_of(self, knob: str) -> int | None:
        """Return a knob's value, durations in ms; None if it is no whole number, or the path has no such knob."""
        value = self.value_of(knob)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def phase(self, name: PhaseName) -> Phase | None:
        """Return a phase; None if the run did not come to it."""
        return next((each for each in self.phases if each.name == name), None)

    def port_of(self, instance: str) -> int:
        """Return the port on which an instance takes its traffic."""
        ports = (role.port for name, role in self.roles.items() if instance in self.of_role(name))
        return next(ports, TRAFFIC_PORT)

    def over_ipv6(self, instance: str) -> bool:
        """Return whether clients come to an instance over IPv6."""
        return any(role.ipv6 for name, role in self.roles.items() if instance in self.of_role(name))

    @property
    def proxies(self) -> list[str]:
        """The instances of the proxy, none on a direct path."""
        return [
            instance for name, role in self.roles.items() if role.kind == "proxy" for instance in self.of_role(name)
        ]

    def logged(self, formats: Collection[str]) -> list[tuple[str, str, str]]:
        """Return the instances that write a log in one of these formats, each with the log's file and format."""
        return [
            (instance, file, of)
            for name, role in self.roles.items()
            for file, of in role.logs.items()
            if isinstance(of, str) and of in formats
            for instance in self.of_role(name)
        ]

    def declared_logs(self) -> list[tuple[str, str, LogFormat]]:
        """Return the instances that write an access log whose format is declared, each with file and format."""
        return [
            (instance, file, of)
            for name, role in self.roles.items()
            for file, of in role.logs.items()
            if isinstance(of, LogFormat)
            for instance in self.of_role(name)
        ]

    def ends_of(self, instance: str) -> list[ActionRecord]:
        """Return what was begun that ended a server's process: restarts, stops and drains."""
        return [each for each in self.actions if each.instance == instance and each.ends_it and each.start_us]

    def recounts_of(self, instance: str) -> int:
        """Return how often a server's own figures began at 0 again: it was ended, or reloaded as new processes."""
        declared = [role.reload for name, role in self.roles.items() if instance in self.of_role(name)]
        anew = any(each.counts_anew for each in declared if each is not None)
        reloads = [one for one in self.actions if one.instance == instance and one.do == "reload" and one.start_us]
        return len(self.ends_of(instance)) + (len(reloads) if anew else 0)

    def until_us(self, action: ActionRecord) -> int | None:
        """Return until when an action has an effect; None: open.

        That of an end lasts until the server serves again, and that of a name's move until the name is back.
        """
        if action.do == "reload" and action.end_us is not None:
            return action.end_us + _OLD_WORKERS_US
        if action.do not in ("stop", "drain", "dns"):
            return action.end_us
        undone = "dns" if action.do == "dns" else "start"
        starts = (
            one
            for one in self.actions
            if one.do == undone and one.instance == action.concerns and one.name == action.name
        )
        return min((one.end_us or 0 for one in starts if one.at_ms > action.at_ms), default=None) or None

    def sysctl(self, instance: str, name: str) -> str | None:
        """Return a sysctl as read back in an instance's namespace; None if it was not read or the kernel has none."""
        return self.sysctls.get(instance, {}).get(name)

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
        """Record how the run ended; a run that has ended stays so."""
        if self.status != "running":
            return
        self.end_phase()
        self.status, self.reason, self.ended = status, reason, utc_now()

    def save(self, folder: Path) -> None:
        """Write the file; a reader sees the old one or the new one, whole."""
        atomic_write(folder / FILE, self.model_dump_json(by_alias=True, indent=2) + "\n")


def load_manifest(run_dir: Path) -> Manifest:
    """Return the manifest of a run's folder; raise ManifestError with one line for the user.

    A manifest that says `running` of a run whose process was killed is read as one that was aborted.
    """
    found = read_manifest(run_dir)
    if found.status == "running" and run_liveness.is_abandoned(run_dir):
        return found.model_copy(update={"status": "aborted", "reason": KILLED})
    return found


def read_manifest(run_dir: Path) -> Manifest:
    """Return the manifest as it stands in a run's folder; raise ManifestError with one line for the user."""
    path = run_dir / FILE
    for place in ("raw", "raw/*", "raw/*/*"):
        if link := next((found for found in run_dir.glob(place) if found.is_symlink() and found.is_dir()), None):
            raise ManifestError(f"{link}: {link.relative_to(run_dir)} is a link; a run has all of its files itself")
    try:
        text = read_regular(path)
    except FileNotFoundError:
        raise ManifestError(f"{run_dir}: no {FILE} here; this is not a run's folder") from None
    except OSError as error:
        raise ManifestError(f"{path}: {error.strerror}") from None
    try:
        return Manifest.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        if first["loc"] == ("schema",) and first["type"] == "literal_error":
            version = f"its schema is {first['input']}, and this version reads {SCHEMA}"
            raise ManifestError(f"{path}: {version}; use the version of connlab that made the run") from None
        raise ManifestError(f"{path}: {format_validation_error(error)}") from None


def port_count(text: str | None) -> int | None:
    """Return how many ports a range such as "32768	60999" has; None if it is no range."""
    numbers = (text or "").split()
    # No port has more than five digits.
    if len(numbers) != 2 or not all(number.isdecimal() and len(number) <= 5 for number in numbers):  # noqa: PLR2004  lowest and highest
        return None
    low, high = map(int, numbers)
    return high - low + 1 if high >= low else None


def _now_us() -> tuple[int, int]:
    """Return this moment by the wall clock and by the monotonic one."""
    return time.time_ns() // 1000, time.monotonic_ns() // 1000


def utc_now() -> str:
    """Return the time as the manifest has it: `2026-01-31T12:00:00Z`."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
