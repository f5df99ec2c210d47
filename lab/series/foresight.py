"""What the model says of a search before it runs: the same question, asked of the model's figures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from analysis.expressions import parse
from analysis.expressions.values import Value, unknown
from lab.errors import BadInput
from lab.scenario import foreseen
from lab.scenario.effective import Effective
from lab.series.bisect import Done, Range, Status, decide

# What each measured figure is in the model. A user of one call is one request, and one dial.
_OF_USERS = {
    "client.users.served": "model.users_served",
    "client.users.failed": "model.users_failed",
    "client.dials.failed": "model.users_failed",
    "kernel.backend.TcpExt.ListenOverflows": "model.listen_drops",
    "kernel.backend.TcpExt.ListenDrops": "model.listen_drops",
}
_OF_REQUESTS = {"client.requests.ok": "model.users_served", "client.requests.failed": "model.users_failed"}
_VALUE_MAX = 1_000_000


@dataclass(frozen=True)
class Border:
    """The model's answer.

    Attributes:
        value: the last value for which the expression holds.
        next: its neighbour, for which it does not.
    """

    value: int
    next: int


def border(until: str, at: Callable[[int], Effective], start: int, step: int) -> Border | None:
    """Find where, by the model, the expression begins or ceases to hold; None where the model does not say.

    Args:
        until: the expression.
        at: the configuration with a value of the knob; BadInput beyond its range.
        start: the value from which to look, both ways.
        step: how near the two sides of the border must come.
    """

    def holds(value: int) -> Status:
        try:
            return _holds(until, at(value))
        except BadInput:
            return "unknown"

    here = holds(start)
    if here == "unknown":
        return None
    for other in _further(start):
        there = holds(other)
        if there not in (here, "unknown"):
            return _between(holds, {start: here, other: there}, step)
    return None


def _further(start: int) -> list[int]:
    """Values ever further from `start`, upwards and downwards in turn."""
    up, down, further = start, start, []
    while up < _VALUE_MAX or down > 1:
        up, down = up * 2, down // 2
        further += [value for value in (up, down) if 1 <= value <= _VALUE_MAX]
    return further


def _between(holds: Callable[[int], Status], ends: dict[int, Status], step: int) -> Border | None:
    seen = {value: [status] for value, status in ends.items()}
    within = Range(min(ends), max(ends), step, confirm=1)
    while True:
        decision = decide(within, seen)
        if isinstance(decision, Done):
            break
        status = holds(decision.value)
        if status == "unknown":
            return None
        seen[decision.value] = [status]
    found = decision.found
    if found is None:
        return None
    failing = [value for value, outcomes in seen.items() if outcomes == ["false"]]
    return Border(found, min(failing, key=lambda value: abs(value - found)))


def _holds(until: str, effective: Effective) -> Status:
    load = effective.scenario.knobs.load
    one_call = load.workload == "users" and load.calls == 1
    # A user that fails in long_polling comes again, so its requests are not the model's users; that some fail is.
    no_failure = load.workload == "long_polling"
    counterparts = _OF_USERS | (_OF_REQUESTS if one_call else {})
    expression = parse(until)
    names = {name: counterparts.get(name, name) for name in expression.names}
    if no_failure and "client.requests.failed" in names:
        names["client.requests.failed"] = "model.users_failed"
    known = foreseen.values_before_run(effective, set(names.values()))

    def value(name: str) -> Value:
        return known.get(names[name], unknown("the model does not say"))

    answer = expression.evaluate(value)
    return ("true" if answer else "false") if isinstance(answer, bool) else "unknown"
