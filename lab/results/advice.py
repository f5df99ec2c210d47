"""The advice on a run: read from its folder; analysis.reports.advice computes it."""

from __future__ import annotations

from pathlib import Path

from analysis.reports import advice, run_record
from analysis.reports.advice import Advice
from analysis.reports.run_report import ReportError
from lab import paths
from lab.errors import BadInput, Problem


def of_run(folder: Path) -> Advice:
    """Give the advice for a run.

    Raises:
        BadInput: the run was not analysed, or its records cannot be read.
    """
    try:
        run = run_record.load_record(folder)
        if run.ledger["requests"] is None:
            what = f"the ledger of {paths.shown(folder)} is empty: {'; '.join(run.ledger['lacks'])}"
            raise BadInput(Problem(what, way_on="advise on a run that came to its end"))
        # Its tables are read only here.
        return advice.advise_on_run(run)
    except ReportError as error:
        raise BadInput(Problem(str(error))) from None
