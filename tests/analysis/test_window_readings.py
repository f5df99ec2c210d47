from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.diagnosis.health import limits
from analysis.evidence import samples, window, window_readings
from analysis.evidence.samples import Tick
from analysis.evidence.window import Window
from analysis.evidence.window_readings import Span
from analysis.expressions.values import Unknown, unknown
from formats import manifest
from tests.analysis.support import RunFolder, at_us, make_manifest

WINDOW = Window(start_us=at_us(10), load_end_us=at_us(18), end_us=at_us(20))


def ticks(seconds: Sequence[float]) -> list[Tick]:
    return [Tick(at_us(second), round(second * 1_000_000), 0, ()) for second in seconds]


def enclose(seconds: Sequence[float]) -> Span | Unknown:
    return window_readings.find_enclosing_ticks(ticks(seconds), WINDOW, 500)


REGULAR = [number / 10 for number in range(90, 220)]


def test_the_window_is_enclosed_by_the_last_tick_before_and_the_first_after() -> None:
    span = enclose([second + 0.04 for second in REGULAR])

    assert isinstance(span, Span)
    assert (REGULAR[span.first], REGULAR[span.last]) == (9.9, 20.0)


def test_ticks_at_the_very_edges_enclose_it() -> None:
    assert enclose(REGULAR) == Span(REGULAR.index(10.0), REGULAR.index(20.0))


def test_ticks_that_begin_late_leave_the_window_open() -> None:
    assert enclose([second for second in REGULAR if second >= 10.05]) == unknown("they begin after the measurement did")


def test_a_hole_at_an_edge_within_the_limit_does_not() -> None:
    assert isinstance(enclose([second for second in REGULAR if not 9.95 < second < 10.35]), Span)


@given(st.lists(st.integers(0, 30_000), max_size=30).map(sorted))
def test_the_ticks_that_enclose_the_window_lie_outside_it(times_ms: list[int]) -> None:
    seconds = [time_ms / 1000 for time_ms in times_ms]
    span = enclose(seconds)

    if isinstance(span, Span):
        assert seconds[span.first] <= 10
        assert seconds[span.last] >= 20
        assert all(10 <= second <= 20 for second in seconds[span.first + 1 : span.last])


def test_readings_within_a_stretch_begin_with_the_one_in_force_at_its_start() -> None:
    times_us = [at_us(second) for second in (8.5, 9.5, 10.5, 19.5, 20.5)]

    assert list(window_readings.indices_from_before_start(times_us, WINDOW.start_us, WINDOW.end_us)) == [1, 2, 3]
    assert list(window_readings.indices_enclosing(times_us, WINDOW.start_us, WINDOW.end_us)) == [1, 2, 3, 4]
    assert list(window_readings.indices_enclosing(times_us[2:3], WINDOW.start_us, WINDOW.end_us)) == [0]
    assert list(window_readings.indices_from_before_start([], WINDOW.start_us, WINDOW.end_us)) == []


@pytest.mark.parametrize(
    ("seconds", "silence_ms"),
    [((9.5, 10.5, 12, 19.5), 7500), ((4, 10.5, 13, 16, 19), 6500), ((12, 15, 18), 3000), ((), 10_000)],
)
def test_the_longest_silence_counts_from_the_reading_before_the_stretch(
    seconds: tuple[float, ...], silence_ms: float
) -> None:
    times_us = [at_us(second) for second in seconds]

    assert window_readings.longest_silence_ms(times_us, WINDOW.start_us, WINDOW.end_us) == silence_ms


def test_the_limit_of_a_hole_follows_the_rate() -> None:
    assert [limits.edge_gap_ms(rate_hz) for rate_hz in (1, 2, 10, 100)] == [5000, 2500, 500, 500]
    assert [limits.gap_ms(rate_hz) for rate_hz in (1, 2, 10, 100)] == [10_000, 5000, 1000, 1000]


def of_manifest(**changed: Any) -> Window | Unknown:  # noqa: ANN401  any field of the manifest
    return window.find_window(manifest.Manifest.model_validate(make_manifest() | changed))


def test_the_window_is_from_the_measurement_to_the_end_of_the_drain() -> None:
    assert of_manifest() == Window(at_us(10), at_us(60), at_us(62))


def test_without_a_drain_it_ends_with_the_load() -> None:
    assert of_manifest(phases=make_manifest()["phases"][:2]) == Window(at_us(10), at_us(60), at_us(60))


MEASURE = {"name": "measure", "start_us": at_us(10), "end_us": at_us(60)}


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"status": "aborted", "reason": "Ctrl-C"}, "the run is aborted, not complete: Ctrl-C"),
        ({"status": "running"}, "the run is running, not complete"),
        ({"phases": []}, "the manifest does not say when the measurement began and ended"),
        ({"phases": [MEASURE | {"end_us": None}]}, "the manifest does not say when the measurement began and ended"),
        (
            {"phases": [MEASURE, {"name": "drain", "start_us": at_us(60)}]},
            "the manifest does not say when the drain ended",
        ),
        (
            {"phases": [MEASURE | {"end_us": at_us(9)}]},
            "the manifest's phases run backwards: the clock was set while the run lasted",
        ),
    ],
)
def test_a_run_without_its_phases_has_no_window(changed: dict[str, Any], why: str) -> None:
    found = of_manifest(**changed)

    assert isinstance(found, Unknown)
    assert found.why == why


def test_the_step_of_the_clock_is_the_longest_between_two_ticks(run: RunFolder) -> None:
    sampled = run.samples["backend-1"]
    sampled.step_clock(30, -40)
    sampled.step_clock(45, 70)

    found = samples.read(run.write() / "raw" / "backend-1" / "collector" / "samples.jsonl")

    assert window_readings.longest_step_ms(found, Span(0, len(found.ticks) - 1)) == pytest.approx(70)
    assert window_readings.longest_step_ms(found, Span(0, 200)) == 0
