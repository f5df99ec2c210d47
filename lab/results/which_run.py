"""Which run a command reads: `latest` of a scenario with arms is that of whichever arm was run last."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from formats import series as series_file
from formats.manifest import FILE
from formats.safe_open import read_regular


def name(folder: Path) -> str:
    """Give a run's scenario and id, as commands take them."""
    recorded = _manifest(folder)
    return f"{recorded['scenario']}/{recorded['run']}"


def lines(folder: Path) -> Iterator[str]:
    """Say which run it is and, if it is one of a series of arms, how the others are read.

    Args:
        folder: the run's, with a manifest that was read before.
    """
    yield name(folder)
    recorded = _manifest(folder)
    series, arm = recorded.get("series"), str(recorded.get("cell"))
    # A series' id is <UTC start>-<kind>-<name>.
    if series and series.split("-")[1] == "arms":
        others = ", ".join(_others(folder, series, arm))
        rest = f"; its other arms, each as RUN=<run>: {others}" if others else ""
        yield f"the arm '{arm}' of {series}{rest}"


def _manifest(folder: Path) -> dict[str, Any]:
    return dict(json.loads(read_regular(folder / FILE)))


def _others(folder: Path, series: str, arm: str) -> list[str]:
    """Give the newest run of each other arm that completed; none of a run that was copied without its series."""
    try:
        places = series_file.load_series(folder.parent.parent / "series" / series).runs
    except (OSError, ValueError):
        return []
    newest = {place.cell: place.run for place in places if place.status == "complete" and place.run}
    return [run for cell, run in newest.items() if cell != arm]
