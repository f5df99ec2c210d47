"""How to observe: what the user asks for, checked before anything starts."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast, get_args

from formats.knob_types import parse_duration
from formats.manifest import CaptureMode, EventSource
from lab.errors import BadInput, Problem, parsed
from lab.reading.validation_messages import did_you_mean

_FOR_MIN_MS = 1_000
_FOR_MAX_MS = 24 * 3_600_000
# Names in a cluster: of namespaces, pods and containers.
_IN_CLUSTER = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_ROUTES = Path("/proc/net/route")


@dataclass(frozen=True)
class ObserveOptions:
    """How the user wants it.

    Attributes:
        interface: whose packets are captured; `any` for all of a namespace.
    """

    for_ms: int
    capture: CaptureMode = "headers"
    capture_max_mb: int = 256
    interface: str = "any"
    events: EventSource = "off"
    connect_timeout_ms: int | None = None


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
    for_ms = parsed(parse_duration, duration, "--duration", problems)
    timeout_ms = (
        None if connect_timeout is None else parsed(parse_duration, connect_timeout, "--connect-timeout", problems)
    )
    if for_ms is not None and not _FOR_MIN_MS <= for_ms <= _FOR_MAX_MS:
        problems.append(Problem(f"'{duration}' is not from 1s to 24h", "--duration"))
    if timeout_ms == 0:
        problems.append(_NO_TIMEOUT)
    modes = get_args(CaptureMode)
    if capture not in modes:
        hint = did_you_mean(capture, modes) or f"there are {', '.join(modes)}"
        problems.append(Problem(f"'{capture}' is not a way to capture", "--capture", hint))
    if events not in get_args(EventSource):
        problems.append(Problem(f"'{events}' is no source of events", "--events", "write kernel, or off"))
    if interface is None:
        # With all interfaces of a host, a packet that crosses a bridge comes more than once.
        interface = ("" if elsewhere else _default_interface()) if host else "any"
    if not interface:
        why = "this host has no default route" if interface is None else "the lab does not know the node's interfaces"
        problems.append(Problem(why, "--host", "name one: --interface eth0"))
    if problems or for_ms is None or not interface:
        raise BadInput(problems)
    kinds = cast("CaptureMode", capture), cast("EventSource", events)
    return ObserveOptions(for_ms, kinds[0], capture_max_mb, interface, kinds[1], timeout_ms)


_NO_TIMEOUT = Problem("a connect timeout is above 0", "--connect-timeout")


def parse_connect_timeout(text: str) -> int:
    """Return a connect timeout in ms.

    Raises:
        BadInput: it is none.
    """
    problems: list[Problem] = []
    timeout_ms = parsed(parse_duration, text, "--connect-timeout", problems)
    if not timeout_ms:
        raise BadInput(problems or _NO_TIMEOUT)
    return timeout_ms


def _default_interface() -> str | None:
    try:
        rows = [line.split() for line in _ROUTES.read_text().splitlines()[1:]]
    except OSError:
        return None
    return next((row[0] for row in rows if len(row) > 1 and row[1] == "00000000"), None)
