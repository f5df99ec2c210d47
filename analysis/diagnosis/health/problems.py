"""What can be wrong with an instrument, and which evidence that spoils."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self, TypeAlias

from analysis.diagnosis.health import limits
from analysis.expressions.values import Unknown

# In place of an instrument's name: whatever makes the load.
CLIENT = "client"

HealthFigure: TypeAlias = bool | int | float | str | None


class Evidence(StrEnum):
    """What a figure can rest on; a problem spoils some of it, and with it the figures that rest on that."""

    meaning: str

    def __new__(cls, value: str, meaning: str) -> Self:
        """Make a member; its meaning is for the documentation."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.meaning = meaning
        return member

    COUNTERS = "counters", "the kernel's counters at both edges of the window"
    TICKS = "ticks", "the sampler's ticks, unbroken over the window"
    SOCKETS = "sockets", "the sockets by state, unbroken over the window"
    PROCESSES = "processes", "what the processes used, unbroken over the window"
    REQUESTS = "requests", "every request of a k6 instance"
    DIALS = "dials", "every dial of a k6 instance, or of a proxy that records its dials"
    EVENTS = "events", "every event of a k6 instance"
    LOAD = "load", "the requested load, at the requested time"
    CLOCK = "clock", "which ticks enclose the window"
    TIMES = "times", "a wall clock that showed no time of the window twice"
    SCRAPES = "scrapes", "the scrapes of a server, unbroken over the window"
    ACCESS = "access", "every line of an access log"
    ERRORS = "errors", "the error log of a proxy"
    PACKETS = "packets", "every packet of a capture"
    KERNEL_EVENTS = "kernel_events", "every event that the kernel of an instance told"

    @property
    def spoilt_by(self) -> str:
        """Return what spoils it, for the documentation."""
        return _SPOILT_BY[self]


_HOLE = f"no reading for more than {limits.SECONDLY_GAP_MS / 1000:g} s"
_LOST = "a missing file, header or last line; a corrupt line; fewer records than the last line says"

_SPOILT_BY = {
    Evidence.COUNTERS: (
        f"a gap at an edge of more than {limits.EDGE_GAP_PERIODS} periods (and {limits.EDGE_GAP_MS_MIN} ms); samples"
        " that begin after the window's start or end before its end"
    ),
    Evidence.TICKS: f"the same; a gap of more than {limits.GAP_PERIODS} periods (and {limits.GAP_MS_MIN} ms)",
    Evidence.SOCKETS: _HOLE,
    Evidence.PROCESSES: _HOLE,
    Evidence.REQUESTS: _LOST,
    Evidence.DIALS: _LOST,
    Evidence.EVENTS: "a missing file, header or last line; a corrupt line",
    Evidence.LOAD: (
        "k6 did not end cleanly, or its exit code was not"
        f" {' or '.join(map(str, limits.K6_EXITS_IN_ORDER))}; dropped or interrupted iterations; users that never sent"
        " a request; users that should come one after another but came together as the last place of an accept queue"
        " was taken, or so that one had room there with its SYN and none with its last ACK, or came before the program"
        " had accepted those who came earlier, and nobody else took the place soon; connections that k6 closed"
        " while others asked for one, although its users would have kept them;"
        f" less than {limits.ARRIVALS_PERCENT_MIN:g} % of a spike's requests begun; processors idle for less than"
        f" {limits.HOST_IDLE_PERCENT_MIN:g} % of the load while k6 took more than {limits.K6_CPU_SHARE_PERCENT_MAX:g} %"
        f" of them; more than {limits.LATE_TICKS_PERCENT_MAX:g} % of the ticks beside k6 late by half a period, a gap"
        f" in them of more than {limits.GAP_PERIODS} periods (and {limits.GAP_MS_MIN} ms), or no ticks up to its end;"
        " a clock that was set so that these ticks are in doubt"
    ),
    Evidence.CLOCK: (
        f"a wall clock that was set, by more than {limits.CLOCK_STEP_MS} ms against the monotonic one, if that leaves"
        " open when the window began or ended; one that was set too often to be followed"
    ),
    Evidence.TIMES: "the same; a wall clock that was set back by less than what had passed of the window",
    Evidence.SCRAPES: _HOLE,
    Evidence.ACCESS: "a missing file; a corrupt line; an exit code of the proxy other than 0",
    Evidence.ERRORS: "a missing or unreadable file",
    Evidence.PACKETS: (
        "a missing, damaged or foreign file; an end before the run's; packets that the kernel dropped or nothing can"
        " read"
    ),
    Evidence.KERNEL_EVENTS: (
        "events that nobody asked for, or that the kernel or the rights do not allow; a missing or damaged file; an end"
        " before the run's; events for which there was no room"
    ),
}


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with an instrument, as `sampler/backend-1`, and the evidence that it spoils, if any."""

    instrument: str
    message: str
    spoils: frozenset[Evidence] = frozenset()


@dataclass(slots=True)
class Report:
    """What is known of one instrument: its own figures and its problems."""

    instrument: str
    figures: dict[str, HealthFigure] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def add(self, message: str, *spoils: Evidence) -> None:
        """Note a problem."""
        self.problems.append(Problem(self.instrument, message, frozenset(spoils)))

    @property
    def healthy(self) -> bool:
        """Return whether all of its evidence can be used."""
        return not any(problem.spoils for problem in self.problems)


@dataclass(frozen=True, slots=True)
class Health:
    """The instruments of a run, by name."""

    reports: Mapping[str, Report]

    @property
    def problems(self) -> list[Problem]:
        """Every problem, ordered by instrument."""
        return [problem for name in sorted(self.reports) for problem in self.reports[name].problems]

    def spoilt(self, evidence: Evidence, instrument: str | None = None) -> Unknown | None:
        """Return why evidence cannot be used, None if it can; the clock and the load are no one instrument's."""
        reasons = [
            f"{problem.instrument}: {problem.message}"
            for problem in self.problems
            if evidence in problem.spoils and instrument in (None, problem.instrument)
        ]
        return Unknown(tuple(dict.fromkeys(reasons))) if reasons else None
