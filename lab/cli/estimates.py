"""`connlab estimate`: what the user gives, refused or understood, and what the estimator says, in words."""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any

from analysis import figures
from analysis.diagnosis.syn_ladder import (
    INITIAL_TIMEOUT_MS,
    LINEAR_TIMEOUTS,
    SYN_RETRIES,
    SYSCTLS,
    TIMEOUT_MAX,
    TIMEOUT_MAX_MS,
)
from analysis.evidence.rawrun import RawRun
from analysis.expressions.values import Unknown
from analysis.figures import estimate
from analysis.figures.estimate import CheckedEstimate, Estimate, FailedBounds, SynTimers
from analysis.formatting import format_count
from formats import manifest
from formats.knob_types import format_duration, parse_duration
from lab.errors import BadInput, ExitCode, Problem, parsed
from lab.reading.validation_messages import did_you_mean
from lab.scenarios import sysctls

WIDTH = 100

# What TcpExt.ListenOverflows can hold: the kernel counts in 64 bits.
_OVERFLOWS_MAX = 2**64 - 1

_CAVEATS = (
    (
        "An overflow whose client got in on a later SYN is latency, not a failure. The counter does not tell it from"
        " the others; the clients' errors or a capture of handshakes do."
    ),
    "A last ACK of a handshake that meets a full queue counts as well, and its client believes it is connected.",
    (
        "Assumed: every SYN of a failed connection met the full queue, none was lost on the way; the two readings of"
        " the counter enclose the trouble; nobody else's SYNs are in it."
    ),
    "A proxy, a NAT or an emulator that dials for its clients has a timeout and a ladder of its own: give those.",
    "Connections, not requests: a client that tries again fails again.",
)


def estimate_from_counter(overflows: str, connect_timeout: str, settings: Sequence[str]) -> Estimate:
    """Estimate from what the user wrote.

    Args:
        overflows: the counter's difference.
        connect_timeout: of the clients, with a unit.
        settings: what is known of their sysctls, each `name=value`.

    Raises:
        BadInput: all that is wrong with it.
    """
    problems: list[Problem] = []
    count = parsed(_overflows, overflows, "--overflows", problems)
    connect_timeout_ms = parsed(_timeout_ms, connect_timeout, "--connect-timeout", problems)
    known = _sysctls(settings, problems)
    if count is None or connect_timeout_ms is None or problems:
        raise BadInput(problems)
    return Estimate(count, estimate.plausible_clients(connect_timeout_ms, known))


def _overflows(text: str) -> int:
    # As the lab itself, and many a dashboard, writes a large number.
    plain = text.replace(",", "") if re.fullmatch(r"[0-9]{1,3}(,[0-9]{3})+", text) else text
    if not re.fullmatch(r"[0-9]{1,20}", plain) or int(plain) > _OVERFLOWS_MAX:
        raise ValueError(f"'{text}' is not a count of overflows: give the difference of two readings, such as 6568459")
    return int(plain)


def _timeout_ms(text: str) -> int:
    milliseconds = parse_duration(text)
    if milliseconds == 0:
        raise ValueError("a connect timeout is above 0; for clients without one give a long one, such as 10m")
    return milliseconds


def _sysctls(settings: Iterable[str], problems: list[Problem]) -> dict[str, int]:
    known: dict[str, int] = {}
    for text in settings:
        name, equals, value = text.partition("=")
        where = f"--sysctl {text}"
        if not equals:
            problems.append(Problem("a sysctl has a name, '=' and a value", where, f"as in {SYN_RETRIES}=6"))
        elif name not in SYSCTLS:
            hint = did_you_mean(name, SYSCTLS) or f"there are {', '.join(SYSCTLS)}"
            problems.append(Problem(f"'{name}' does not change when a client sends SYNs", where, hint))
        elif name in known:
            problems.append(Problem(f"{name} is set twice", where, f"before, to {known[name]}"))
        elif fault := sysctls.find_fault(name, value):
            problems.append(Problem(fault[0], where, fault[1]))
        else:
            known[name] = int(value)
    return known


def check_run(folder: Path) -> CheckedEstimate:
    """Estimate from a run's own counter, and count what truly failed.

    Raises:
        BadInput: the folder's manifest cannot be read.
    """
    try:
        return estimate.estimate_run(figures.Run(RawRun(folder, manifest.load_manifest(folder))))
    except manifest.ManifestError as error:
        raise BadInput(Problem(str(error))) from None


def exit_code(check: CheckedEstimate) -> ExitCode:
    """Return the exit code of a check: whether the true number lies within the bounds."""
    if isinstance(check.within, Unknown):
        return ExitCode.INCONCLUSIVE
    return ExitCode.REPRODUCED if check.within else ExitCode.NOT_REPRODUCED


def as_json(found: Estimate) -> dict[str, Any]:
    """Return an estimate as JSON has it."""
    return {
        "overflows": found.overflows,
        "failed": _bounds_as_json(found.bounds),
        "clients": [
            {
                "name": client.name,
                "sysctls": dict(client.sysctls),
                "connect_timeout_ms": client.connect_timeout_ms,
                "syns_ms": list(client.syns_ms),
                "syns_per_failure": {"min": client.syns_min, "max": client.syns_max},
                "failed": _bounds_as_json(found.bounds_of(client)),
            }
            for client in found.clients
        ],
        "caveats": list(_CAVEATS),
    }


def _bounds_as_json(bounds: FailedBounds) -> dict[str, int]:
    return {"least": 0, "least_if_none_got_in": bounds.least_if_none_got_in, "most": bounds.most}


def check_as_json(check: CheckedEstimate) -> dict[str, Any]:
    """Return a check as JSON has it; what is not known is null, and `why` says why."""
    unknown = isinstance(check.within, Unknown)
    return {
        "estimate": as_json(check.estimate) if isinstance(check.estimate, Estimate) else None,
        "failed": check.failed if isinstance(check.failed, int) else None,
        "within": None if unknown else check.within,
        "why": check.within.why if isinstance(check.within, Unknown) else None,
        "servers": list(check.servers),
        "syn_queue_drops": check.syn_queue_drops,
        "overflows_elsewhere": dict(check.elsewhere),
        "exit_code": int(exit_code(check)),
    }


def format_estimate(found: Estimate, check: CheckedEstimate | None = None) -> Iterator[str]:
    """Write an estimate for a reader, at most WIDTH columns wide.

    Args:
        found: the estimate.
        check: the run's whose counter it rests on; None for a counter that the user gave.
    """
    bounds = found.bounds
    whose = f" counted by the kernel of {_together(check.servers)}" if check and check.servers else ""
    overflows, most = format_count(found.overflows, "overflow"), format_count(bounds.most, "connection")
    yield from _wrapped(f"{overflows}{whose}: at most {most} failed.", "")
    yield from _wrapped(_least(found), "")
    for note in _not_in_it(check) if check else ():
        yield from _wrapped(note, "")
    yield ""
    for client in found.clients:
        yield from _of_client(found, client)
    if len(found.clients) > 1:
        yield "Any mixture of these"
        yield f"  {_failed(bounds)}, if none got in on a later SYN"
    yield ""
    yield "What the counter does not tell"
    for caveat in _CAVEATS:
        yield from _wrapped(caveat, "  - ")


def _together(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _not_in_it(check: CheckedEstimate) -> Iterator[str]:
    """Yield what full queues of the run did that this counter does not have."""
    if check.syn_queue_drops:
        yield (
            f"The SYN queue there was full for {format_count(check.syn_queue_drops, 'SYN')} (TcpExt.TCPReqQFullDrop)."
            " They are not overflows, so more connections may have failed than this estimate allows."
        )
    if check.elsewhere:
        counts = [f"{format_count(overflows, 'overflow')} at {server}" for server, overflows in check.elsewhere.items()]
        yield (
            f"Not in this estimate: {_together(counts)}, of connections that the proxy dials, with its own timeout and"
            " ladder."
        )


def _least(found: Estimate) -> str:
    if found.overflows == 0:
        return "No SYN met a full accept queue."
    least = f"At least {found.bounds.least_if_none_got_in:,} did, if every overflow was of a connection that failed"
    if all(client.syns_max == 1 for client in found.clients):
        return f"{least}: each client sends one SYN, so none can have got in on a later one."
    return f"{least}; fewer, down to 0, if some got in on a later SYN."


def _of_client(found: Estimate, client: SynTimers) -> Iterator[str]:
    yield from _wrapped(f"{client.name}: {', '.join(_settings(client))}", "")
    yield from _wrapped(_ladder(client), "  ")
    yield from _wrapped(_division(found, client), "  ")


def _settings(client: SynTimers) -> Iterator[str]:
    for name in SYSCTLS:
        if name != TIMEOUT_MAX or client.sysctls[name] != TIMEOUT_MAX_MS:
            yield f"{name.removeprefix('net.ipv4.')} = {client.sysctls[name]}"


def _ladder(client: SynTimers) -> str:
    linear = client.sysctls[LINEAR_TIMEOUTS]
    first = _seconds(INITIAL_TIMEOUT_MS)
    intervals = f"{linear + 1} intervals of {first} s" if linear else f"an interval of {first} s"
    timeout = format_duration(client.connect_timeout_ms)
    end = (
        "the kernel sends no more"
        if client.next_syn_ms is None
        else (f"the next, at {_seconds(client.next_syn_ms)} s, is not before the connect timeout of {timeout}")
    )
    return f"{intervals}, then each twice the last: SYNs at {', '.join(map(_seconds, client.syns_ms))} s; {end}"


def _division(found: Estimate, client: SynTimers) -> str:
    bounds = found.bounds_of(client)
    if client.syns_min != client.syns_max:
        return (
            f"the last of them only if the kernel's timer is not late: {found.overflows:,} / {client.syns_max} to"
            f" {found.overflows:,} / {client.syns_min} = {_failed(bounds)}"
        )
    over = found.overflows - bounds.most * client.syns_max
    rest = f", {over} left over{_left_over(found, bounds)}" if over else ""
    return f"{found.overflows:,} / {client.syns_max} = {format_count(bounds.most, 'failed connection')}{rest}"


def _left_over(found: Estimate, bounds: FailedBounds) -> str:
    """Return whose overflows a division leaves over, which the least number of failures may count."""
    if found.bounds.least_if_none_got_in > bounds.most:
        return ": of one more connection, which failed after fewer SYNs, or of one that got in"
    return ": of connections that got in"


def _failed(bounds: FailedBounds) -> str:
    least = "" if bounds.least_if_none_got_in == bounds.most else f"{bounds.least_if_none_got_in:,} to "
    return f"{least}{format_count(bounds.most, 'failed connection')}"


def format_check(check: CheckedEstimate) -> Iterator[str]:
    """Write a check for a reader."""
    if isinstance(check.estimate, Estimate):
        yield from format_estimate(check.estimate, check)
        yield ""
    yield "The run's own count"
    if isinstance(check.failed, int):
        yield f"  {format_count(check.failed, 'dial')} failed at the connect timeout"
    if isinstance(check.within, Unknown):
        yield from _wrapped(f"unknown whether that lies within the bounds: {check.within.why}", "  ")
        return
    yield "  within the bounds" if check.within else "  more than the bounds allow"
    if check.within and isinstance(check.estimate, Estimate) and isinstance(check.failed, int):
        yield from _rest(check.estimate, check.failed)


def _rest(found: Estimate, failed: int) -> Iterator[str]:
    """Yield how many overflows the failed dials leave over."""
    if found.overflows == 0:
        return
    least = found.overflows - failed * max(client.syns_max for client in found.clients)
    most = found.overflows - failed * min(client.syns_min for client in found.clients)
    if most == 0:
        yield "  every overflow was of one of them"
    else:
        count = (
            format_count(most, "overflow")
            if least == most
            else f"{max(least, 0):,} to {format_count(most, 'overflow')}"
        )
        rest = f"{count} beyond theirs: SYNs that a later one made good, last ACKs, dials given up earlier"
        yield from _wrapped(rest, "  ")


def _seconds(milliseconds: int) -> str:
    return f"{milliseconds / 1000:g}"


def _wrapped(text: str, indent: str) -> list[str]:
    return wrap(text, WIDTH, initial_indent=indent, subsequent_indent=" " * len(indent))
