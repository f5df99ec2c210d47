"""How far a series has come, and how long it will still take."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean

from rich.console import Console
from rich.text import Text

from lab.run.verdicts import STYLES
from lab.scenario.effective import Effective
from lab.series.plan import BESIDES_S
from lab.series.record import PlannedRun, Series

_MINUTE_S = 60


class Progress:
    """Prints a line after each run; what the runs took so far tells what those to come will take."""

    def __init__(self, series: Series, cells: Mapping[str, Effective], console: Console) -> None:
        self._series = series
        self._cells = cells
        self._console = console
        self._besides_s: list[float] = []

    def title(self, place: PlannedRun) -> str:
        """Name a place while it runs: its number, the time left, its cell."""
        number = self._series.runs.index(place) + 1
        return f"[{number}/{len(self._series.runs)}, {self._left()} left] {place.cell} r{place.repetition:02}"

    def done(self, place: PlannedRun, seconds: float) -> None:
        """Say what became of a place."""
        if place.status == "complete":
            self._besides_s.append(seconds - self._own_s(place))
        done = sum(one.status == "complete" for one in self._series.runs)
        outcome = place.verdict or "recorded" if place.status == "complete" else place.status
        why = f" ({place.reason})" if place.reason else ""
        line = Text.assemble(
            f"{place.cell} r{place.repetition:02}: ",
            (outcome, STYLES.get(outcome, "")),
            f"{why}, {seconds:.0f} s; {done} of {len(self._series.runs)} complete, {self._left()} left",
        )
        self._console.print(line, soft_wrap=True)

    def _own_s(self, place: PlannedRun) -> float:
        """How long load and drain of a place are expected to take."""
        cell = next(one for one in self._series.cells if one.cell == place.cell)
        return cell.load_s + self._cells[place.cell].scenario.drain / 1000

    def _left(self) -> str:
        waiting = [place for place in self._series.runs if place.status in ("planned", "running")]
        besides_s = fmean(self._besides_s) if self._besides_s else BESIDES_S
        each_s = besides_s + self._series.cooldown_ms / 1000
        left_s = sum(self._own_s(place) + each_s for place in waiting)
        return f"{left_s:.0f} s" if left_s < _MINUTE_S else f"about {left_s / _MINUTE_S:.0f} min"
