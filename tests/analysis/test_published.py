"""Figures beside a published experiment: of a run in its verdict, of arms in that of the series."""

import json

import pytest
from jsonschema import Draft202012Validator

from analysis.compare import judge_series
from analysis.derivation import analyse
from analysis.verdicts.verdict_file import MeasuredFigure
from lab.schema import schemas
from tests.analysis.results import Results
from tests.analysis.support import RunFolder


def beside(run: RunFolder, here: dict[str, str], says: str | None = "3 are served") -> list[MeasuredFigure]:
    run.manifest["published"] = {"description": says, "here": here}
    folder = run.write()
    found = analyse(folder).published
    assert found is not None
    assert found.description == says
    content = json.loads((folder / "derived" / "verdict.json").read_text())
    Draft202012Validator(schemas()["verdict.schema.json"]).validate(content)
    return found.here


def of_series(results: Results, expression: str, off: list[float | None], on: list[float | None]) -> MeasuredFigure:
    runs = {
        arm: [{"figures": {"client.latency_ms.mean": value}} for value in values]
        for arm, values in (("keepalive-off", off), ("keepalive-on", on))
    }
    folder = results.series(runs, published={"description": None, "here": {"ratio": expression}})
    found = judge_series(folder).published
    assert found is not None
    return found.here[0]


def test_a_run_s_verdict_has_the_figures_in_their_order(run: RunFolder) -> None:
    served, each = beside(run, {"served": "client.requests.ok", "for each": "model.listen_drops / load.users"})

    assert (served.name, served.expression, served.value, served.why) == ("served", "client.requests.ok", 3, None)
    assert each.name == "for each"
    assert each.value == pytest.approx(500 / 103)


@pytest.mark.parametrize(
    ("expression", "status", "why"),
    [
        pytest.param("nth(client.latency_ms.list, 9)", "complete", "value 9 of a list of 3", id="without evidence"),
        pytest.param("client.requests.ok", "aborted", "the run is aborted", id="of a run that broke off"),
        pytest.param("client.requests.ok == 3", "complete", "a number is wanted; this is a truth", id="no number"),
    ],
)
def test_a_figure_that_is_unknown_says_why(run: RunFolder, expression: str, status: str, why: str) -> None:
    run.manifest["status"] = status
    (lacking,) = beside(run, {"figure": expression}, says=None)

    assert lacking.value is None
    assert why in str(lacking.why)


def test_without_any_the_verdict_has_none(run: RunFolder) -> None:
    assert analyse(run.write()).published is None


def test_of_arms_the_means_of_their_runs_are_taken(results: Results) -> None:
    ratio = "arms.keepalive_off.client.latency_ms.mean / arms.keepalive_on.client.latency_ms.mean"

    assert of_series(results, ratio, [10, 14], [2, None, 4]).value == 4


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("arms.keepalive_on.client.latency_ms.mean", "lost"),
        ("arms.direct.client.latency_ms.mean", "there is no arm direct"),
        ("arms.keepalive_off.client.latency_ms.mean > 1", "a number is wanted"),
        ("arms.keepalive_off.client.latency_ms.mean +", "the expression is wrong"),
    ],
)
def test_what_arms_do_not_give_is_unknown(results: Results, expression: str, why: str) -> None:
    found = of_series(results, expression, [10], [None])

    assert found.value is None
    assert found.why is not None
    assert why in found.why
