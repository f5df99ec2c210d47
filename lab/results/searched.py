"""What else a search's runs show at the value that it found: its expression may hold, and users wait all the same."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.formatting import counted, spoken
from analysis.verdicts import derived, figures_file, ledger_file
from analysis.verdicts.figures_file import FiguresFile
from analysis.verdicts.ledger_file import Ledger
from formats.series import Search, Series
from lab import paths
from lab.scenarios.knobs import format_knob

_LONGEST = "client.latency_ms.max"


def lines(search: Search, series: Series) -> Iterator[str]:
    """Say of the first complete run at the value found which requests failed or were slow there, and why.

    Args:
        search: what was looked for.
        series: its runs.
    """
    if search.found is None:
        return
    cells = {one.cell for one in series.cells if one.knobs.get(search.knob) == search.found}
    run = next(
        (each.run for each in series.runs if each.cell in cells and each.status == "complete" and each.run), None
    )
    if run is None:
        return
    folder = paths.RESULTS / run
    try:
        ledger = derived.read(folder, ledger_file.FILE, Ledger)
        longest = derived.read(folder, figures_file.FILE, FiguresFile).figures.get(_LONGEST)
    except derived.DerivedError:
        return
    requests = ledger.requests
    if requests is None:
        return
    why = ", ".join(f"{count:,} {name}" for name, count in ledger.causes.items())
    waited = f"; the longest answer took {spoken(longest)}" if isinstance(longest, int | float) else ""
    slow = f"{counted(requests.slow, 'request')} {'was' if requests.slow == 1 else 'were'} slow"
    yield (
        f"with {format_knob(search.knob, search.found)}: {counted(requests.failed, 'request')} failed, {slow}"
        f"{f' ({why})' if why else ''}{waited}"
    )
    if requests.slow and not requests.failed:
        yield "slow is no failure; 'make advise' on a run that failed names the value with which nobody waits"
