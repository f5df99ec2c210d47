"""The wall clock of a run's machine, and what it would have shown had nobody set it.

Every observer's times are by the wall clock, and each tick of a sampler has the monotonic clock's beside it: where the
two move apart, the wall clock was set. Times on the *steady* clock are those of the wall clock less its steps; at the
start of the measurement both are the same. A clock that is set back shows some times twice. Which of the two is meant,
only a time that has the monotonic clock's beside it can tell.

Where a run has several machines, the steady clock is that of one of them: analysis.evidence.clocks says how each of the
others stands to it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from analysis.evidence.clock_fit import SAME, Rate
from analysis.evidence.jsonl import Record
from analysis.evidence.samples import Samples, Tick
from formats.manifest import Manifest, Phase

# A step of the wall clock against the monotonic one, between two ticks. Slewing is at most 0.5 ms in a second;
# preemption between the two readings of a tick stays well below this.
STEP_US = 100_000

# Who sets a clock more often than this in one run, or has samplers that contradict each other, is not followed.
_STEPS_MAX = 32
# The lab's own monotonic clock is the samplers' if it tells a time as they do, but for what slewing adds.
_SAME_CLOCK_US = 1_000_000


@dataclass(frozen=True, slots=True)
class Stretch:
    """A time in which nobody set the clock.

    Attributes:
        from_us, until_us: the first and the last that the wall clock may have shown.
        begin_mono_us: the first tick of it, by the monotonic clock.
        ahead_us: by how much the wall clock was ahead of the monotonic one.
        shift_us: what the steady clock is ahead of the wall clock.
    """

    from_us: int
    until_us: int
    begin_mono_us: int
    ahead_us: int
    shift_us: int


@dataclass(frozen=True, slots=True)
class Clock:
    """The wall clock of one machine.

    Attributes:
        stretches: what lies between its steps, in order; None if they are too many to be followed.
        rate: how it stands, without its steps, to the steady clock.
    """

    stretches: tuple[Stretch, ...] | None = ()
    rate: Rate = SAME

    @property
    def differs(self) -> bool:
        """Return whether times on it and on the steady clock differ."""
        return bool(self.stretches) or self.rate != SAME

    @property
    def steps(self) -> list[tuple[int, int]]:
        """Each time it was set, when on the steady clock, in µs, and by how much."""
        return [
            (self._rated(after.from_us + after.shift_us), before.shift_us - after.shift_us)
            for before, after in pairwise(self.stretches or ())
        ]

    def twice(self) -> list[tuple[int, int, int, int]]:
        """Return what it showed twice: from when to when on the steady clock the first time, and the second time."""
        stretches = self.stretches or ()
        found = []
        for at, one in enumerate(stretches):
            for other in stretches[at + 1 :]:
                low, high = max(one.from_us, other.from_us), min(one.until_us, other.until_us)
                if low <= high:
                    first, until, again, over = (us + each.shift_us for each in (one, other) for us in (low, high))
                    found.append((self._rated(first), self._rated(until), self._rated(again), self._rated(over)))
        return found

    def is_ambiguous(self, time_us: int, mono_us: int | None) -> bool:
        """Return whether a time that it showed may have been either of two."""
        return bool(self.stretches) and len(self._meant(time_us, mono_us)) > 1

    def steady(self, time_us: int, mono_us: int | None = None) -> int:
        """Return the steady clock's time for the wall clock's, both Unix epoch; the earlier one of two.

        `mono_us`: the monotonic clock's at the same moment, which tells which of two is meant.
        """
        if self.stretches:
            time_us += self._meant(time_us, mono_us)[0].shift_us
        return self._rated(time_us)

    def in_order(self, times_us: list[int]) -> list[int]:
        """Return the steady times of events in order: where two are possible, the first that is no earlier."""
        if not self.differs:
            return times_us
        found: list[int] = []
        for time_us in times_us:
            shifts_us = [each.shift_us for each in self._meant(time_us, None)] if self.stretches else [0]
            meant = [self._rated(time_us + shift_us) for shift_us in shifts_us]
            found.append(next((each for each in meant if not found or each >= found[-1]), meant[-1]))
        return found

    def shown(self, first_us: int, last_us: int) -> tuple[int, int]:
        """Return the first and the last that the wall clock showed from one time to another on the steady clock.

        Where clocks differ in rate, what is given may be a little wider.
        """
        if self.rate != SAME:
            back = self.rate.inverse()
            first_us, last_us = (us + back.more_us(us) + wider for us, wider in ((first_us, -2), (last_us, 2)))
        spans = [
            (max(first_us, each.from_us + each.shift_us) - each.shift_us, min(last_us, until_us) - each.shift_us)
            for each in self.stretches or ()
            if each.from_us + each.shift_us <= last_us and (until_us := each.until_us + each.shift_us) >= first_us
        ]
        return (min(first for first, _ in spans), max(last for _, last in spans)) if spans else (first_us, last_us)

    def sql(self, time_us: str) -> str:
        """Return the steady time as SQL, over an expression for the wall clock's time."""
        if self.rate != SAME:
            return self.rate.sql(f"({replace(self, rate=SAME).sql(time_us)})")
        if not self.stretches:
            return time_us
        far = [
            f"{{'far': greatest({s.from_us} - ({time_us}), ({time_us}) - {s.until_us}, 0), 'n': {n},"
            f" 'shift': {s.shift_us}}}"
            for n, s in enumerate(self.stretches)
        ]
        return f"({time_us}) + list_min([{', '.join(far)}]).shift"

    def retimed(self, samples: Samples) -> Samples:
        """Return a sampler's records with all times on the steady clock, by the monotonic one."""
        if not self.differs:
            return samples
        return replace(
            samples,
            ticks=[replace(each, time_us=self._by_mono(each.time_us, each.mono_us)) for each in samples.ticks],
            sockets=self._retimed(samples.sockets),
            time_waits=self._retimed(samples.time_waits),
            processes=self._retimed(samples.processes),
            selves=self._retimed(samples.selves),
        )

    def _retimed(self, records: Iterable[Record]) -> list[Record]:
        return [each | {"time_us": self._by_mono(each["time_us"], each["mono_us"])} for each in records]

    def _by_mono(self, time_us: int, mono_us: int) -> int:
        if stretches := self.stretches:
            shifts = (each.shift_us for each in reversed(stretches) if each.begin_mono_us <= mono_us)
            time_us += next(shifts, stretches[0].shift_us)
        return self._rated(time_us)

    def _rated(self, time_us: int) -> int:
        return time_us if self.rate == SAME else time_us + self.rate.more_us(time_us)

    def _meant(self, time_us: int, mono_us: int | None) -> list[Stretch]:
        """Return the stretches in which it may have shown a time; the nearest one if none showed it."""
        stretches = self.stretches or ()
        found = [each for each in stretches if each.from_us <= time_us <= each.until_us]
        if len(found) > 1 and mono_us is not None:
            apart_us, at = min((abs(time_us - each.ahead_us - mono_us), at) for at, each in enumerate(found))
            found = [found[at]] if apart_us < _SAME_CLOCK_US else found
        return found or [min(stretches, key=lambda each: max(each.from_us - time_us, time_us - each.until_us))]


NEVER_SET = Clock()


def find_clock(sampled: Mapping[str, Samples], phases: Iterable[Phase]) -> Clock:
    """Find out how the wall clock of a run's machine was set; all samplers of it read the same two clocks."""
    ticks = sorted((tick for samples in sampled.values() for tick in samples.ticks), key=lambda each: each.mono_us)
    steps = [
        (before, after)
        for before, after in pairwise(ticks)
        if abs(after.time_us - before.time_us - after.mono_us + before.mono_us) > STEP_US
    ]
    if not steps:
        return NEVER_SET
    if len(steps) > _STEPS_MAX:
        return Clock(None)
    measure = next((phase for phase in phases if phase.name == "measure"), None)
    clock = Clock(tuple(_stretches(ticks, steps)))
    if measure is None:
        return clock
    ahead_us = clock.steady(measure.start_us, measure.start_mono_us) - measure.start_us
    return Clock(tuple(replace(each, shift_us=each.shift_us - ahead_us) for each in clock.stretches or ()))


def _stretches(ticks: list[Tick], steps: list[tuple[Tick, Tick]]) -> Iterable[Stretch]:
    from_us, begin, shift_us = ticks[0].time_us, ticks[0], 0
    for before, after in steps:
        apart_us = after.mono_us - before.mono_us
        ahead_us = begin.time_us - begin.mono_us
        yield Stretch(from_us, before.time_us + apart_us, begin.mono_us, ahead_us, shift_us)
        shift_us -= after.time_us - before.time_us - apart_us
        from_us, begin = after.time_us - apart_us, after
    yield Stretch(from_us, ticks[-1].time_us, begin.mono_us, begin.time_us - begin.mono_us, shift_us)


def on_steady(manifest: Manifest, clock: Clock) -> Manifest:
    """Return a manifest with its phases and actions on the steady clock."""
    if not clock.differs:
        return manifest

    def steady(time_us: int | None, mono_us: int | None = None) -> int | None:
        return None if time_us is None else clock.steady(time_us, mono_us)

    phases = [
        each.model_copy(
            update={
                "start_us": steady(each.start_us, each.start_mono_us),
                "end_us": steady(each.end_us, each.end_mono_us),
            }
        )
        for each in manifest.phases
    ]
    actions = [
        each.model_copy(update={name: steady(getattr(each, name)) for name in ("start_us", "down_us", "end_us")})
        for each in manifest.actions
    ]
    return manifest.model_copy(update={"phases": phases, "actions": actions})


def edges_in_doubt(manifest: Manifest, clock: Clock) -> bool:
    """Return whether a phase of a manifest as written may have begun, or ended, at either of two times."""
    return any(
        clock.is_ambiguous(time_us, mono_us)
        for each in manifest.phases
        if each.name in ("measure", "drain")
        for time_us, mono_us in ((each.start_us, each.start_mono_us), (each.end_us, each.end_mono_us))
        if time_us is not None
    )
