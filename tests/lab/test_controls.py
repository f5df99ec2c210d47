"""Controls: what may be one, where it is, and in how many recorded runs it was clean."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from lab.errors import BadInput
from lab.outcomes import run_and_judge
from lab.scenarios import predictions
from lab.scenarios.places import Place
from lab.scenarios.resolved import ResolvedScenario
from tests.lab.support import MINIMAL, Make
from tests.lab.test_series_arms import ARMS, COMPARED
from tests.tools.test_recording import line
from tools.recording import documents

ANOTHER = Place("another", Path("another"))


def with_control(*content: str, arms: bool = False) -> str:
    keys = "".join(f"  {one}\n" for one in content)
    return f"{MINIMAL}{COMPARED + ARMS if arms else ''}control:\n{keys}"


def cell(effective: ResolvedScenario, *recorded: tuple[list[str], list[str]]) -> str:
    """The control's cell, by the false and the unknown predictions of recorded runs."""
    taken = [line(effective, n, false=false, unknown=unknown) for n, (false, unknown) in enumerate(recorded, start=1)]
    return documents.document([effective], taken).splitlines()[-1].split("|")[6].strip()


# --- the repository's own scenarios --------------------------------------------------------------------------


def test_every_scenario_of_the_lab_names_its_control() -> None:
    assert [one.slug for one in run_and_judge.resolve_all() if one.scenario.control is None] == []


def test_every_control_is_in_a_scenario_that_says_what_is_clean() -> None:
    catalogue = {one.slug: one for one in run_and_judge.resolve_all()}
    for effective in catalogue.values():
        found = predictions.resolve_control(effective, catalogue)
        assert found is not None
        assert found[-1]


# --- what may be one -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            with_control("scenario: another", "clean: [served]"),
            "either another scenario, or predictions that are true without the fault",
        ),
        (
            with_control("scenario: another", "arm: an-arm"),
            "either another scenario, or predictions that are true without the fault",
        ),
        (with_control("arm: an-arm"), "either another scenario, or predictions that are true without the fault"),
        (with_control("arm: an-arm", "clean: [served]"), "the scenario has no arms"),
        (with_control("clean: [serve]"), "no prediction is named 'serve'.*did you mean 'served'"),
        (with_control("clean: [served]", arms=True), "one of keep-alive, no-keep-alive, proxied"),
        (with_control("arm: kept", "clean: [served]", arms=True), "one of keep-alive, no-keep-alive, proxied"),
        (with_control("arm: keep-alive", "clean: [faster]", arms=True), "'faster' is not about the runs of keep-alive"),
        (with_control("arm: keep-alive", "clean: [closed]", arms=True), "'closed' is not about the runs of keep-alive"),
    ],
)
def test_a_control_that_nothing_can_tell_is_refused_at_its_line(effective: Make, text: str, message: str) -> None:
    with pytest.raises(BadInput) as refused:
        effective(text=text)
    [problem] = refused.value.problems
    assert re.search(message, f"{problem.what}; {problem.hint}")
    assert re.search(r"scenario\.yaml:\d+$", str(problem.where))


def test_a_control_in_a_scenario_that_is_not_there_or_has_none_is_refused(effective: Make) -> None:
    one = effective(text=with_control("scenario: another"))
    line_of_name = MINIMAL.count("\n") + 2
    [missing] = predictions.missing_controls({"one": one})
    assert missing.what == "there is no scenario 'another'"
    assert str(missing.where).endswith(f":{line_of_name}")
    # A control of a control is none: it says nothing of its own.
    for other in (effective(), effective(text=with_control("scenario: one"))):
        [silent, *_] = predictions.missing_controls({"one": one, "another": replace(other, place=ANOTHER)})
        assert silent.what == "another does not say what is clean in it"
        assert str(silent.where).endswith(f":{line_of_name}")
    healthy = replace(effective(text=with_control("clean: [served]")), place=ANOTHER)
    assert list(predictions.missing_controls({"one": one, "another": healthy})) == []


# --- what the record says of it ------------------------------------------------------------------------------


def test_an_arm_is_clean_by_its_own_predictions_alone(effective: Make) -> None:
    one = effective(text=with_control("arm: keep-alive", "clean: [served]", arms=True))
    others = (["no-keep-alive/served", "keep-alive/other"], ["proxied/served", "faster"])
    assert cell(one, ([], []), others) == "keep-alive: clean in 2 of 2"
    assert cell(one, ([], []), (["keep-alive/served"], []), ([], ["keep-alive/served"])) == (
        "keep-alive: clean in 1 of 3, not in 1, unknown in 1"
    )


def test_a_healthy_scenario_is_its_own_control(effective: Make) -> None:
    one = effective(text=with_control("clean: [served]"))
    assert cell(one, ([], []), (["served"], [])) == "itself: clean in 1 of 2, not in 1"
    assert cell(one) == "itself: not recorded yet"
    assert cell(effective(), ([], [])) == ""


def test_the_control_of_another_scenario_is_judged_by_the_runs_of_that_one(effective: Make) -> None:
    one = effective(text=with_control("scenario: another"))
    other = replace(effective(text=with_control("arm: keep-alive", "clean: [served]", arms=True)), place=ANOTHER)
    taken = [line(one, 1, false=["served"]), line(other, 2), line(other, 3, unknown=["keep-alive/served"])]
    told = "[another](../scenarios/another/README.md), keep-alive: clean in 1 of 2, unknown in 1"
    assert f"| {told} |" in documents.document([one, other], taken)
