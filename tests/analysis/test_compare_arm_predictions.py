import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from analysis.compare import CompareError, SeriesVerdict, arm_predictions, compare_series, judge_series
from analysis.compare.arm_predictions import ArmPrediction
from analysis.expressions import ExpressionError
from analysis.figures import Scope
from lab.schema import schemas
from tests.analysis.results import Results, fingerprint, latencies
from tests.analysis.support import KNOBS, Record, declared

SLOW = (10.0, 12.0, 11.0, 13.0)
FAST = (1.0, 3.0, 2.0, 4.0)


def judged(results: Results, expression: str, off: list[Record], on: list[Record]) -> ArmPrediction:
    return verdict(series(results, off, on, expression)).predictions[0]


def series(results: Results, off: list[Record], on: list[Record], expression: str | None = None) -> Path:
    return results.series({"keepalive-off": off, "keepalive-on": on}, {"order": expression or ON_IS_FASTER})


def verdict(folder: Path) -> SeriesVerdict:
    found = judge_series(folder)
    content = json.loads((folder / "derived" / "verdict.json").read_text())
    Draft202012Validator(schemas()["series-verdict.schema.json"]).validate(content)
    assert found.to_json() == (folder / "derived" / "verdict.json").read_text()
    return found


ON, OFF = (f"arms.keepalive_{state}.client.latency_ms.mean" for state in ("on", "off"))
ON_IS_FASTER = f"{ON} < {OFF}"


def test_arms_whose_interval_lies_apart_are_distinguished(results: Results) -> None:
    found = judged(results, ON_IS_FASTER, latencies(*SLOW), latencies(*FAST))

    assert (found.status, found.why, found.repetitions_needed) == ("true", None, None)
    measured = found.measured[ON]
    assert (measured.mean, measured.values) == (2.5, list(FAST))
    assert measured.low is not None
    assert measured.high is not None
    assert 1.0 <= measured.low < 2.5 < measured.high <= 4.0


SAME = "arms.keepalive_on.load.users == arms.keepalive_off.load.users"
DRIFT = (0.0, 40.0, 5.0, 80.0, 20.0, 60.0)
OFF_BLOCKS = (10, 11, 9, 12, 10, 11)


@pytest.mark.parametrize(
    ("expression", "off", "on", "why"),
    [
        (ON_IS_FASTER, (10, 12, 11, 13), (9, 12, 10, 12), "about 57 of each"),
        # However far apart, few runs are too few.
        (ON_IS_FASTER, SLOW[:1], FAST[:1], "one run of an arm has no spread"),
        (ON_IS_FASTER, SLOW[:3], FAST[:3], "about 4 of each"),
        (f"{ON} < 9", SLOW, FAST, "with 4 of keepalive_on runs; it would take about 6 of each"),
        (f"{ON} == {OFF}", (1, 2, 3, 4), (4, 3, 2, 1), "runs that differ cannot prove equality; near()"),
        # Counts that came out the same every time are compared as they are.
        (SAME, (1, 2), (3, 4), None),
        # What befalls a block of runs befalls all arms alike, if there are six blocks of all arms.
        (ON_IS_FASTER, OFF_BLOCKS, (8, 10, 8, 9, 8, 9), None),
        (ON_IS_FASTER, OFF_BLOCKS, (8, 14, 8, 16, 8, 9), "6 of each runs"),
        (ON_IS_FASTER, OFF_BLOCKS[:5], (8, 10, 8, 9, 8), "5 of keepalive_on and 5 of keepalive_off"),
        (ON_IS_FASTER, OFF_BLOCKS, (8, 10, 8, 9, 8), "5 of keepalive_on and 6 of keepalive_off"),
    ],
)
def test_a_comparison_is_decided_or_says_how_many_runs_it_would_take(
    results: Results, expression: str, off: tuple[float, ...], on: tuple[float, ...], why: str | None
) -> None:
    drift = DRIFT if off[:5] == OFF_BLOCKS[:5] else (0.0,) * 6
    runs = (latencies(*(value + more for value, more in zip(values, drift, strict=False))) for values in (off, on))
    found = judged(results, expression, *runs)

    assert found.status == ("unknown" if why else "true")
    assert (why or "None") in str(found.why)
    assert "about" not in (why or "") or f"about {found.repetitions_needed} of each" in str(found.why)


@pytest.mark.parametrize(
    ("expression", "status"),
    [
        (f"near({ON}, {OFF}, 20)", "true"),
        (f"near({ON}, {OFF}, 1)", "false"),
        (f"between({OFF} / {ON}, 1, 20)", "true"),
        (f"not {ON} > {OFF}", "true"),
        (f"{ON} >= {OFF} or true", "true"),
        (f"0 < {ON} + 3 < {OFF}", "true"),
        (f"({ON} < {OFF}) == true", "true"),
        (f"{ON} != {OFF}", "true"),
        (f"{ON} / 0 < 1", "unknown"),
        ("arms.keepalive_of.client.latency_ms.mean < 1", "unknown"),
        ("client.latency_ms.mean < 1", "unknown"),
        ("arms.keepalive_on.client.latency_ms.p77 < 1", "unknown"),
        (f"{ON} <", "unknown"),
        (ON, "unknown"),
    ],
)
def test_the_language_holds_for_arms(results: Results, expression: str, status: str) -> None:
    found = judged(results, expression, latencies(*SLOW, 11.5, 12.5), latencies(*FAST, 2.5, 3.5))

    assert (found.status, found.why is None) == (status, status != "unknown"), found.why


def test_runs_that_lack_a_figure_or_are_inconclusive_are_never_averaged_in(results: Results) -> None:
    spoilt = latencies(99.0)[0] | {"predictions": {"p": "unknown"}}
    found = verdict(series(results, latencies(*SLOW), [*latencies(*FAST, None), spoilt]))

    assert found.predictions[0].status == "true"
    assert found.predictions[0].measured[ON].values == list(FAST)
    cell = found.cells["keepalive-on"]
    assert (cell.planned, cell.used) == (6, 5)
    assert list(cell.not_used.values()) == ["inconclusive; p: lost"]
    assert found.verdict == "reproduced"


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


@pytest.mark.parametrize(
    ("run", "why"),
    [
        (None, "there is no arm keepalive_on"),
        ({"beyond": "3 requests are unexplained"}, "no run of keepalive_on is evidence"),
        ({"predictions": {"p": "unknown"}}, "no run of keepalive_on is evidence"),
    ],
)
def test_a_cell_that_has_nothing_to_show_leaves_the_series_inconclusive(
    results: Results, run: Record | None, why: str
) -> None:
    found = verdict(series(results, latencies(*SLOW), [run] * 4 if run else []))

    assert found.verdict == found.cells["keepalive-on"].verdict == "inconclusive"
    assert found.predictions[0].why == why


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
    folder = series(results, latencies(*SLOW), latencies(*FAST, 99.0))
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
    folder = series(results, latencies(*SLOW), latencies(*FAST))
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


LIST = "arms.keepalive_on.client.latency_ms.list"
LISTS = [{"figures": {"client.latency_ms.list": values}} for values in ([3.0, 1.0], [2.0, 5.0], [4.0, 9.0], [8.0, 6.0])]
SECOND = f"nth({LIST}, 2)"


def test_a_function_of_lists_is_taken_in_each_run(results: Results) -> None:
    found = judged(results, f"{SECOND} > {OFF}", latencies(*FAST), LISTS)

    assert (found.measured[SECOND].values, found.measured[SECOND].mean) == ([3, 5, 9, 8], 6.25)
    assert (found.status, found.repetitions_needed) == ("unknown", 6)
    assert str(found.why).startswith("the difference is -3.75, from ")


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
    found = judged(results, f"{SECOND} > 1", [], [{"figures": {"client.latency_ms.list": value}}] * 4)

    assert found.status == "unknown"
    assert why in str(found.why)


@pytest.mark.parametrize(
    ("expression", "measured"),
    [
        (f"max({LIST}) < 99", f"max({LIST})"),
        (f"count({LIST}) == 2", f"count({LIST})"),
        (f"round({SECOND} * -1) < 0 and not ({SECOND} < 0)", SECOND),
        (
            f"nth({LIST}, (arms.keepalive_on.load.users - 101) // 1) > 0",
            f"nth({LIST}, ((arms.keepalive_on.load.users - 101) // 1))",
        ),
    ],
)
def test_such_functions_stand_anywhere_in_an_expression(results: Results, expression: str, measured: str) -> None:
    assert arm_predictions.check(expression, {"keepalive-on": SCOPE, "keepalive-off": SCOPE}).text == expression
    found = judged(results, expression, [], [*LISTS, *LISTS])

    assert list(found.measured) == [measured]
    assert (found.status, found.why) == ("true", None)
