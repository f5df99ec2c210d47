"""The lab's own scenarios, as far as they can be judged without running them."""

import pytest

from analysis.expressions import parse
from lab.experiments import outcome
from lab.results import listing
from lab.scenario import foreseen
from lab.scenario.places import slugs
from lab.scenario.resolve import resolve
from lab.series import arms


@pytest.mark.parametrize("slug", slugs())
def test_a_scenario_resolves_with_its_arms_and_names_figures_that_they_have(slug: str) -> None:
    assert outcome.planned(slug).scenario.predictions


@pytest.mark.parametrize("slug", slugs())
def test_each_of_its_presets_resolves(slug: str) -> None:
    for preset in resolve(slug).scenario.presets:
        resolved = resolve(slug, preset=preset)
        assert not resolved.scenario.arms or arms.plan(resolved, []).cells


@pytest.mark.parametrize("slug", slugs())
def test_each_of_its_predictions_applies_to_settings_of_its_own(slug: str) -> None:
    base = resolve(slug)
    cells = [one.effective for one in arms.plan(base, []).cells.values()] if base.scenario.arms else [base]
    applies: dict[str, bool] = {}
    for cell in cells:
        for prediction in (stated.prediction for stated in cell.predictions):
            condition = parse(prediction.when) if prediction.when else None
            known = foreseen.known_before_run(cell, condition.names) if condition else {}
            held = condition is None or condition.evaluate(known.__getitem__) is True
            applies[prediction.id] = held or applies.get(prediction.id, False)
    assert [name for name, once in applies.items() if not once] == []


def test_the_overflow_s_figures_are_those_of_the_published_experiment() -> None:
    known = foreseen.known_before_run(
        resolve("accept-queue-overflow"),
        ("model.users_served", "model.users_failed", "model.syns_per_failed_dial", "model.listen_drops"),
    )
    assert list(known.values()) == [3, 100, 5, 500]


def test_the_overflow_s_predictions_follow_overrides() -> None:
    overrides = ["backend.max_connections=2", "backend.accept_count=3", "load.users=9"]
    known = foreseen.known_before_run(
        resolve("accept-queue-overflow", overrides), ("model.users_served", "model.users_failed", "model.listen_drops")
    )
    assert list(known.values()) == [6, 3, 15]


def test_the_four_users_wait_for_one_another() -> None:
    known = foreseen.known_before_run(
        resolve("accept-queue-four-users"), ("model.response_ms.list", "model.users_failed")
    )
    assert known == {"model.response_ms.list": [1000, 21_800, 42_600], "model.users_failed": 1}


@pytest.mark.parametrize("slug", slugs())
def test_the_load_s_length_is_estimated(slug: str) -> None:
    least_s = foreseen.least_s(resolve(slug))
    assert 0 < least_s < 300
    assert foreseen.expected_s(resolve(slug)) in (None, least_s)


def test_where_the_model_is_silent_no_length_is_promised() -> None:
    assert foreseen.expected_s(resolve("accept-queue-healthy")) == 2.02
    for slug in ("connection-per-request", "spike-through-nginx", "one-port", "slow-clients", "syn-queue"):
        assert foreseen.expected_s(resolve(slug)) is None
        assert listing.summary(resolve(slug))["load_s"] is None


def test_what_the_files_of_a_run_tell_is_not_known_before_it() -> None:
    names = ("model.failed_dials_syns.min", "model.failed_dials_syns.max", "model.syns_per_failed_dial")
    assert foreseen.known_before_run(resolve("accept-queue-overflow"), names) == {"model.syns_per_failed_dial": 5}
