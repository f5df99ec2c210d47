"""What speaks for a series, and what against it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis.compare import compare_series, data_quality
from analysis.compare.comparison_file import TrustEntry
from tests.analysis.results import Results
from tests.analysis.support import make_manifest

MEAN = "client.latency_ms.mean"
CLAIM = {"kept": f"arms.kept.{MEAN} <= arms.closed.{MEAN}"}


def trusted(tmp_path: Path, kept: list[float], closed: list[float], **more: Any) -> TrustEntry:  # noqa: ANN401
    arms = {
        arm: [{"figures": {MEAN: value}} for value in values] for arm, values in (("closed", closed), ("kept", kept))
    }
    folder = Results(tmp_path / "results").series(arms, CLAIM, **more)
    # In blocks, as a series is run: each repetition of all cells, then the next.
    content = json.loads((folder / "series.json").read_text())
    content["runs"].sort(key=lambda place: place["repetition"])
    (folder / "series.json").write_text(json.dumps(content))
    found = compare_series(folder)[0].trust
    assert found is not None
    return found


def said(found: TrustEntry, word: str) -> str:
    (sentence,) = [each for each in found.says if word in each]
    return sentence


def test_runs_that_lie_about_their_mean_have_no_drift(tmp_path: Path) -> None:
    found = trusted(tmp_path, [1.0, 1.2, 1.1, 0.9], [2.1, 1.9, 2.2, 2.0])
    assert said(found, "drift").startswith("No drift")
    assert said(found, "planned") == "All 8 runs that were planned count."
    assert said(found, "Noise").startswith(
        f"Noise: two groups of repetitions of the same cell differ in {MEAN} by up to "
    )
    assert len(found.order) == 8


@pytest.mark.parametrize(("step", "way"), [(0.1, "rose"), (-0.1, "fell")])
def test_a_machine_that_changes_meanwhile_is_a_drift_in_every_cell(tmp_path: Path, step: float, way: str) -> None:
    kept, closed = ([mean + step * number for number in range(6)] for mean in (3.0, 9.0))
    found = trusted(tmp_path, kept, closed)
    assert f"{MEAN} {way} while the series ran" in said(found, "Drift")
    assert "the first half of the runs is at " + ("-" if step > 0 else "+") in said(found, "Drift")


@pytest.mark.parametrize("values", [[1.0, 1.1], [1.0, 1.0, 1.0, 1.0]])
def test_of_few_runs_or_of_equal_ones_no_drift_is_told(tmp_path: Path, values: list[float]) -> None:
    assert said(trusted(tmp_path, values, values), "Drift").startswith("Drift is unknown")


def test_what_a_manifest_does_not_say_of_the_machine_is_unknown(tmp_path: Path) -> None:
    host = {"kernel": "6.12.0", "cpus": None, "memory_kb": None}
    folder = Results(tmp_path / "results").series({"kept": [{"host": host}], "closed": [{"host": host}]}, CLAIM)
    found = compare_series(folder)[0].trust
    assert found is not None
    assert said(found, "Machine") == "Machine: unknown processors, unknown memory, kernel 6.12.0, unknown distribution."


def test_the_machine_and_the_command_are_named(tmp_path: Path) -> None:
    found = trusted(tmp_path, [1.0], [2.0], command=["connlab", "run", "a b"])
    assert make_manifest()["host"]["kernel"] in said(found, "Machine")
    assert found.again == "./connlab run 'a b' --new"


@pytest.mark.parametrize(
    ("command", "more"),
    [
        (["run", "keep-alive", "--new"], "./connlab run keep-alive --repetitions 8"),
        (["run", "./own/keep-alive"], "./connlab run ./own/keep-alive --repetitions 8"),
        # These do not make this series alone.
        (["run", "all"], None),
        (["lesson", "keep-alive"], None),
    ],
)
def test_the_command_that_adds_repetitions_is_named(tmp_path: Path, command: list[str], more: str | None) -> None:
    values = [1.0, 1.2, 1.1, 0.9]
    assert trusted(tmp_path, values, values, command=["connlab", *command], name="keep-alive").more == more


def test_as_many_repetitions_are_asked_for_as_it_takes_to_tell(tmp_path: Path) -> None:
    found = trusted(
        tmp_path,
        [1.0, 1.8, 0.2, 1.0],
        [1.2, 2.0, 0.5, 1.1],
        command=["connlab", "run", "keep-alive"],
        name="keep-alive",
    )
    assert found.more is not None
    assert int(found.more.rpartition(" ")[2]) > 8


def test_a_random_order_is_a_drift_as_often_as_it_says() -> None:
    rng = np.random.default_rng(1)
    drifts = sum(data_quality.rank_correlation(rng.normal(size=8))[1] <= 0.05 for _ in range(200))
    assert drifts <= 24
    strength, chance = data_quality.rank_correlation(np.arange(8.0))
    assert strength == pytest.approx(1.0)
    assert chance < 0.01
