"""How a figure is declared: one pattern, its meaning, and how its value is computed from a run."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from analysis.diagnosis.health import Evidence
from analysis.diagnosis.joins import Joined
from analysis.evidence.window import Window
from analysis.expressions.values import Kind, Unknown, Value, unknown
from analysis.figures.run import Run

Compute: TypeAlias = Callable[["Run", Mapping[str, str]], Value]
Find: TypeAlias = Callable[[str], "tuple[Figure, dict[str, str]] | None"]

_WHOLE = re.compile(r"-?[0-9]+")

# What each part of a pattern can match. Which of these names exist is for analysis.figures.catalogue.
_ROLE = r"[a-z0-9]+(?:_[a-z0-9]+)*"
_PARAMETERS = {
    "role": _ROLE,
    "backend": _ROLE,
    "server": _ROLE,
    "proxy": _ROLE,
    "cause": _ROLE,
    "Counter": r"[A-Za-z0-9]+\.[A-Za-z0-9]+",
    "state": r"[a-z0-9_]+",
    "queue": r"[1-9][0-9]*",
    "code": r"[0-9]+",
    "status": r"[0-9]+|[1-5]xx",
    "kind": r"[a-z_]+",
    "check": r"[a-z0-9_]+",
    "request": r"[a-z0-9_]+",
    "group": r"[a-z0-9_]+",
    "threshold": r"[a-z0-9_]+",
    "statistic": r"[a-z0-9]+",
    "sysctl": r"net(?:\.[a-z0-9_-]+)+",
}


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure, or a family of them.

    Attributes:
        pattern: its name, with parameters in angle brackets.
        compute: its value in a run, given the parameters.
        source: the files it is read from, or the module of the model.
        unit: the value's unit; empty for a count.
        of_role: the role that must be on the path for there to be such a figure; None for no such condition.
    """

    pattern: str
    meaning: str
    compute: Compute
    source: str
    kind: Kind = Kind.NUMBER
    unit: str = ""
    of_role: str | None = None
    _regex: re.Pattern[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Turn the pattern into a regular expression."""
        escaped = re.escape(self.pattern)
        regex = re.sub(r"<(\w+)>", lambda match: f"(?P<{match[1]}>{_PARAMETERS[match[1]]})", escaped)
        object.__setattr__(self, "_regex", re.compile(regex, re.ASCII))

    @property
    def parameters(self) -> list[str]:
        """The names of its parameters, in order."""
        return re.findall(r"<(\w+)>", self.pattern)

    def match(self, name: str) -> dict[str, str] | None:
        """Return the parameters that a name gives this pattern, None if it is not of it."""
        match = self._regex.fullmatch(name)
        return match.groupdict() if match else None

    def name(self, **parameters: str) -> str:
        """Return the name of one figure of the family."""
        return re.sub(r"<(\w+)>", lambda match: parameters[match[1]], self.pattern)


def of_joined(value: Callable[[Run, Joined, Mapping[str, str]], Value]) -> Compute:
    """Return a value of what the observers saw, joined; unknown where nothing could be."""

    def compute(run: Run, found: Mapping[str, str]) -> Value:
        joined = run.joined
        return joined if isinstance(joined, Unknown) else value(run, joined, found)

    return compute


def of_connections(value: Callable[[Run, Joined, list[str], Mapping[str, str]], Value]) -> Compute:
    """Return a value of the connections to a server role, or to one of its instances."""

    @of_joined
    def compute(run: Run, joined: Joined, found: Mapping[str, str]) -> Value:
        servers = run.instances(found["server"])
        observers = run.observers_to(servers)
        if isinstance(observers, Unknown):
            return observers
        evidence = {Evidence.PACKETS: "capture", Evidence.TIMES: ""}
        return run.resting_on(observers, evidence, lambda _: value(run, joined, servers, found))

    return compute


def over_instances(
    evidence: dict[Evidence, str],
    combine: Callable[[Iterable[Value]], Value],
    value: Callable[[Run, str, Window, Mapping[str, str]], Value],
) -> Compute:
    """Return a value of each instance of a role in the window, combined."""

    def compute(run: Run, found: Mapping[str, str]) -> Value:
        instances = run.instances(found["role"])
        return run.resting_on(
            instances, evidence, lambda window: combine(value(run, each, window, found) for each in instances)
        )

    return compute


def figures_of_times(prefix: str, meaning: str, source: str, compute: Compute) -> tuple[Figure, ...]:
    """Return the figure of a list of times, and those of its statistics."""
    return (
        Figure(f"{prefix}.list", meaning, compute, source, kind=Kind.LIST, unit="ms"),
        Figure(f"{prefix}.<statistic>", "A statistic of that list.", compute, source, unit="ms"),
    )


def find_figure(figures: Iterable[Figure], name: str) -> tuple[Figure, dict[str, str]] | None:
    """Return the figure that a name is of, with its parameters; the first of those it could be."""
    for figure in figures:
        parameters = figure.match(name)
        if parameters is not None:
            return figure, parameters
    return None


def comparable_value(name: str, value: object) -> bool | int | float | str | None:
    """Return a knob's value as expressions compare it: a sysctl that is a whole number is one; None if not set."""
    if name.startswith("kernel.") and isinstance(value, str) and _WHOLE.fullmatch(value):
        return int(value)
    return value if isinstance(value, bool | int | float | str) else None


def compute_value(find: Find, run: Run, name: str) -> Value:
    """Return the value of a knob or a figure in a run; unknown, with a reason, where the evidence gives none."""
    knob = run.raw.manifest.knobs.get(name)
    if knob is not None:
        comparable = comparable_value(name, knob.value)
        return unknown(f"{name} has no value that can be compared") if comparable is None else comparable
    found = find(name)
    if found is None:
        return unknown(f"there is no figure or knob {name}")
    figure, parameters = found
    return figure.compute(run, parameters)
