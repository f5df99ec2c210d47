"""What to observe and how: parsed from the user's words, found, and checked before anything starts."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, cast, get_args

from formats.knob_types import parse_duration
from formats.manifest import Program, Target
from lab import paths
from lab.engines.container_settings import ROOT
from lab.engines.protocol import Container, Sidecars
from lab.errors import BadInput, Problem
from lab.reading import document
from lab.reading.validation_messages import did_you_mean
from lab.roles import declared_roles

_PROGRAMS = Path(__file__).with_name("programs.yaml")
Kind = Literal["container", "service", "process", "pod"]
Capture = Literal["headers", "handshakes", "off"]
Events = Literal["off", "kernel"]
_FOR_MIN_MS = 1_000
_FOR_MAX_MS = 24 * 3_600_000
# Names in a cluster: of namespaces, pods and containers.
_IN_CLUSTER = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_ROUTES = Path("/proc/net/route")


@cache
def known_programs() -> dict[str, Program]:
    """Return every server of programs.yaml by the words that speak of it, in the order in which they are tried."""
    content: Any = document.read(_PROGRAMS).content
    return {each.pop("words"): Program.model_validate(each, extra="forbid") for each in map(dict, content)}


def program_in(words: str) -> Program | None:
    """Find the program that an image's name and command lines speak of."""
    return next((one for spoken, one in known_programs().items() if re.search(spoken, words, re.IGNORECASE)), None)


def program_of_role(file: Path) -> Program:
    """Read the program that a role.yaml declares.

    Raises:
        BadInput: the file cannot be read, is not valid, or has no limit `backlog`.
    """
    try:
        role = declared_roles.load_role(file)
    except OSError as error:
        raise BadInput(Problem(str(error.strerror), str(file), "give a role.yaml")) from None
    knob = role.limits.backlog
    if knob is None:
        what = "the role has no limit 'backlog', so nothing in it is the setting of an accept queue"
        raise BadInput(Problem(what, str(file), "name the knob: limits: {backlog: …}"))
    default = role.knobs[knob].default
    return Program(
        name=role.display_name,
        backlog=default if isinstance(default, int) else None,
        setting=role.knob(knob),
        how=role.knobs[knob].doc,
        source=paths.shown(file),
    )


@dataclass(frozen=True)
class TargetNames:
    """What the user names.

    Attributes:
        compose: PROJECT or PROJECT/SERVICE.
        pod: NAMESPACE/POD of a cluster, or NAMESPACE/POD/CONTAINER.
        peers: containers of clients, for the view from their side.
        role: a role.yaml that says what the target's program is.
        host: whether the host's own network namespace may be observed.
    """

    containers: Sequence[str] = ()
    compose: str | None = None
    pid: int | None = None
    pod: str | None = None
    peers: Sequence[str] = ()
    role: Path | None = None
    host: bool = False


@dataclass(frozen=True)
class ObserveOptions:
    """How the user wants it.

    Attributes:
        interface: whose packets are captured; `any` for all of a namespace.
    """

    for_ms: int
    capture: Capture = "headers"
    capture_max_mb: int = 256
    interface: str = "any"
    events: Events = "off"
    connect_timeout_ms: int | None = None


@dataclass(frozen=True)
class FoundTarget:
    """One target, as the manifest has it, and its container; a process of this machine has one without an id."""

    record: Target
    container: Container

    @property
    def joins(self) -> str | int:
        """Return the container whose namespaces a collector joins, or the process whose network it enters."""
        return self.container.id or self.container.pid

    @property
    def processes(self) -> bool:
        """Return whether a collector joins its process namespace too."""
        return self.container.processes and not self.container.on_host


def find_targets(named: TargetNames, sidecars: Sidecars) -> list[FoundTarget]:
    """Find the targets.

    Raises:
        BadInput: there is none, or one is not there, does not run, or is in a namespace of the host without leave.
        LabError: no engine answers.
    """
    program = program_of_role(named.role) if named.role else None
    found: list[tuple[Kind, str, Container, bool]] = []
    found += [("container", name, sidecars.find_container(name), False) for name in named.containers]
    if named.compose is not None:
        project, _, service = named.compose.partition("/")
        found += [
            ("service", each.name, each, False) for each in sidecars.find_project_containers(project, service or None)
        ]
    if named.pid is not None:
        found.append(("process", str(named.pid), _process(named.pid, sidecars), False))
    if named.pod is not None:
        found.append(("pod", named.pod, sidecars.find_container(named.pod), False))
    if not found:
        raise BadInput(Problem("nothing to observe is named", hint="give --container, --compose, --pid or --pod"))
    found += [("container", name, sidecars.find_container(name), True) for name in named.peers]
    taken: set[str] = set()
    targets = [
        _target(kind, name, what, None if peer else program, taken, peer=peer) for kind, name, what, peer in found
    ]
    _refuse(targets, host=named.host)
    return targets


def _target(
    kind: Kind, name: str, found: Container, program: Program | None, taken: set[str], *, peer: bool
) -> FoundTarget:
    record = Target(
        instance=_instance(f"process-{name}" if kind == "process" else name, taken),
        kind=kind,
        name=name,
        image=found.image or None,
        program=program or program_in(found.words),
        peer=peer,
    )
    return FoundTarget(record, found)


def _instance(name: str, taken: set[str]) -> str:
    """Make a name for a folder that no other target has."""
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "target"
    instance = next(one for one in (slug, *(f"{slug}-{number}" for number in range(2, 1000))) if one not in taken)
    taken.add(instance)
    return instance


def _process(pid: int, sidecars: Sidecars) -> Container:
    if not Path(f"/proc/{pid}").is_dir():
        raise BadInput(Problem(f"there is no process {pid} (it may have ended)", hint="look it up: ps -ef"))
    inside = sidecars.find_process_container(pid)
    if inside is not None and _namespace(pid) == _namespace(inside.pid):
        return inside
    # The lab itself runs on the host.
    on_host = _namespace(pid) == _namespace("self")
    return Container("", str(pid), "", pid, on_host, _words(pid), processes=False)


def _namespace(pid: int | str) -> int:
    try:
        return Path(f"/proc/{pid}/ns/net").stat().st_ino
    except (FileNotFoundError, ProcessLookupError):
        raise BadInput(Problem(f"the process {pid} has ended", hint="look it up: ps -ef")) from None
    except PermissionError:
        what = f"you may not look at the network namespace of process {pid}"
        hint = "name its container" if os.geteuid() == ROOT else "run it as root: sudo connlab observe …"
        raise BadInput(Problem(what, hint=hint)) from None


def _words(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace").replace("\0", " ")
    except OSError:
        return ""


def _refuse(targets: Sequence[FoundTarget], *, host: bool) -> None:
    if host:
        return
    if open_ones := [each.record.name for each in targets if each.container.on_host]:
        what = "in the host's own network namespace: the lab would see all of its connections"
    elif open_ones := [each.record.name for each in targets if each.container.with_host]:
        what = "in the host's own process namespace: the lab would see all of its processes"
    else:
        return
    raise BadInput(Problem(f"{', '.join(open_ones)} is {what}", hint="add --host if you want that"))


def parse_pod(name: str, containers: Sequence[str], others: Mapping[str, object]) -> str:
    """Understand which pod is meant, or which container of it: NAMESPACE/POD[/CONTAINER].

    Of `others`, each by its option, nothing may be named: that is of this machine.

    Raises:
        BadInput: it is no such name, or more is named than one pod's container.
    """
    parts = [*name.split("/"), *containers]
    if foreign := [option for option, value in others.items() if value]:
        raise BadInput(Problem(f"{foreign[0]} is of this machine, and --pod of a cluster", hint="name one of the two"))
    if len(containers) > 1:
        raise BadInput(Problem("--pod takes one --container: the one whose processes are sampled"))
    if len(parts) != 2 + len(containers) or not all(map(_IN_CLUSTER.fullmatch, parts)):
        named = f"'{name}'{''.join(f' with the container {one!r}' for one in containers)}"
        raise BadInput(Problem(f"{named} is not a pod", "--pod", "write NAMESPACE/POD, such as lab/shop-7c9d-x2x"))
    return "/".join(parts)


def parse_options(
    duration: str,
    capture: str,
    capture_max_mb: int,
    interface: str | None,
    connect_timeout: str | None,
    *,
    events: str = "off",
    host: bool,
    elsewhere: bool = False,
) -> ObserveOptions:
    """Understand how the user wants to observe; `elsewhere`: the host is another one than this.

    Raises:
        BadInput: all that is wrong with it.
    """
    problems: list[Problem] = []
    for_ms = _duration(duration, "--duration", problems)
    timeout_ms = None if connect_timeout is None else _duration(connect_timeout, "--connect-timeout", problems)
    if for_ms is not None and not _FOR_MIN_MS <= for_ms <= _FOR_MAX_MS:
        problems.append(Problem(f"'{duration}' is not from 1s to 24h", "--duration"))
    if timeout_ms == 0:
        problems.append(_NO_TIMEOUT)
    modes = get_args(Capture)
    if capture not in modes:
        hint = did_you_mean(capture, modes) or f"there are {', '.join(modes)}"
        problems.append(Problem(f"'{capture}' is not a way to capture", "--capture", hint))
    if events not in get_args(Events):
        problems.append(Problem(f"'{events}' is no source of events", "--events", "write kernel, or off"))
    if interface is None:
        # With all interfaces of a host, a packet that crosses a bridge comes more than once.
        interface = ("" if elsewhere else _default_interface()) if host else "any"
    if not interface:
        why = "this host has no default route" if interface is None else "the lab does not know the node's interfaces"
        problems.append(Problem(why, "--host", "name one: --interface eth0"))
    if problems or for_ms is None or not interface:
        raise BadInput(problems)
    kinds = cast("Capture", capture), cast("Events", events)
    return ObserveOptions(for_ms, kinds[0], capture_max_mb, interface, kinds[1], timeout_ms)


_NO_TIMEOUT = Problem("a connect timeout is above 0", "--connect-timeout")


def parse_connect_timeout(text: str) -> int:
    """Return a connect timeout in ms.

    Raises:
        BadInput: it is none.
    """
    problems: list[Problem] = []
    timeout_ms = _duration(text, "--connect-timeout", problems)
    if not timeout_ms:
        raise BadInput(problems or _NO_TIMEOUT)
    return timeout_ms


def _duration(text: str, option: str, problems: list[Problem]) -> int | None:
    try:
        return parse_duration(text)
    except ValueError as error:
        problems.append(Problem(str(error), option))
        return None


def _default_interface() -> str | None:
    try:
        rows = [line.split() for line in _ROUTES.read_text().splitlines()[1:]]
    except OSError:
        return None
    return next((row[0] for row in rows if len(row) > 1 and row[1] == "00000000"), None)
