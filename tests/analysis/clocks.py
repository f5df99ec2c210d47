"""Wall clocks that are set while a test's run lasts."""

from dataclasses import dataclass

from tests.analysis.support import DRAIN_END_S, LOAD_END_S, MEASURE_S, MONO_US, RunFolder, at_us


@dataclass(frozen=True)
class Clock:
    """A wall clock that is set while a run lasts: moments by the clock as it was, each with its step in seconds."""

    steps_s: tuple[tuple[float, float], ...]

    def shown(self, second: float) -> int:
        """What it shows, in µs."""
        return at_us(second + sum(step_s for at_s, step_s in self.steps_s if second >= at_s))

    def phase(self, name: str, start_s: float, end_s: float, *, with_mono: bool) -> dict[str, object]:
        """A phase as the manifest has it."""
        times = {"start": start_s, "end": end_s}
        wall = {f"{edge}_us": self.shown(second) for edge, second in times.items()}
        mono = {f"{edge}_mono_us": mono_us(second) for edge, second in times.items()} if with_mono else {}
        return {"name": name, **wall, **mono}


def mono_us(second: float) -> int:
    return MONO_US + round(second * 1_000_000)


def set_clock(run: RunFolder, shown: Clock, *, drain: bool = True, with_mono: bool = True) -> None:
    """Write everything of a run by a clock."""
    phases = [("prepare", 0.0, MEASURE_S), ("measure", MEASURE_S, LOAD_END_S)]
    phases += [("drain", LOAD_END_S, DRAIN_END_S)] if drain else []
    run.manifest["phases"] = [shown.phase(*each, with_mono=with_mono) for each in phases]
    start_us = at_us(0)
    records = [record for samples in run.samples.values() for record in (*samples.ticks, *samples.slow)]
    records += [record for lines in run.lines.values() for record in lines]
    for client in run.clients.values():
        records += [*client.requests, *client.dials]
    for record in records:
        for key in {"time_us", "end_us", "started_us", "ended_us"} & record.keys():
            record[key] = shown.shown((record[key] - start_us) / 1_000_000)
    for capture in run.captures.values():
        capture.shown = lambda us: shown.shown((us - start_us) / 1_000_000)
