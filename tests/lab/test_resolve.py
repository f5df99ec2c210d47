"""Title, question and predictions follow the settings; a name that settings cannot fill is refused with its line."""

import pytest

from lab.errors import BadInput
from lab.scenarios.resolve import fill_templates, resolve
from lab.scenarios.resolved import ResolvedScenario
from tests.lab.support import MINIMAL, Make


def titled(effective: Make, title: str, *overrides: str) -> ResolvedScenario:
    return fill_templates(effective(*overrides, text=MINIMAL.replace("title: A title", f"title: '{title}'")))


@pytest.mark.parametrize(
    ("title", "says"),
    [
        ("{load.users} users", "3 users"),
        ("{load.users * 1000 + 1} users", "3,001 users"),
        ("{ load.users + 1 } users", "4 users"),
        ("they give up after {load.connect_timeout}", "they give up after 1.5 s"),
        ("{load.workload}, kept: {load.keep_alive}", "users, kept: true"),
        ("{model.accept_capacity} places", "8,194 places"),
        (
            "{count(model.response_ms.list)} answers, the last after {max(model.response_ms.list)} ms",
            "3 answers, the last after 0 ms",
        ),
        ("GET /orders/{{id}}", "GET /orders/{id}"),
        ("no braces", "no braces"),
    ],
)
def test_a_text_follows_the_settings(effective: Make, title: str, says: str) -> None:
    assert titled(effective, title, "load.connect_timeout=1500ms").scenario.title == says


def test_what_the_model_does_not_know_is_a_question_mark(effective: Make) -> None:
    filled = titled(effective, "{model.users_failed} of {load.users} fail", "load.keep_alive=false")
    assert filled.scenario.title == "? of 3 fail"


@pytest.mark.parametrize(
    ("title", "why"),
    [
        ("{load.user} users", "title: {load.user}: column 1: "),
        ("{client.requests.ok} answers", "client.requests.ok is measured; only knobs and model are known before a run"),
        ("{} users", "the expression is empty"),
        ("{load.users users", "title: {: this brace has no partner"),
        ("load.users} users", "title: }: this brace has no partner"),
        ("{load.users == 3}", "title: {load.users == 3}: "),
    ],
)
def test_what_settings_cannot_fill_is_refused_with_its_line(effective: Make, title: str, why: str) -> None:
    with pytest.raises(BadInput) as refused:
        effective(text=MINIMAL.replace("title: A title", f"title: '{title}'"))
    assert "scenario.yaml:2: " in str(refused.value)
    assert why in str(refused.value)


def test_a_scenario_with_a_wrong_name_in_a_prediction_is_refused(effective: Make) -> None:
    with pytest.raises(BadInput, match=r"scenario.yaml:14: prediction 'served': \{load.userz\}"):
        effective(text=MINIMAL.replace("description: All", "description: All {load.userz}"))


def test_the_lab_s_own_titles_follow_what_the_user_sets() -> None:
    set_ = resolve("accept-queue-overflow", ["backend.max_connections=2", "backend.accept_count=3", "load.users=9"])
    assert set_.scenario.title == "A full accept queue: 9 users, 6 places"
    assert "9 users come 10 ms apart and wait 30 s" in " ".join(set_.scenario.question.split())
