"""`--profile`: how long each step of a run took, in its manifest and at the end of its command."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from rich.console import Console

from analysis.reports import run_report
from analysis.steps import Steps
from formats import manifest
from formats.manifest import Manifest
from lab import paths
from lab.cli import main
from lab.errors import LabError
from lab.runs import run_results
from lab.runs.run import run
from lab.series import arms, executor
from tests.lab.engine import InMemoryEngine
from tests.lab.support import MINIMAL, Make, Write, the_run, yaml_with
from tests.lab.test_series_arms import ARMS, COMPARED

QUIET = Console(quiet=True)
TEXT = MINIMAL + "drain: 100ms\nwarmup: {requests: 2}\n"
AROUND = ["check", "clear up", "open"]
PHASES = ["prepare", "warmup", "measure", "drain"]

Go = Callable[..., Path]


@pytest.fixture
def go(effective: Make, elsewhere: Path) -> Go:
    """Take a scenario through a run on an engine in memory, and give its folder."""
    assert elsewhere.is_dir()

    def take(profile: Steps | None, engine: InMemoryEngine | None = None) -> Path:
        return run(effective(text=TEXT), engine or InMemoryEngine(), ["connlab"], QUIET, profile=profile)

    return take


def outermost(profile: Mapping[str, float] | None) -> list[str]:
    return [name for name in profile or {} if "/" not in name]


def within(profile: Mapping[str, float], of: str) -> list[str]:
    return [name.removeprefix(f"{of}/") for name in profile if name.startswith(f"{of}/")]


def test_a_run_says_how_long_each_of_its_steps_took(go: Go) -> None:
    began = time.monotonic()
    told = manifest.load_manifest(go(Steps()))
    took_ms = (time.monotonic() - began) * 1000

    profile = told.profile or {}
    assert outermost(profile) == [*AROUND, *PHASES[:2], "samples", *PHASES[2:], "close"]
    assert within(profile, "prepare") == ["images", "start", "read back", "start line"]
    assert within(profile, "close") == ["stop", "logs", "seal", "remove"]
    # Each is rounded to a tenth.
    for of in ("prepare", "close"):
        assert sum(profile[f"{of}/{name}"] for name in within(profile, of)) <= profile[of] + 0.5
    assert sum(profile[name] for name in outermost(profile)) <= took_ms + 0.5
    assert profile["drain"] >= 100


def test_a_run_that_nobody_profiles_says_nothing_of_its_steps(go: Go) -> None:
    folder = go(None)
    run_results.analyse_run(folder)
    assert manifest.load_manifest(folder).profile is None
    assert "Where the time of the run went" not in (folder / run_report.FILE).read_text()


def test_the_first_analysis_adds_its_steps_and_a_later_one_changes_nothing(go: Go) -> None:
    folder = go(Steps())
    before = manifest.load_manifest(folder)
    run_results.analyse_run(folder)
    after = manifest.load_manifest(folder)

    profile = after.profile or {}
    assert outermost(profile) == [*outermost(before.profile), "analysis", "report"]
    assert within(profile, "analysis")[-1] == "figures"
    assert after.model_copy(update={"profile": before.profile}) == before
    page = (folder / run_report.FILE).read_text()
    assert "Where the time of the run went" in page
    assert f'<td class="number">{profile["analysis"]:,.0f}</td>' in page

    run_results.analyse_run(folder)
    assert manifest.load_manifest(folder) == after


def test_a_run_that_breaks_off_says_what_its_steps_took_until_then(go: Go, elsewhere: Path) -> None:
    with pytest.raises(LabError):
        go(Steps(), InMemoryEngine(fails="start"))
    told = the_run(elsewhere)
    assert told.status == "aborted"
    assert outermost(told.profile) == [*AROUND, "prepare", "analysis", "report"]
    assert within(told.profile or {}, "prepare") == ["images", "start"]


@pytest.mark.parametrize("profile", [True, False])
def test_each_run_of_a_series_has_steps_of_its_own(
    effective: Make, elsewhere: Path, monkeypatch: pytest.MonkeyPatch, *, profile: bool
) -> None:
    monkeypatch.setattr("lab.runs.run_results.write_report", lambda _: None)
    of_arms = yaml_with(
        ARMS, {"[k6, nginx, backend]": "[k6, gateway, backend]", "      nginx.keepalive_timeout: 5s\n": ""}
    )
    text = MINIMAL + COMPARED + of_arms + "drain: 0s\n"
    plan = arms.plan_arms(effective(text=text), ())
    executor.run_plan(plan, InMemoryEngine(), ["connlab"], QUIET, new=False, profile=profile)

    told = [manifest.load_manifest(file.parent) for file in elsewhere.glob("results/one/2*/manifest.json")]
    assert len(told) > 1
    for one in told:
        assert outermost(one.profile)[:2] == (["open", "prepare"] if profile else [])
        assert outermost(one.profile)[-2:] == (["analysis", "report"] if profile else [])


# --- the command ------------------------------------------------------------------------------------------------


Connlab = Callable[..., tuple[Manifest, list[str]]]


@pytest.fixture
def connlab(
    elsewhere: Path, write_scenario: Write, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Connlab:
    """Run the scenario by the command line; give its manifest, and the lines that were printed."""
    monkeypatch.setattr("lab.outcomes.run_and_judge.selected_engine", InMemoryEngine)
    monkeypatch.setattr(paths, "SCENARIOS", write_scenario(TEXT))

    def take(*options: str, make_ready: Callable[[], None] | None = None) -> tuple[Manifest, list[str]]:
        with pytest.raises(SystemExit):
            main(["run", "one", *options], make_ready=make_ready)
        return the_run(elsewhere), capsys.readouterr().out.splitlines()

    return take


def test_the_command_prints_each_step_and_what_of_it_was_the_load(connlab: Connlab) -> None:
    told, said = connlab("--profile")
    profile = told.profile or {}
    assert outermost(profile)[0] == "resolve"
    cells = [line.split() for line in said]
    for name, ms in profile.items():
        assert [*name.rpartition("/")[2].split(), f"{ms:,.0f}"] in cells, name
    assert any(line.startswith("   start line ") for line in said), said
    (whole,) = [line for line in said if line.startswith("all of it ")]
    assert ", of which the load and its drain " in whole


def test_the_command_says_nothing_of_steps_where_nobody_asks(connlab: Connlab) -> None:
    _, said = connlab()
    assert not [line for line in said if line.startswith(("step", "all of it"))]


def test_the_check_and_the_set_up_are_the_first_step(connlab: Connlab) -> None:
    told, _ = connlab("--profile", make_ready=lambda: None)
    assert outermost(told.profile)[:2] == ["set-up", "resolve"]
