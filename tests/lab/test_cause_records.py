"""What causes name of the lab is there: the scenario of a lesson, and the knobs that may be turned."""

import pytest

from analysis.diagnosis.causes import CAUSES, Cause
from lab.paths import ROOT
from lab.roles.declared_roles import ROLES
from lab.scenarios.knobs import CATALOGUE
from tools import chart


@pytest.mark.parametrize("cause", [cause for cause in CAUSES if cause.lesson], ids=lambda cause: cause.name)
def test_the_lesson_of_a_cause_is_a_scenario_s(cause: Cause) -> None:
    assert (ROOT / "scenarios" / str(cause.lesson) / "README.md").is_file()


@pytest.mark.parametrize("cause", CAUSES, ids=lambda cause: cause.name)
def test_the_knobs_of_a_cause_are_the_load_s_or_those_that_a_role_declares(cause: Cause) -> None:
    """The kernel's knobs have the kernel's names."""
    for knob in (name for name in cause.knobs if not name.startswith("kernel.")):
        end, _, what = knob.partition(".")
        if end == "load":
            assert knob in CATALOGUE
        else:
            assert end in ("{client}", "{server}"), knob
            limits = [role.limits for role in ROLES.values()]
            limits += [other.limits for role in ROLES.values() if role.variants for other in role.variants.of.values()]
            assert any(getattr(one, what) for one in limits), knob


def test_the_map_is_current() -> None:
    current = (ROOT / "docs" / "map.md").read_text()
    assert current == chart.markdown(), "run: .venv/bin/python -m tools.chart > docs/map.md"
    assert all(f"`{cause.name}`" in current and cause.symptom in current for cause in CAUSES)


def test_every_default_that_the_map_corrects_is_in_its_ladder() -> None:
    assert {knob for knob in chart.OWN_DEFAULTS if f"| `{knob}` | " not in chart.markdown()} == set()
