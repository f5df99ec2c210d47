"""What is to be observed: named by the user, found, and checked before anything starts."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from formats.manifest import Program, Target
from lab.engines.container_settings import ROOT
from lab.engines.protocol import Container, Sidecars
from lab.errors import BadInput, Problem
from lab.observe import known_servers

Kind = Literal["container", "service", "process", "pod"]


@dataclass(frozen=True)
class Named:
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
    """One target.

    Attributes:
        record: what the manifest says of it.
        joins: the container whose namespaces a collector joins, or the process of the host whose network it enters.
        on_host: whether its network namespace is the host's.
        processes: whether a collector joins its process namespace too.
        apart: why it does not, if there is a reason.
        machine: on which it runs; None for this one.
        with_host: whether it joins the host's process namespace, whatever it is to see.
    """

    record: Target
    joins: str | int
    on_host: bool
    processes: bool = False
    apart: str | None = None
    machine: str | None = None
    with_host: bool = False


def find(named: Named, sidecars: Sidecars) -> list[FoundTarget]:
    """Find the targets.

    Raises:
        BadInput: there is none, or one is not there, does not run, or is in a namespace of the host without leave.
        LabError: no engine answers.
    """
    program = known_servers.of_role(named.role) if named.role else None
    found: list[tuple[Kind, str, Container | int, bool]] = []
    found += [("container", name, sidecars.container(name), False) for name in named.containers]
    if named.compose is not None:
        project, _, service = named.compose.partition("/")
        found += [("service", each.name, each, False) for each in sidecars.of_project(project, service or None)]
    if named.pid is not None:
        found.append(("process", str(named.pid), _process(named.pid, sidecars), False))
    if named.pod is not None:
        found.append(("pod", named.pod, sidecars.container(named.pod), False))
    if not found:
        raise BadInput(Problem("nothing to observe is named", way_on="give --container, --compose, --pid or --pod"))
    found += [("container", name, sidecars.container(name), True) for name in named.peers]
    taken: set[str] = set()
    targets = [
        _target(kind, name, what, None if peer else program, taken, peer=peer) for kind, name, what, peer in found
    ]
    _refuse(targets, host=named.host)
    return targets


def _target(
    kind: Kind, name: str, what: Container | int, program: Program | None, taken: set[str], *, peer: bool
) -> FoundTarget:
    if isinstance(what, Container):
        words, image = what.words, what.image
    else:
        words, image = _words(what), None
    record = Target(
        instance=_instance(f"process-{name}" if kind == "process" else name, taken),
        kind=kind,
        name=name,
        image=image,
        program=program or known_servers.of_words(words),
        peer=peer,
    )
    if isinstance(what, Container):
        processes = what.processes and not what.on_host
        return FoundTarget(record, what.id, what.on_host, processes, what.apart, what.machine, what.with_host)
    return FoundTarget(record, what, _is_hosts(what))


def _instance(name: str, taken: set[str]) -> str:
    """Make a name for a folder that no other target has."""
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "target"
    instance = next(one for one in (slug, *(f"{slug}-{number}" for number in range(2, 1000))) if one not in taken)
    taken.add(instance)
    return instance


def _process(pid: int, sidecars: Sidecars) -> Container | int:
    if not Path(f"/proc/{pid}").is_dir():
        raise BadInput(Problem(f"there is no process {pid} (it may have ended)", way_on="look it up: ps -ef"))
    inside = sidecars.of_process(pid)
    if inside is not None and _namespace(pid) == _namespace(inside.pid):
        return inside
    return pid


def _namespace(pid: int | str) -> int:
    try:
        return Path(f"/proc/{pid}/ns/net").stat().st_ino
    except FileNotFoundError:
        raise BadInput(Problem(f"the process {pid} has ended", way_on="look it up: ps -ef")) from None
    except PermissionError:
        what = f"you may not look at the network namespace of process {pid}"
        way_on = "name its container" if os.geteuid() == ROOT else "run it as root: sudo connlab observe …"
        raise BadInput(Problem(what, way_on=way_on)) from None


def _is_hosts(pid: int) -> bool:
    # The lab itself runs on the host.
    return _namespace(pid) == _namespace("self")


def _words(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace").replace("\0", " ")
    except OSError:
        return ""


def _refuse(targets: Sequence[FoundTarget], *, host: bool) -> None:
    if host:
        return
    if open_ones := [each.record.name for each in targets if each.on_host]:
        what = "in the host's own network namespace: the lab would see all of its connections"
    elif open_ones := [each.record.name for each in targets if each.with_host]:
        what = "in the host's own process namespace: the lab would see all of its processes"
    else:
        return
    raise BadInput(Problem(f"{', '.join(open_ones)} is {what}", way_on="add --host if you want that"))
