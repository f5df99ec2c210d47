"""What stands beside a published experiment: checked before a run, kept in its records."""

from pathlib import Path

import pytest

from lab.errors import BadInput
from lab.scenarios.resolve import resolve
from lab.series import arms
from tests.lab.series_support import FakeRunner, executor, write
from tests.lab.support import MINIMAL, Make
from tests.lab.test_series_arms import ARMS

PUBLISHED = """\
published:
  description: 3 succeed
  here:
    served: client.requests.ok
"""
OF_ARMS = PUBLISHED.replace("client.requests.ok", "arms.keep_alive.client.requests.ok")


def refused(make: Make, here: str) -> str:
    with pytest.raises(BadInput) as error:
        make(text=MINIMAL + PUBLISHED.replace("client.requests.ok", here))
    return str(error.value)


def test_a_run_takes_it_along(effective: Make) -> None:
    found = effective(text=MINIMAL + PUBLISHED)
    assert found.published is not None
    assert found.published.here == {"served": "client.requests.ok"}
    assert effective().published is None


@pytest.mark.parametrize(
    ("here", "message"),
    [
        ("client.requests.okay", "did you mean client.requests.ok?"),
        ("client.latency_ms.list", "a number is wanted; this is a list"),
        ("client.requests.ok == 3", "a number is wanted; this is a truth value"),
        ("1 + 2", "names no figure"),
        ("arms.one.client.requests.ok", "arms"),
    ],
)
def test_a_wrong_figure_is_refused_with_its_line(effective: Make, here: str, message: str) -> None:
    told = refused(effective, here)
    assert "scenario.yaml:19: published.here 'served'" in told
    assert message in told


def test_an_empty_one_is_refused(effective: Make) -> None:
    with pytest.raises(BadInput, match=r"published\.here is empty"):
        effective(text=MINIMAL + "published:\n  here: {}\n")


def test_of_arms_the_series_takes_it_and_no_run(elsewhere: Path) -> None:
    write(elsewhere, scenario=MINIMAL + ARMS + OF_ARMS)
    made = executor(arms.plan_arms(resolve("one"), ()), FakeRunner())
    assert made.series.published is not None
    assert [one.published for one in made.cells.values()] == [None, None, None]


@pytest.mark.parametrize(
    ("here", "message"),
    [
        ("client.requests.ok", "of which arm? Write arms.<arm>.client.requests.ok"),
        ("arms.keep_aliv.client.requests.ok", "did you mean keep_alive?"),
        ("arms.keep_alive.client.requests.ok > 1", "a number is wanted; this is a truth value"),
        ("2 * 3", "names no figure"),
    ],
)
def test_a_wrong_figure_of_arms_is_refused_with_its_line(tmp_path: Path, here: str, message: str) -> None:
    text = MINIMAL + ARMS + PUBLISHED.replace("client.requests.ok", here)
    write(tmp_path, scenario=text)
    line = text.splitlines().index(f"    served: {here}") + 1
    with pytest.raises(BadInput) as error:
        arms.plan_arms(resolve("one"), ())
    assert f"scenario.yaml:{line}: published.here 'served'" in str(error.value)
    assert message in str(error.value)


@pytest.mark.parametrize(
    "about", ["arms: [one]\n    expression: load.users == 1", "expression: arms.one.load.users == 1"]
)
def test_without_arms_nothing_can_be_said_about_one(effective: Make, about: str) -> None:
    with pytest.raises(BadInput, match=r"scenario\.yaml:16: prediction 'x' is about arms, and the scenario has none"):
        effective(text=f"{MINIMAL}  - id: x\n    description: So.\n    {about}\n")


def test_a_published_number_belongs_to_a_figure_beside_it(effective: Make) -> None:
    published = "published:\n  here: {served: client.requests.ok}\n  there: {%s: 3}\n"
    found = effective(text=MINIMAL + published % "served")
    assert found.published is not None
    assert found.published.there == {"served": 3}
    with pytest.raises(BadInput) as refused:
        effective(text=MINIMAL + published % "failed")
    told = str(refused.value)
    assert "scenario.yaml:" in told
    assert "published.there names 'failed', and published.here does not" in told
