"""What a run, or a series of arms, leaves behind, as far as its short account and its record read it."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from analysis.verdicts.verdict_file import Verdict
from formats import manifest
from formats.manifest import Git
from lab import paths
from lab.outcomes.run_and_judge import Outcome
from lab.scenarios.resolved import ResolvedScenario
from lab.series import arms
from tests.lab.series_support import FakeRunner, executor
from tests.lab.support import manifest_of


def verdict_of(statuses: Mapping[str, str], *, unexplained: int | None = 0, **more: Any) -> dict[str, Any]:  # noqa: ANN401 # JSON
    """A verdict with predictions by id and status."""
    found = "not-reproduced" if "false" in statuses.values() else "reproduced"
    return {
        "schema": "connlab.verdict/1",
        "run": "one",
        "verdict": "inconclusive" if "unknown" in statuses.values() else found,
        "predictions": [
            {"id": name, "description": "So.", "expression": "1 == 1", "status": status, "measured": {}, "why": None}
            for name, status in statuses.items()
        ],
        "published": None,
        "ledger": {"unexplained": unexplained, "causes": {}, "identities": {"true": 12, "false": 0, "unknown": 1}},
        "health": {},
        "problems": [],
    } | more


def write_verdict(folder: Path, verdict: Mapping[str, Any]) -> Mapping[str, Any]:
    (folder / Verdict.file).parent.mkdir(parents=True, exist_ok=True)
    (folder / Verdict.file).write_text(json.dumps(verdict))
    return verdict


def run_outcome(effective: ResolvedScenario, verdict: Mapping[str, Any], number: int = 1) -> Outcome:
    """A run that is over."""
    folder = paths.RESULTS / effective.slug / f"20261121T0800{number:02}Z-default-r01"
    folder.mkdir(parents=True)
    started = f"2026-11-21T08:00:{number:02}Z"
    whole = manifest_of(effective, folder.name, started=started, git=Git(commit="c" * 40, dirty=False))
    whole.finish("complete")
    whole.save(folder)
    assert (folder / manifest.FILE).is_file()
    return Outcome(folder, write_verdict(folder, {"scenario": effective.slug, **verdict}))


def series_outcome(
    base: ResolvedScenario, verdict: Mapping[str, Any], of_runs: Mapping[str, Mapping[str, Any]]
) -> Outcome:
    """A series of arms that is over; the verdicts of its runs by arm."""
    made = executor(arms.plan_arms(base, ()), FakeRunner())
    made.go(made.series.runs)
    for place in made.series.runs:
        write_verdict(paths.RESULTS / str(place.run), {"scenario": base.slug, **of_runs[place.cell]})
    return Outcome(made.folder, write_verdict(made.folder, verdict), made.series)
