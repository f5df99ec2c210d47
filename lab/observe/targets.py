"""What to observe: found by the names that the user gives, and checked before anything starts."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from formats.manifest import Program, Target
from lab import paths
from lab.engines.container_settings import ROOT
from lab.engines.protocol import Container, Sidecars
from lab.errors import BadInput, Problem
from lab.observe.known_servers import program_in
from lab.roles import declared_roles

Kind = Literal["container", "service", "process", "pod"]


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
