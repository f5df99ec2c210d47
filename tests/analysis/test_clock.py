"""Whole runs on a machine whose wall clock is set: no figure comes from ticks that may not be those of the window."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from analysis import JudgedRun, judge
from tests.analysis.support import DRAIN_END_S, LOAD_END_S, MEASURE_S, RunFolder, at_us
from tests.analysis.whole import make_run

OVERFLOWS = "kernel.backend.TcpExt.ListenOverflows"
IN_DOUBT = "which ticks enclose the window is in doubt"


@dataclass(frozen=True)
class Clock:
    """A wall clock that is set while a run lasts: moments by the clock as it was, each with its step in seconds."""

    steps_s: tuple[tuple[float, float], ...]

    def shown(self, second: float) -> int:
        """What it shows, in µs."""
        return at_us(second + sum(step_s for at_s, step_s in self.steps_s if second >= at_s))


def judged(folder: Path, steps_s: tuple[tuple[float, float], ...], *expressions: str, drain: bool = True) -> JudgedRun:
    """Judge a run whose 500 overflows lie between 10 s and 26.1 s."""
    run, clock = make_run(folder), Clock(steps_s)
    set_clock(run, clock)
    measure, drained = (clock.shown(MEASURE_S), clock.shown(LOAD_END_S)), clock.shown(DRAIN_END_S)
    run.manifest["phases"] = [
        {"name": "prepare", "start_us": clock.shown(0), "end_us": measure[0]},
        {"name": "measure", "start_us": measure[0], "end_us": measure[1]},
        *([{"name": "drain", "start_us": measure[1], "end_us": drained}] if drain else []),
    ]
    run.predict(*expressions)
    return judge(run.write())


def set_clock(run: RunFolder, clock: Clock) -> None:
    start_us = at_us(0)
    records = [record for samples in run.samples.values() for record in (*samples.ticks, *samples.slow)]
    records += [record for lines in run.lines.values() for record in lines if "time_us" in record]
    for client in run.clients.values():
        records += [*client.requests, *client.dials]
    for record in records:
        for key in {"time_us", "end_us"} & record.keys():
            record[key] = clock.shown((record[key] - start_us) / 1_000_000)
    for capture in run.captures.values():
        capture.packets = [(clock.shown((us - start_us) / 1_000_000), frame) for us, frame in capture.packets]


@pytest.mark.parametrize(
    ("steps_s", "expression"),
    [
        pytest.param(((35, -34),), f"{OVERFLOWS} == 0", id="back, so that the start comes twice"),
        pytest.param(((10.05, -20),), f"{OVERFLOWS} == 0", id="back, before the first tick of the window"),
        pytest.param(((30, -29), (63, 29)), f"{OVERFLOWS} == 0", id="back, and forward again after the window"),
        pytest.param(((5, 20), (28, -20)), f"{OVERFLOWS} == 0", id="forward before the window, and back within"),
        pytest.param(((35, -34),), "listen.backend.depth.max <= 1", id="back, and the queue was longer before"),
    ],
)
def test_a_clock_that_is_set_back_makes_nothing_true(
    tmp_path: Path, steps_s: tuple[tuple[float, float], ...], expression: str
) -> None:
    verdict = judged(tmp_path, steps_s, expression)
    (outcome,) = verdict.predictions
    assert outcome.status == "unknown", outcome
    assert "clock: was set by" in str(outcome.why)
    assert not verdict.health["clock"].healthy


def test_an_end_that_comes_twice_is_not_taken_for_the_first(tmp_path: Path) -> None:
    verdict = judged(tmp_path, ((20, 15), (30, -15), (61, -48.9)), f"{OVERFLOWS} < 500", drain=False)
    assert [outcome.status for outcome in verdict.predictions] == ["unknown"]


def test_a_clock_that_is_set_forward_in_the_window_leaves_its_figures_unknown(tmp_path: Path) -> None:
    verdict = judged(tmp_path, ((20, 2),), f"{OVERFLOWS} == 0", f"{OVERFLOWS} == 500", "client.requests.ok == 3")
    assert [outcome.status for outcome in verdict.predictions] == ["unknown", "unknown", "true"]


@pytest.mark.parametrize(
    "steps_s",
    [
        pytest.param(((3, -2),), id="back, well before"),
        pytest.param(((3, 100),), id="forward, well before"),
        pytest.param(((63, 100),), id="forward, after"),
    ],
)
def test_a_clock_that_is_set_outside_the_window_spoils_nothing(
    tmp_path: Path, steps_s: tuple[tuple[float, float], ...]
) -> None:
    verdict = judged(tmp_path, steps_s, f"{OVERFLOWS} == 500", "sockets.backend.established.max == 3")
    assert verdict.health["clock"].healthy
    assert verdict.health["clock"].figures == {"longest_step_ms": 0.0}
    assert [outcome.status for outcome in verdict.predictions] == ["true", "true"]


def test_which_ticks_are_meant_is_said_to_be_in_doubt(tmp_path: Path) -> None:
    verdict = judged(tmp_path, ((10.05, -20),), f"{OVERFLOWS} == 0", "client.requests.ok == 3")
    problems = [problem.message for problem in verdict.problems if problem.instrument == "clock"]
    assert problems == [f"was set by 20000 ms: {IN_DOUBT} (limit 100 ms)"]
    # Neither is it known which ticks tell whether the load was put on in time.
    assert [outcome.status for outcome in verdict.predictions] == ["unknown", "unknown"]
