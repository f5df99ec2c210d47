"""What causes name of the lab is there: the scenario of a lesson, and the knobs that may be turned."""

from __future__ import annotations

import pytest

from analysis.causes import CAUSES, Cause
from lab.paths import ROOT
from lab.scenario.catalogue import CATALOGUE


@pytest.mark.parametrize("cause", [cause for cause in CAUSES if cause.lesson], ids=lambda cause: cause.name)
def test_the_lesson_of_a_cause_is_a_scenario_s(cause: Cause) -> None:
    assert (ROOT / "scenarios" / str(cause.lesson) / "README.md").is_file()


@pytest.mark.parametrize("cause", CAUSES, ids=lambda cause: cause.name)
def test_the_knobs_of_a_cause_are_in_the_catalogue(cause: Cause) -> None:
    """A proxy is the client on one hop and the server on the other; the kernel's knobs have the kernel's names."""
    for knob in (name for name in cause.knobs if not name.startswith("kernel.")):
        ends = ((first, second) for first in ("k6", "nginx", "gateway") for second in ("nginx", "gateway", "backend"))
        assert any(knob.format(client=client, server=server) in CATALOGUE for client, server in ends), knob
