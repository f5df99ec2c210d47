"""Whole runs on a machine whose wall clock is set: they say what they would have said, or what they lost."""

from functools import cache
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.database import in_memory
from analysis.derivation import JudgedRun, judge
from analysis.evidence import clock
from analysis.evidence.jsonl import JsonLines
from analysis.evidence.samples import Samples, Tick
from analysis.reports.stories import ladders
from formats.manifest import Phase
from tests.analysis.clocks import Clock, mono_us, set_clock
from tests.analysis.support import END_S, LOAD_END_S, MEASURE_S
from tests.analysis.whole import make_run

OVERFLOWS = "kernel.backend.TcpExt.ListenOverflows"
IN_DOUBT = "which ticks enclose the window is in doubt"
BY_TICKS = (f"{OVERFLOWS} == 500", "listen.backend.depth.max == 2", "sockets.backend.established.max == 3")
BY_TIMES = ("flows.backend.syn_failed == 500", "ledger.unexplained == 0", "ledger.identities.failed == 0")


def judged(
    folder: Path,
    steps_s: tuple[tuple[float, float], ...],
    *expressions: str,
    drain: bool = True,
    with_mono: bool = True,
) -> JudgedRun:
    """Judge a run whose 500 overflows lie between 10 s and 26.1 s."""
    run = make_run(folder)
    set_clock(run, Clock(steps_s), drain=drain, with_mono=with_mono)
    run.predict(*expressions)
    return judge(run.write())


def outcomes(of_run: JudgedRun) -> list[str]:
    return [outcome.status for outcome in of_run.predictions]


def told(of_run: JudgedRun) -> dict[str, object]:
    """What a run says without regard to when it was."""
    return {
        "measured": [each.measured for each in of_run.predictions],
        "causes": of_run.account.causes,
        "hops": of_run.account.hops,
        "ladders": [(each.kind, each.cause, each.steps) for each in ladders.build_ladders(of_run.run).ladders],
    }


@cache
def never_set() -> dict[str, object]:
    with TemporaryDirectory() as name:
        found = judged(Path(name), (), *BY_TICKS, *BY_TIMES)
        assert found.verdict.verdict == "reproduced", found.problems
        assert found.account.causes
        return told(found)


@pytest.mark.parametrize(
    "steps_s",
    [
        pytest.param(((30, -3600),), id="an hour back"),
        pytest.param(((10.05, -3600),), id="an hour back, as the load begins"),
        pytest.param(((61, -3600),), id="an hour back, in the drain"),
        pytest.param(((20, 3600),), id="an hour forward"),
        pytest.param(((12, 0.9),), id="a little forward, as SYNs are sent again"),
        pytest.param(((5, 20), (28, 300)), id="forward twice"),
        pytest.param(((20, 3600), (40, -7200)), id="forward, and further back"),
        pytest.param(((3, -2),), id="back, well before"),
        pytest.param(((3, 100),), id="forward, well before"),
        pytest.param(((63, 100),), id="forward, after"),
    ],
)
def test_a_run_whose_clock_was_set_says_the_same(tmp_path: Path, steps_s: tuple[tuple[float, float], ...]) -> None:
    found = judged(tmp_path, steps_s, *BY_TICKS, *BY_TIMES)
    assert [(each.instrument, each.message) for each in found.problems] == []
    assert outcomes(found) == ["true"] * 6
    assert told(found) == never_set()


@pytest.mark.parametrize(
    "steps_s",
    [
        pytest.param(((35, -34),), id="so that the start comes twice"),
        pytest.param(((10.05, -20),), id="before the first tick of the window"),
        pytest.param(((30, -29), (63, 29)), id="and forward again after the window"),
        pytest.param(((5, 20), (28, -20)), id="after it was set forward"),
        pytest.param(((30, -0.2),), id="a little"),
    ],
)
def test_a_clock_that_was_set_back_a_little_leaves_what_ticks_tell(
    tmp_path: Path, steps_s: tuple[tuple[float, float], ...]
) -> None:
    found = judged(tmp_path, steps_s, *BY_TICKS, *BY_TIMES[:2], "client.requests.ok == 3")
    assert outcomes(found) == ["true", "true", "true", "unknown", "unknown", "true"]
    (lost,) = [each.message for each in found.problems if each.instrument == "clock"]
    assert lost.startswith("was set back, and showed ")
    assert f"clock: {lost}" in found.account.lacks
    assert not found.health["clock"].healthy


@pytest.mark.parametrize(
    ("steps_s", "expression"),
    [
        pytest.param(((35, -34),), f"{OVERFLOWS} == 0", id="back, so that the start comes twice"),
        pytest.param(((10.05, -20),), f"{OVERFLOWS} == 0", id="back, before the first tick of the window"),
        pytest.param(((30, -29), (63, 29)), f"{OVERFLOWS} == 0", id="back, and forward again after the window"),
        pytest.param(((35, -34),), "listen.backend.depth.max <= 1", id="back, and the queue was longer before"),
    ],
)
def test_without_monotonic_times_of_the_phases_a_clock_that_is_set_back_makes_nothing_true(
    tmp_path: Path, steps_s: tuple[tuple[float, float], ...], expression: str
) -> None:
    verdict = judged(tmp_path, steps_s, expression, "client.requests.ok == 3", with_mono=False)
    assert outcomes(verdict) == ["unknown", "unknown"]
    problems = [problem.message for problem in verdict.problems if problem.instrument == "clock"]
    assert problems == [f"was set back: {IN_DOUBT}"]
    assert not verdict.health["clock"].healthy


def test_an_end_that_comes_twice_is_not_taken_for_the_first(tmp_path: Path) -> None:
    steps_s = ((20, 15), (30, -15), (61, -48.9))
    verdict = judged(tmp_path, steps_s, f"{OVERFLOWS} == 500", drain=False, with_mono=False)
    assert outcomes(verdict) == ["true"]


def test_samplers_that_contradict_each_other_leave_it_open_when_anything_happened(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    run.samples["k6-1"].step_clock(30, 900)
    run.predict(*BY_TICKS, "client.requests.ok == 3")
    found = judge(run.write())
    assert outcomes(found) == ["unknown"] * 4
    assert any("samplers contradict each other" in each.message for each in found.problems)


@pytest.mark.parametrize("clock_of", ["time_us", "mono_us"])
def test_a_tick_of_a_time_that_cannot_be_is_a_corrupt_line(tmp_path: Path, clock_of: str) -> None:
    run = make_run(tmp_path)
    run.samples["backend-1"].ticks[300][clock_of] = (1 << 63) - 1
    run.predict(*BY_TICKS)
    found = judge(run.write())
    assert any("samples.jsonl" in each.message and "corrupt" in each.message for each in found.problems)
    assert outcomes(found)[0] == "true"


# No two steps between the same two ticks, and none before the first tick or after the last.
SECONDS = st.floats(1, END_S - 1)
STEPS = st.lists(st.tuples(SECONDS, st.floats(-3600, 3600).filter(lambda by: abs(by) > 0.2)), max_size=4).filter(
    lambda steps: all(abs(one - other) > 0.2 for (one, _), (other, _) in combinations(steps, 2))
)


def of_ticks(shown: Clock) -> clock.Clock:
    """The clock that two samplers make known."""
    sampled = {
        name: Samples(
            JsonLines(Path(name)),
            ticks=[Tick(shown.shown(s), mono_us(s), 0, ()) for n in range(640) if (s := n / 10 + late_s) <= END_S],
        )
        for name, late_s in (("k6-1", 0.0), ("backend-1", 0.037))
    }
    phase = Phase.model_validate(shown.phase("measure", MEASURE_S, LOAD_END_S, with_mono=True))
    return clock.find_clock(sampled, [phase])


@given(steps_s=STEPS, moments_s=st.lists(SECONDS, min_size=1, max_size=20))
def test_a_time_on_the_steady_clock_is_right_or_in_doubt(
    steps_s: list[tuple[float, float]], moments_s: list[float]
) -> None:
    shown = Clock(tuple(steps_s))
    found = of_ticks(shown)
    began_us = shown.shown(MEASURE_S) - mono_us(MEASURE_S)
    for second in moments_s:
        wall_us, steady_us = shown.shown(second), mono_us(second) + began_us
        assert abs(found.steady(wall_us, mono_us(second)) - steady_us) <= 1
        if not found.is_ambiguous(wall_us, None):
            assert abs(found.steady(wall_us) - steady_us) <= 1
        else:
            assert any(
                first <= steady_us <= until or again <= steady_us <= over for first, until, again, over in found.twice()
            )


@given(steps_s=STEPS, moments_s=st.lists(SECONDS, min_size=1, max_size=20))
def test_one_time_and_sql_agree(steps_s: list[tuple[float, float]], moments_s: list[float]) -> None:
    shown = Clock(tuple(steps_s))
    found, walls_us = of_ticks(shown), [shown.shown(second) for second in moments_s]
    one_by_one = [found.steady(each) for each in walls_us]
    rows = in_memory().execute(f"SELECT {found.sql('us')} FROM (SELECT unnest($us) AS us)", {"us": walls_us}).fetchall()  # noqa: S608
    assert [us for (us,) in rows] == one_by_one
