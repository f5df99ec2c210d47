from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from jsonschema import Draft202012Validator

from analysis.compare import CompareError, arm_predictions, compare_series, judge_series
from analysis.expressions import ExpressionError
from analysis.figures import Scope
from analysis.schema import schema
from tests.analysis.results import Results, fingerprint
from tests.analysis.support import KNOBS, declared

if TYPE_CHECKING:
    from pathlib import Path

    from analysis.compare import SeriesVerdict
    from analysis.compare.arm_predictions import ArmPrediction
    from tests.analysis.support import Record

SLOW = (10.0, 12.0, 11.0, 13.0)
FAST = (1.0, 3.0, 2.0, 4.0)


@pytest.fixture
def results(tmp_path: Path) -> Results:
    return Results(tmp_path / "results")


def latencies(*values: float | None) -> list[Record]:
    return [{"figures": {"client.latency_ms.mean": value}} for value in values]


def judged(results: Results, expression: str, *, off: list[Record], on: list[Record]) -> ArmPrediction:
    return verdict(results.series({"keepalive-off": off, "keepalive-on": on}, {"order": expression})).predictions[0]


def verdict(folder: Path) -> SeriesVerdict:
    found = judge_series(folder)
    content = json.loads((folder / "derived" / "verdict.json").read_text())
    Draft202012Validator(json.loads(schema("series-verdict"))).validate(content)
    assert found.to_json() == (folder / "derived" / "verdict.json").read_text()
    return found


ON_IS_FASTER = "arms.keepalive_on.client.latency_ms.mean < arms.keepalive_off.client.latency_ms.mean"


def test_arms_whose_interval_lies_apart_are_distinguished(results: Results) -> None:
    found = judged(results, ON_IS_FASTER, off=latencies(*SLOW), on=latencies(*FAST))

    assert (found.status, found.why, found.repetitions_needed) == ("true", None, None)
    measured = found.measured["arms.keepalive_on.client.latency_ms.mean"]
    assert (measured.mean, measured.values) == (2.5, list(FAST))
    assert measured.low is not None
    assert measured.high is not None
    assert 1.0 <= measured.low < 2.5 < measured.high <= 4.0


def test_the_contrary_is_false(results: Results) -> None:
    assert judged(results, ON_IS_FASTER, off=latencies(*FAST), on=latencies(*SLOW)).status == "false"


def test_arms_within_their_spread_are_unknown_and_say_how_many_runs_it_would_take(results: Results) -> None:
    found = judged(results, ON_IS_FASTER, off=latencies(10, 12, 11, 13), on=latencies(9, 12, 10, 12))

    assert found.status == "unknown"
    assert found.repetitions_needed is not None
    assert 10 < found.repetitions_needed < 100
    assert found.why is not None
    assert f"about {found.repetitions_needed} of each" in found.why


def test_three_runs_of_each_are_too_few_however_far_apart(results: Results) -> None:
    found = judged(results, ON_IS_FASTER, off=latencies(*SLOW[:3]), on=latencies(*FAST[:3]))

    assert (found.status, found.repetitions_needed) == ("unknown", 4)


def test_one_run_of_each_tells_nothing(results: Results) -> None:
    found = judged(results, ON_IS_FASTER, off=latencies(11), on=latencies(1))

    assert (found.status, found.repetitions_needed) == ("unknown", 4)
    assert found.why == "one run of an arm does not tell how far its repetitions lie apart"


def test_counts_that_came_out_the_same_every_time_are_compared_as_they_are(results: Results) -> None:
    runs = [{"figures": {"client.requests.failed": 0}}] * 2
    expression = (
        "arms.keepalive_on.client.requests.failed == 0"
        " and arms.keepalive_off.client.requests.failed == arms.keepalive_off.model.users_failed"
    )

    assert judged(results, expression, off=[{}, {}], on=runs).status == "true"


def test_runs_that_differ_never_show_equality(results: Results) -> None:
    expression = "arms.keepalive_on.client.latency_ms.mean == arms.keepalive_off.client.latency_ms.mean"
    found = judged(results, expression, off=latencies(1, 2, 3, 4), on=latencies(4, 3, 2, 1))

    assert (found.status, found.repetitions_needed) == ("unknown", None)
    assert "near()" in str(found.why)


@pytest.mark.parametrize(
    ("expression", "status"),
    [
        ("near(arms.keepalive_on.client.latency_ms.mean, arms.keepalive_off.client.latency_ms.mean, 20)", "true"),
        ("near(arms.keepalive_on.client.latency_ms.mean, arms.keepalive_off.client.latency_ms.mean, 1)", "false"),
        (
            "between(arms.keepalive_off.client.latency_ms.mean / arms.keepalive_on.client.latency_ms.mean, 1, 20)",
            "true",
        ),
        ("not arms.keepalive_on.client.latency_ms.mean > arms.keepalive_off.client.latency_ms.mean", "true"),
        ("arms.keepalive_on.client.latency_ms.mean >= arms.keepalive_off.client.latency_ms.mean or true", "true"),
        ("0 < arms.keepalive_on.client.latency_ms.mean + 3 < arms.keepalive_off.client.latency_ms.mean", "true"),
        ("(arms.keepalive_on.client.latency_ms.mean < arms.keepalive_off.client.latency_ms.mean) == true", "true"),
        ("arms.keepalive_on.client.latency_ms.mean != arms.keepalive_off.client.latency_ms.mean", "true"),
        ("arms.keepalive_on.client.latency_ms.mean / 0 < 1", "unknown"),
        ("arms.keepalive_of.client.latency_ms.mean < 1", "unknown"),
        ("client.latency_ms.mean < 1", "unknown"),
        ("arms.keepalive_on.client.latency_ms.p77 < 1", "unknown"),
        ("arms.keepalive_on.client.latency_ms.mean <", "unknown"),
        ("arms.keepalive_on.client.latency_ms.mean", "unknown"),
    ],
)
def test_the_language_holds_for_arms(results: Results, expression: str, status: str) -> None:
    six = {"off": latencies(*SLOW, 11.5, 12.5), "on": latencies(*FAST, 2.5, 3.5)}
    found = judged(results, expression, **six)

    assert (found.status, found.why is None) == (status, status != "unknown"), found.why


def test_against_a_fixed_value_six_runs_are_needed(results: Results) -> None:
    found = judged(results, "arms.keepalive_on.client.latency_ms.mean < 9", off=latencies(*SLOW), on=latencies(*FAST))

    assert (found.status, found.repetitions_needed) == ("unknown", 6)


DRIFT = (0.0, 40.0, 5.0, 80.0, 20.0, 60.0)


def drifting(*values: float) -> list[Record]:
    return latencies(*(value + drift for value, drift in zip(values, DRIFT, strict=False)))


def test_what_befalls_a_block_befalls_all_arms_alike(results: Results) -> None:
    found = judged(results, ON_IS_FASTER, off=drifting(10, 11, 9, 12, 10, 11), on=drifting(8, 10, 8, 9, 8, 9))

    assert (found.status, found.why) == ("true", None)


def test_five_blocks_are_too_few_to_be_resampled_together(results: Results) -> None:
    found = judged(results, ON_IS_FASTER, off=drifting(10, 11, 9, 12, 10), on=drifting(8, 10, 8, 9, 8))

    assert found.status == "unknown"
    assert "5 of keepalive_on and 5 of keepalive_off" in str(found.why)


def test_a_block_that_lacks_an_arm_leaves_the_arms_apart(results: Results) -> None:
    on = drifting(8, 10, 8, 9, 8, 9)
    found = judged(results, ON_IS_FASTER, off=drifting(10, 11, 9, 12, 10, 11), on=[*on[:5], *latencies(None)])

    assert found.status == "unknown"
    assert "5 of keepalive_on and 6 of keepalive_off" in str(found.why)


def test_blocks_that_do_not_agree_are_unknown(results: Results) -> None:
    found = judged(results, ON_IS_FASTER, off=drifting(10, 11, 9, 12, 10, 11), on=drifting(8, 14, 8, 16, 8, 9))

    assert found.status == "unknown"
    assert "6 of each runs" in str(found.why)


def test_a_run_that_lacks_a_figure_is_left_out_of_it(results: Results) -> None:
    found = judged(results, ON_IS_FASTER, off=latencies(*SLOW), on=latencies(*FAST, None))

    assert found.status == "true"
    assert found.measured["arms.keepalive_on.client.latency_ms.mean"].values == list(FAST)


def test_an_inconclusive_run_is_shown_and_never_averaged_in(results: Results) -> None:
    spoilt = latencies(99.0)[0] | {"predictions": {"p": "unknown"}}
    folder = results.series(
        {"keepalive-off": latencies(*SLOW), "keepalive-on": [*latencies(*FAST), spoilt]}, {"order": ON_IS_FASTER}
    )
    found = verdict(folder)

    assert found.predictions[0].status == "true"
    cell = found.cells["keepalive-on"]
    assert (cell.planned, cell.used) == (5, 4)
    assert list(cell.not_used.values()) == ["inconclusive; p: lost"]
    assert found.verdict == "reproduced"


def test_a_cell_without_any_run_that_is_evidence_leaves_the_series_inconclusive(results: Results) -> None:
    spoilt = [{"predictions": {"p": "unknown"}}] * 4
    found = verdict(results.series({"keepalive-off": latencies(*SLOW), "keepalive-on": spoilt}, {"o": ON_IS_FASTER}))

    assert found.verdict == "inconclusive"
    assert found.predictions[0].why == "no run of keepalive_on is evidence"
    assert found.cells["keepalive-on"].verdict == "inconclusive"


@pytest.mark.parametrize(
    ("good", "bad", "tolerance", "result"),
    [
        (5, 0, {}, "reproduced"),
        (4, 1, {}, "reproduced"),
        (3, 2, {}, "inconclusive"),
        (1, 4, {}, "inconclusive"),
        (3, 1, {}, "inconclusive"),
        (3, 2, {"evidence_share": 0.6}, "reproduced"),
        (1, 0, {"evidence_share": 0.1}, "reproduced"),
    ],
)
def test_a_cell_needs_a_share_of_its_repetitions(
    results: Results, good: int, bad: int, tolerance: Record, result: str
) -> None:
    held = {"tolerance": {"unexplained": 0} | tolerance}
    runs = [held] * good + [held | {"predictions": {"p": "unknown"}}] * bad
    found = verdict(results.series({"keepalive-off": [held] * 5, "keepalive-on": runs}))

    assert found.cells["keepalive-on"].verdict == found.verdict == result
    assert (found.cells["keepalive-on"].used >= found.cells["keepalive-on"].needed) == (result == "reproduced")


@pytest.mark.parametrize("runs", [[], [{"beyond": "3 requests are unexplained; the scenario tolerates 0"}] * 4])
def test_a_cell_that_has_nothing_to_show_leaves_the_series_inconclusive(results: Results, runs: list[Record]) -> None:
    found = verdict(results.series({"keepalive-off": latencies(*SLOW), "keepalive-on": runs}))

    assert found.verdict == "inconclusive"
    assert found.cells["keepalive-on"].verdict == "inconclusive"


@pytest.mark.parametrize(
    ("file", "reason", "told"),
    [
        ("figures.json", "the analysis failed: ValueError: min() of nothing", "the analysis failed: ValueError: "),
        ("verdict.json", None, "the run has no verdict.json; derive it again: make analyse RUN="),
    ],
)
def test_a_run_whose_analysis_failed_is_shown_and_the_others_are_judged(
    results: Results, file: str, reason: str | None, told: str
) -> None:
    folder = results.series(
        {"keepalive-off": latencies(*SLOW), "keepalive-on": latencies(*FAST, 99.0)}, {"order": ON_IS_FASTER}
    )
    content = json.loads((folder / "series.json").read_text())
    failed = content["runs"][-1]
    failed["reason"] = reason
    (folder / "series.json").write_text(json.dumps(content))
    (results.root / failed["run"] / "derived" / file).unlink()
    found = verdict(folder)

    assert (found.verdict, found.predictions[0].status) == ("reproduced", "true")
    cell = found.cells["keepalive-on"]
    assert (cell.planned, cell.used, list(cell.not_used)) == (5, 4, [failed["run"]])
    assert told in cell.not_used[failed["run"]]
    assert [run.used for run in compare_series(folder)[0].groups[1].runs] == [True] * 4 + [False]


def test_what_rests_on_runs_whose_analysis_failed_alone_is_unknown(results: Results) -> None:
    folder = results.series({"keepalive-off": latencies(*SLOW), "keepalive-on": latencies(*FAST)}, {"o": ON_IS_FASTER})
    for figures in results.root.glob("queue/*-keepalive-on-*/derived/figures.json"):
        figures.unlink()
    found = verdict(folder)

    assert found.verdict == "inconclusive"
    assert found.predictions[0].why == "no run of keepalive_on is evidence"
    assert (found.cells["keepalive-on"].verdict, found.cells["keepalive-on"].used) == ("inconclusive", 0)


def test_a_run_that_failed_its_own_prediction_decides_the_series(results: Results) -> None:
    failed = latencies(2.5)[0] | {"predictions": {"p": "false"}}
    found = verdict(
        results.series(
            {"keepalive-off": latencies(*SLOW), "keepalive-on": [*latencies(*FAST), failed]}, {"o": ON_IS_FASTER}
        )
    )

    assert found.predictions[0].status == "true"
    assert found.verdict == "not-reproduced"
    assert [(own.true, own.false) for own in found.cells["keepalive-on"].predictions] == [(4, 1)]


def test_places_that_did_not_complete_are_named(results: Results) -> None:
    folder = results.series({"keepalive-off": latencies(*SLOW), "keepalive-on": latencies(*FAST)})
    content = json.loads((folder / "series.json").read_text())
    content["runs"][0] |= {"status": "failed", "reason": "k6 did not start"}
    content["runs"].append({"cell": "keepalive-off", "repetition": 5, "status": "planned", "run": None})
    (folder / "series.json").write_text(json.dumps(content))
    cell = verdict(folder).cells["keepalive-off"]

    assert (cell.planned, cell.used) == (5, 3)
    assert list(cell.not_used.values()) == ["failed: k6 did not start"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"series": "20261121T070000Z-arms-other"}, "belongs to the cell on of the series 20261121T070000Z-arms-other"),
        ({"cell": "third"}, "belongs to the cell third"),
        ({"host": {"kernel": "6.13.0", "cpus": 2}}, "its kernel is 6.13.0, that of the series 6.12.0"),
        ({"images": {"backend": "sha256:1"}}, "its image of backend is not the one that the series began with"),
        ({"schema": "connlab.manifest/2"}, "its schema is connlab.manifest/2, and this version reads"),
    ],
)
def test_a_mixed_series_is_refused(results: Results, change: Record, message: str) -> None:
    folder = results.series({"on": [{}, change]}, fingerprint=fingerprint(backend="sha256:" + "0" * 64))

    with pytest.raises(CompareError) as refused:
        judge_series(folder)

    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_series_without_its_runs_or_its_file_is_refused(results: Results, tmp_path: Path) -> None:
    with pytest.raises(CompareError, match="give a series' folder"):
        judge_series(tmp_path)

    folder = results.series({"on": [{}]})
    (results.root / "queue").rename(results.root / "gone")
    with pytest.raises(CompareError, match="copy it too"):
        judge_series(folder)

    (folder / "series.json").write_text('{"schema": "connlab.series/2"}')
    with pytest.raises(CompareError, match=r"schema: Input should be 'connlab\.series/1'"):
        judge_series(folder)


SCOPE = Scope(declared("k6", "backend"), KNOBS, frozenset())


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("client.latency_ms.mean < 3", "column 1: client.latency_ms.mean: of which arm? Write arms.<arm>.client"),
        ("arms.keepalive_onn.client.latency_ms.mean < 3", "column 1: there is no arm keepalive_onn; did you mean"),
        ("3 > arms.keepalive_on.client.latency_ms.men", "did you mean client.latency_ms.mean?"),
        ("arms.keepalive_on.client.latency_ms.list > 3", "> takes a number, not a list; use nth(list, k)"),
        (
            "nth(arms.keepalive_on.client.latency_ms.list, arms.keepalive_off.load.users) > 3",
            "column 1: nth() is taken in each run: of one arm, not of two",
        ),
        (
            "arms.keepalive-on.client.requests.ok > 3",
            "arms.keepalive-on.client.requests.ok is written arms.keepalive_on.client.requests.ok: a - would subtract",
        ),
        (
            "arms.keepalive-of.client.requests.ok > 3",
            "column 1: arms.keepalive names no figure; write arms.<arm>.<figure>",
        ),
        ("arms.keepalive_on.load.keep_alive == true", "is a truth value; of an arm take a number"),
        ("arms.keepalive_on.load.users", "a prediction must compare something"),
    ],
)
def test_a_wrong_prediction_is_refused_before_the_series(expression: str, message: str) -> None:
    with pytest.raises(ExpressionError) as refused:
        arm_predictions.check(expression, {"keepalive-on": SCOPE, "keepalive-off": SCOPE})

    assert message in str(refused.value)


LISTS = [{"figures": {"client.latency_ms.list": values}} for values in ([3.0, 1.0], [2.0, 5.0], [4.0, 9.0], [8.0, 6.0])]
SECOND = "nth(arms.keepalive_on.client.latency_ms.list, 2)"


def test_a_function_of_lists_is_taken_in_each_run(results: Results) -> None:
    found = judged(results, f"{SECOND} > arms.keepalive_off.client.latency_ms.mean", off=latencies(*FAST), on=LISTS)

    assert found.measured[SECOND].values == [3, 5, 9, 8]
    assert found.measured[SECOND].mean == 6.25
    assert (found.status, found.repetitions_needed) == ("unknown", 6)
    assert found.why is not None
    assert found.why.startswith("the difference is -3.75, from ")
    assert found.why.endswith("; it would take about 6 of each")
    assert judged(results, f"2 * {SECOND} > 5", off=[], on=[*LISTS, *LISTS]).status == "true"


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (None, "lost"),
        ([1.0], "nth() asked for value 2 of a list of 1"),
        ({"count": 2000, "min": 1, "max": 9}, "of the 2000 values of client.latency_ms.list derived/figures.json has"),
        (7.0, "nth() takes a list, not a number"),
    ],
)
def test_a_list_that_a_run_lacks_leaves_the_prediction_unknown(results: Results, value: object, why: str) -> None:
    runs = [{"figures": {"client.latency_ms.list": value}}] * 4
    found = judged(results, f"{SECOND} > 1", off=[], on=runs)

    assert found.status == "unknown"
    assert found.why is not None
    assert why in found.why


@pytest.mark.parametrize(
    ("expression", "measured"),
    [
        ("max(arms.keepalive_on.client.latency_ms.list) < 99", "max(arms.keepalive_on.client.latency_ms.list)"),
        ("count(arms.keepalive_on.client.latency_ms.list) == 2", "count(arms.keepalive_on.client.latency_ms.list)"),
        (f"round({SECOND} * -1) < 0 and not ({SECOND} < 0)", SECOND),
        (
            "nth(arms.keepalive_on.client.latency_ms.list, (arms.keepalive_on.load.users - 101) // 1) > 0",
            "nth(arms.keepalive_on.client.latency_ms.list, ((arms.keepalive_on.load.users - 101) // 1))",
        ),
    ],
)
def test_such_functions_stand_anywhere_in_an_expression(results: Results, expression: str, measured: str) -> None:
    arm_predictions.check(expression, {"keepalive-on": SCOPE, "keepalive-off": SCOPE})
    found = judged(results, expression, off=[], on=[*LISTS, *LISTS])

    assert list(found.measured) == [measured]
    assert (found.status, found.why) == ("true", None)


def test_a_right_prediction_passes() -> None:
    expression = arm_predictions.check(ON_IS_FASTER, {"keepalive-on": SCOPE, "keepalive-off": SCOPE})

    assert len(expression.names) == 2
