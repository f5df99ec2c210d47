"""Reads a series: its plan, and the runs of each cell that came to their end."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import ValidationError

from analysis.compare.replicates import CompareError, Group, RunRecord, group_runs, load_ended_run
from formats.safe_open import read_regular
from formats.sanitize import format_validation_error
from formats.series import FILE, PlannedRun
from formats.series import Series as Plan


@dataclass(frozen=True)
class Series:
    """A series with its runs.

    Attributes:
        folder: where series.json lies.
        plan: what it says.
        groups: each cell's name and its runs that completed; cells without any are missing.
    """

    folder: Path
    plan: Plan
    groups: dict[str, Group]

    def places(self, cell: str) -> list[PlannedRun]:
        """Return the repetitions of a cell, whatever became of them."""
        return [place for place in self.plan.runs if place.cell == cell]


def load_series(folder: Path) -> Series:
    """Read a series and its runs; raise CompareError if there is none, or if its runs cannot be compared."""
    plan = load_plan(folder)
    found: dict[str, list[RunRecord]] = {}
    for place in plan.runs:
        if place.status == "complete" and place.run is not None:
            found.setdefault(place.cell, []).append(_run(folder, plan, place))
    return Series(folder, plan, {cell: group_runs(cell, records) for cell, records in found.items()})


def load_plan(folder: Path) -> Plan:
    """Read what a series is to run, and what became of each run; raise CompareError if the file is no such."""
    path = folder / FILE
    try:
        return Plan.model_validate_json(read_regular(path))
    except FileNotFoundError:
        raise CompareError(f"{folder}: no {FILE} here; give a series' folder") from None
    except OSError as error:
        raise CompareError(f"{path}: {error.strerror}") from None
    except ValidationError as error:
        raise CompareError(
            f"{path}: {format_validation_error(error)}; run the series again with NEW=1 (--new)"
        ) from None


def _run(folder: Path, plan: Plan, place: PlannedRun) -> RunRecord:
    # A series lies in results/series/<id>, its runs in results/<scenario>/<run-id>.
    path = folder.parent.parent / str(place.run)
    if not path.is_dir():
        raise CompareError(f"{path}: the series {plan.series} has this run, and it is not there; copy it too")
    record = load_ended_run(path)
    if record.underived is not None and place.reason is not None:
        record = replace(record, underived=place.reason)
    again = "run the series again with NEW=1 (--new)"
    manifest = record.manifest
    if (manifest.get("series"), manifest.get("cell")) != (plan.series, place.cell):
        raise CompareError(
            f"{path}: the run belongs to the cell {manifest.get('cell')} of the series {manifest.get('series')}, not to"
            f" {place.cell} of {plan.series}; {again}"
        )
    kernel = manifest.get("host", {}).get("kernel")
    if kernel != plan.fingerprint.kernel:
        raise CompareError(f"{path}: its kernel is {kernel}, that of the series {plan.fingerprint.kernel}; {again}")
    for role, image in manifest.get("images", {}).items():
        if image != plan.fingerprint.images.get(role, image):
            raise CompareError(
                f"{path}: its image of {role} is not the one that the series began with: it was built again in between,"
                f" and the series mixes both; {again}"
            )
    return record
