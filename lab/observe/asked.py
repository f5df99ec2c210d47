"""What the user asks for, as text, refused or understood."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast, get_args

from formats.durations import parse_duration
from lab.errors import BadInput, Problem
from lab.observe.observing import Capture, Wish
from lab.reading.messages import did_you_mean

_FOR_MIN_MS = 1_000
_FOR_MAX_MS = 24 * 3_600_000
# Names in a cluster: of namespaces, pods and containers.
_IN_CLUSTER = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_ROUTES = Path("/proc/net/route")


def path(text: str | None) -> Path | None:
    """A file that the user names; None if none is named."""
    return None if text is None else Path(text)


def pod(name: str, containers: Sequence[str], others: Mapping[str, object]) -> str:
    """Understand which pod is meant, or which container of it: NAMESPACE/POD[/CONTAINER].

    Args:
        name: of the pod, with its namespace.
        containers: those that are named.
        others: what else is named, by its option: nothing of this machine is observed beside a pod.

    Raises:
        BadInput: it is no such name, or more is named than one pod's container.
    """
    parts = [*name.split("/"), *containers]
    if foreign := [option for option, value in others.items() if value]:
        raise BadInput(
            Problem(f"{foreign[0]} is of this machine, and --pod of a cluster", way_on="name one of the two")
        )
    if len(containers) > 1:
        raise BadInput(Problem("--pod takes one --container: the one whose processes are sampled"))
    if len(parts) != 2 + len(containers) or not all(map(_IN_CLUSTER.fullmatch, parts)):
        named = f"'{name}'{''.join(f' with the container {one!r}' for one in containers)}"
        raise BadInput(Problem(f"{named} is not a pod", "--pod", "write NAMESPACE/POD, such as lab/shop-7c9d-x2x"))
    return "/".join(parts)


def wish(
    duration: str,
    capture: str,
    capture_max_mb: int,
    interface: str | None,
    connect_timeout: str | None,
    *,
    host: bool,
    elsewhere: bool = False,
) -> Wish:
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
        problems.append(Problem("a connect time-out is above 0", "--connect-timeout"))
    modes = get_args(Capture)
    if capture not in modes:
        way_on = did_you_mean(capture, modes) or f"there are {', '.join(modes)}"
        problems.append(Problem(f"'{capture}' is not a way to capture", "--capture", way_on))
    if interface is None:
        # With all interfaces of a host, a packet that crosses a bridge comes more than once.
        interface = ("" if elsewhere else _default_interface()) if host else "any"
    if not interface:
        why = "this host has no default route" if interface is None else "nobody here knows the node's interfaces"
        problems.append(Problem(why, "--host", "name one: --interface eth0"))
    if problems or for_ms is None or not interface:
        raise BadInput(problems)
    return Wish(for_ms, cast("Capture", capture), capture_max_mb, interface, timeout_ms)


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
