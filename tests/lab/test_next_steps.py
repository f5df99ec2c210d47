"""Each command ends with the next step that makes sense, and a search says what else its value brings."""

import json
import re
import shutil
from pathlib import Path

import pytest

from formats.series import SCHEMA, Budget, PlannedRun, Series, Stop
from lab import paths
from lab.console import next_steps, run_output
from lab.runs.run_folders import tries_out
from lab.scenarios.places import Place
from lab.scenarios.resolve import resolve
from lab.series import searches
from tests.lab.series_support import fingerprint
from tests.lab.support import connlab

EXAMPLE = paths.ROOT / "docs" / "example"


def last_line(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert connlab(*arguments) == 0
    return capsys.readouterr().out.rstrip().splitlines()[-1]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["list"], "make lesson SCENARIO=accept-queue-turns"),
        (["matrix"], "make matrix MATRIX=[a-z-]+ DRY=1"),
        (["show", "one-port", "--set=load.users=9"], 'make lesson SCENARIO=one-port SET="load.users=9"'),
        (["explain", "docs/example", "--top=1"], "make advise RUN=docs/example"),
        (["advise", "docs/example"], 'make run SCENARIO=accept-queue-overflow SET="backend.max_connections=103"'),
        (["estimate", "--overflows=48,211", "--connect-timeout=5s"], "make observe CONTAINER=<name> DURATION=60s"),
        (["estimate", "--run=docs/example"], "make explain RUN=docs/example TOP=1"),
    ],
)  # fmt: skip
def test_it_is_the_last_line(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(paths.ROOT)
    assert re.search(f": {says}$", last_line(capsys, *arguments))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["list"], "make -C {root} lesson SCENARIO=accept-queue-turns"),
        (["show", "{shop}"], "make -C {root} lesson SCENARIO={shop}"),
        (["explain", "example", "--top=1"], "make -C {root} advise RUN=docs/example"),
        (["advise", "example"], 'make -C {root} run SCENARIO=accept-queue-overflow SET="backend.max_connections=103"'),
        (
            ["estimate", "--overflows=48,211", "--connect-timeout=5s"],
            "make -C {root} observe CONTAINER=<name> DURATION=60s",
        ),
        (["estimate", "--run=./example"], "make -C {root} explain RUN=docs/example TOP=1"),
    ],
)  # fmt: skip
def test_it_works_where_the_user_stands(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(paths.ROOT / "docs")
    places = {"root": paths.ROOT, "shop": paths.ROOT / "examples" / "shop" / "lab"}
    told = last_line(capsys, *(each.format(**places) for each in arguments))
    assert told.endswith(f": {says.format(**places)}")


def test_a_program_is_not_told(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(paths.ROOT)
    connlab("advise", "docs/example", "--json")
    assert json.loads(capsys.readouterr().out)["knob"] == "backend.max_connections"


def test_a_lesson_ends_with_its_explanation(tmp_path: Path) -> None:
    told = next_steps.after_lesson(resolve("accept-queue-overflow").place)
    assert told is not None
    assert "scenarios/accept-queue-overflow/README.md#explanation" in told
    assert next_steps.after_lesson(Place("mine", tmp_path, own=False)) is None


@pytest.mark.parametrize(
    ("series", "tries"),
    [
        (None, False),
        ("20261121T141444Z-arms-accept-queue-turns", False),
        ("20261121T141444Z-search-accept-queue-turns", True),
        ("20261121T141444Z-matrix-burst-places", True),
    ],
)
def test_only_the_scenario_itself_and_its_arms_move_latest(series: str | None, tries: bool) -> None:  # noqa: FBT001 # a case
    assert tries_out(series) is tries


def test_a_search_says_who_waits_at_the_value_that_it_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "RESULTS", tmp_path)
    asked = searches.Asked("accept-queue-overflow", "backend.max_connections", "client.requests.failed == 0")
    planned = searches.plan_search(asked)
    assert planned.plan.search is not None
    search = planned.plan.search.model_copy(update={"outcome": "found", "found": 202})
    cell = next(one.cell for one in planned.plan.cells.values() if one.cell.knobs["backend.max_connections"] == 202)
    series = _series(
        planned.plan, search, [cell], [PlannedRun(cell=cell.cell, repetition=1, status="complete", run="one/r")]
    )
    _found_there(tmp_path / "one" / "r")

    assert list(run_output.search_summary(search, series)) == [
        "with 202: 0 requests failed, 2 requests were slow (2 waited-in-accept-queue); the longest answer took 22 s",
        "slow is no failure; 'connlab advise' on a run that failed names the value with which nobody waits",
    ]
    assert next_steps.after_search(planned.plan, search) == (
        'next, a run with it: make run SCENARIO=accept-queue-overflow SET="backend.max_connections=202"'
    )


def _series(plan, search, cells, runs) -> Series:  # type: ignore[no-untyped-def]  # noqa: ANN001
    return Series(
        contract=SCHEMA, status="complete",
        series="20261121T141444Z-search-x", kind="search", name=plan.name, title=plan.title, question=plan.question,
        scenarios=plan.scenarios, overrides=[], request={}, command=[], started="2026-11-21T14:14:44Z", seed=1,
        repetitions=1, cooldown_ms=0, stop=Stop(failed_in_a_row=3), budget=Budget(cells=1, duration_ms=1),
        axes=list(plan.axes), baseline=None, cells=cells, runs=runs, search=search, fingerprint=fingerprint(plan),
    )  # fmt: skip


def _found_there(folder: Path) -> None:
    """The recorded run, as if nobody had failed in it."""
    shutil.copytree(EXAMPLE / "derived", folder / "derived")
    for name, changes in {
        "ledger.json": {
            "requests": {"total": 103, "ok": 103, "failed": 0, "slow": 2},
            "causes": {"waited-in-accept-queue": 2},
        },
        "figures.json": {"figures": {"client.latency_ms.max": 22_000}},
    }.items():
        file = folder / "derived" / name
        file.write_text(json.dumps(json.loads(file.read_text()) | changes))
