"""The advice on a run: read from its folder; analysis.report.advice computes it."""

from __future__ import annotations

import json
from pathlib import Path

from analysis.report import advice
from analysis.report.advice import Advice
from lab import paths
from lab.errors import BadInput, Problem
from lab.ledger import LEDGER_FILE
from lab.manifest import FILE


def of_run(folder: Path) -> Advice:
    """Give the advice for a run.

    Raises:
        BadInput: the run has no ledger, or its records cannot be read.
    """
    try:
        manifest = json.loads((folder / FILE).read_bytes())
        ledger = json.loads((folder / LEDGER_FILE).read_bytes())
    except (OSError, ValueError):
        what = f"{paths.shown(folder)} has no ledger that can be read"
        raise BadInput(Problem(what, way_on="derive it: 'connlab analyse' (make analyse RUN=…)")) from None
    if ledger["requests"] is None:
        what = f"the ledger of {paths.shown(folder)} is empty: {'; '.join(ledger['lacks'])}"
        raise BadInput(Problem(what, way_on="advise on a run that came to its end"))
    return advice.of_ledger(manifest, ledger)
