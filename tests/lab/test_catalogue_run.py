"""The whole catalogue: it goes on after a failure, and ends with a table and the worst exit code."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from lab import paths
from lab.errors import BadInput, ExitCode, Interruption, LabError, Problem
from lab.outcomes import catalogue_run
from lab.outcomes.catalogue_run import ScenarioEnd
from lab.outcomes.run_and_judge import Outcome, summarize_outcome
from lab.runs.lock import machine_lock
from lab.scenarios.resolve import resolve
from lab.scenarios.resolved import ResolvedScenario
from lab.signals import Interrupted
from tests.lab.engine import InMemoryDocker
from tests.lab.outcome_support import run_outcome, series_outcome, verdict_of
from tests.lab.series_support import write
from tests.lab.support import IMAGES, MINIMAL, Make, Write, connlab
from tests.lab.test_series_arms import ARMS, COMPARED

Ending = Outcome | BaseException


@pytest.fixture
def catalogue(elsewhere: Path, write_scenario: Write) -> list[ResolvedScenario]:
    slugs = ("one", "two", "three")
    for slug in slugs:
        assert elsewhere in write_scenario(slug=slug).parents
    return [resolve(slug) for slug in slugs]


def run_all(
    catalogue: list[ResolvedScenario],
    monkeypatch: pytest.MonkeyPatch,
    endings: dict[str, Callable[[ResolvedScenario], Ending]],
) -> list[ScenarioEnd]:
    def of_scenario(effective: ResolvedScenario, *_: object, **__: object) -> Outcome:
        ending = endings[effective.slug](effective)
        if isinstance(ending, BaseException):
            raise ending
        return ending

    monkeypatch.setattr(catalogue_run, "run_scenario", of_scenario)
    quiet = Console(quiet=True)
    return catalogue_run.run_all(catalogue, ["connlab"], quiet, quiet, new=False)


def held(effective: ResolvedScenario) -> Outcome:
    return run_outcome(effective, verdict_of({"served": "true"}))


def test_one_that_fails_does_not_stop_the_rest(
    catalogue: list[ResolvedScenario], monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = BadInput(Problem("this kernel has no such sysctl", "scenario.yaml:3"))
    ended = run_all(
        catalogue,
        monkeypatch,
        {"one": lambda _: LabError("no engine answers"), "two": lambda _: refused, "three": held},
    )

    assert [(one.state, one.why) for one in ended] == [
        ("failed", "no engine answers"),
        ("refused", "scenario.yaml:3: this kernel has no such sysctl"),
        ("reproduced", None),
    ]
    assert catalogue_run.worst_code(ended) is ExitCode.LAB_FAILED


def test_failures_in_a_row_end_it_and_refusals_do_not(
    catalogue: list[ResolvedScenario], monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = BadInput(Problem("this kernel has no such sysctl"))
    endings = {slug: iter((refused, LabError("no engine answers"))) for slug in ("one", "two", "three")}
    every: dict[str, Callable[[ResolvedScenario], Ending]] = {
        slug: lambda one: next(endings[one.slug]) for slug in endings
    }
    ended = run_all([*catalogue, *catalogue, catalogue[0]], monkeypatch, every)
    assert [one.state for one in ended] == ["refused"] * 3 + ["failed"] * 3


def test_no_other_run_comes_between_two_scenarios(
    elsewhere: Path, write_scenario: Write, fake_docker: InMemoryDocker, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_docker.says("version *", "26.1.5")
    fake_docker.says("image ls *", IMAGES)
    fake_docker.says("compose * up *", stderr="broken", exit_code=1)
    write_scenario(MINIMAL + COMPARED + ARMS, slug="arms")
    write_scenario(slug="one")

    def derive(_: Path) -> dict[str, object]:
        with pytest.raises(LabError) as refused, machine_lock("another", elsewhere / "connlab.lock"):
            pass
        assert str(refused.value).startswith("the run of all scenarios: the ")
        derived.append("under the lock")
        return {}

    derived: list[str] = []
    monkeypatch.setattr("lab.runs.run_results.analyse_run", derive)
    monkeypatch.setattr("lab.runs.run_results.derive_series", derive)
    monkeypatch.setattr(catalogue_run, "summarize_outcome", lambda *_: None)
    monkeypatch.setattr(Outcome, "print", lambda *_: None)
    quiet = Console(quiet=True)
    ended = catalogue_run.run_all([resolve("arms"), resolve("one")], ["connlab"], quiet, quiet, new=False)

    assert ended[0].outcome is not None
    assert ended[0].outcome.series is not None
    for why in (ended[0].outcome.series.reason, ended[1].why):
        assert "docker compose" in str(why)
    # Each of the three runs of arms, their series, and the run after it.
    assert len(derived) == 5
    with machine_lock("another", elsewhere / "connlab.lock") as lock:
        assert lock.dead is None


def test_a_fault_of_the_analysis_is_one_scenario_s(
    catalogue: list[ResolvedScenario], monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = run_all(catalogue, monkeypatch, {"one": lambda _: ValueError("odd"), "two": held, "three": held})
    assert [one.why for one in ended] == ["ValueError: odd", None, None]


@pytest.mark.parametrize("interruption", [Interruption("the run was aborted: interrupted"), Interrupted("interrupted")])
def test_an_interruption_ends_it_and_what_was_run_is_reported(
    catalogue: list[ResolvedScenario], monkeypatch: pytest.MonkeyPatch, interruption: BaseException
) -> None:
    ended = run_all(catalogue, monkeypatch, {"one": held, "two": lambda _: interruption})
    assert [one.state for one in ended] == ["reproduced", "failed"]
    assert catalogue_run.worst_code(ended) is ExitCode.LAB_FAILED


@pytest.mark.parametrize(
    ("codes", "worst"),
    [
        ([0, 0], 0),
        ([0, 3], 3),
        ([3, 1, 0], 1),
        ([1, 2, 3], 2),
        ([2, 4, 1], 4),
        ([], 0),
    ],
)
def test_the_exit_code_is_the_worst(codes: list[int], worst: int) -> None:
    assert catalogue_run.worst_code(ScenarioEnd("one", ExitCode(code), 1.0) for code in codes) == worst


def test_the_table_says_what_was_not_true(
    catalogue: list[ResolvedScenario], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def mixed(effective: ResolvedScenario) -> Outcome:
        return run_outcome(effective, verdict_of({"served": "false", "queue": "unknown", "drops": "true"}))

    ended = run_all(catalogue, monkeypatch, {"one": held, "two": mixed, "three": lambda _: LabError("no engine")})
    catalogue_run.print_summary(Console(width=160), ended)
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line.strip()}
    assert "reproduced" in lines["one"]
    assert "served false, queue unknown" in lines["two"]
    assert "failed" in lines["three"]
    assert "no engine" in lines["three"]
    assert json.loads(json.dumps([one.as_json() for one in ended]))[1]["false"] == ["served"]


def test_of_a_series_the_runs_are_counted_together(elsewhere: Path) -> None:
    write(elsewhere, scenario=MINIMAL + COMPARED + ARMS)
    of_runs = {
        "keep-alive": verdict_of({"served": "true"}),
        "no-keep-alive": verdict_of({"served": "true", "closed": "unknown"}, unexplained=2),
        "proxied": verdict_of({"served": "false"}),
    }
    one = resolve("one")
    found = summarize_outcome(series_outcome(one, verdict_of({"faster": "unknown"}), of_runs), one)
    assert found.false == ["proxied/served"]
    assert found.unknown == ["faster", "no-keep-alive/closed"]
    assert found.unexplained == 6
    assert found.identities == {"true": 108, "false": 0, "unknown": 9}


def test_what_the_ledger_does_not_know_is_not_zero(effective: Make, elsewhere: Path) -> None:
    assert elsewhere.is_dir()
    outcome = run_outcome(effective(), verdict_of({"served": "true"}, unexplained=None))
    assert summarize_outcome(outcome, effective()).unexplained is None


@pytest.mark.parametrize("option", ["--set=load.users=2", "--preset=published", "--dry-run", "--profile"])
def test_what_belongs_to_one_scenario_is_refused(capsys: pytest.CaptureFixture[str], option: str) -> None:
    assert connlab("run", option, "all") == ExitCode.BAD_INPUT
    assert "need one scenario, not 'all'" in capsys.readouterr().err


def test_every_scenario_is_checked_before_the_first_begins(
    catalogue: list[ResolvedScenario], capsys: pytest.CaptureFixture[str]
) -> None:
    (paths.SCENARIOS / "two" / "scenario.yaml").write_text(MINIMAL.replace("users: 3", "users: many"))
    (paths.SCENARIOS / catalogue[2].slug / "scenario.yaml").write_text("schema: 1\n")
    assert connlab("run", "all") == ExitCode.BAD_INPUT
    told = capsys.readouterr().err
    assert "load.users takes a whole number" in told
    assert "'predictions' is missing" in told


def test_the_catalogue_as_it_stands_passes_the_check(capsys: pytest.CaptureFixture[str]) -> None:
    assert connlab("run", "--check", "all") == 0
    assert "accept-queue-overflow: valid\n" in capsys.readouterr().out
