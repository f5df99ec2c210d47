"""Reads what a comparison needs of a run: its manifest, its figures and its verdict. Never its raw files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from analysis.compare.incomparable import CompareError
from analysis.evidence import manifest
from analysis.expressions.values import Number, is_number
from analysis.verdicts import derived, figures_file, verdict_file
from analysis.verdicts.derived import DerivedError
from analysis.verdicts.figures_file import FiguresFile
from analysis.verdicts.measured import MeasuredValue
from analysis.verdicts.verdict_file import Verdict

Record = dict[str, Any]


@dataclass(frozen=True)
class RunRecord:
    """One run.

    Attributes:
        folder: where it lies.
        manifest: the whole of manifest.json.
        verdict: derived/verdict.json; None where nothing is derived.
        figures: every figure, as derived/figures.json has it.
        why: of each that is unknown, why.
        underived: why there is nothing but the manifest, None if there is.
    """

    folder: Path
    manifest: Record
    verdict: Verdict | None
    figures: Mapping[str, MeasuredValue]
    why: dict[str, str]
    underived: str | None = None

    @property
    def name(self) -> str:
        """Its scenario and id, as commands take them."""
        return f"{self.scenario}/{self.manifest['run']}"

    @property
    def scenario(self) -> str:
        """The scenario's name."""
        return str(self.manifest["scenario"])

    @property
    def repetition(self) -> int:
        """Which one of its cell it is, from 1."""
        return int(self.manifest["repetition"])

    @cached_property
    def unusable(self) -> str | None:
        """Why the run is not evidence, None if it is.

        A run that did not complete, of which nothing is derived, that is inconclusive about a prediction of its own, or
        of which more is unexplained than its scenario tolerates, or whose observers contradict each other, is shown and
        not counted.
        """
        if self.manifest["status"] != "complete":
            reason = self.manifest.get("reason")
            return f"{self.manifest['status']}{f': {reason}' if reason else ''}"
        if self.underived is not None:
            return self.underived
        if self.verdict is None:
            return None
        if self.verdict.verdict == "inconclusive" and self.verdict.predictions:
            unknown = [each for each in self.verdict.predictions if each.status == "unknown"]
            return "; ".join(["inconclusive", *(f"{each.id}: {each.why}" for each in unknown[:1])])
        return next((each.message for each in self.verdict.problems if each.instrument == "ledger"), None)

    def number(self, name: str) -> Number | None:
        """A figure or knob that is a number, None if it is unknown, or is none.

        Figures of the only instance of a role stand under the role's name.
        """
        knob = self.manifest["knobs"].get(name)
        if knob is not None:
            value = knob["value"]
        else:
            value = self.figures[name] if name in self.figures else self.figures.get(_of_role(name))
        return value if is_number(value) else None


def _of_role(name: str) -> str:
    parts = name.split(".")
    return ".".join(part.removesuffix("_1") if index == 1 else part for index, part in enumerate(parts))


def read(folder: Path) -> RunRecord:
    """Read a run; raise CompareError if it is none, has no verdict, or was written by another version."""
    record = read_any(folder)
    if record.underived is not None:
        raise CompareError(record.underived)
    return record


def read_any(folder: Path) -> RunRecord:
    """Read a run, whether or not anything is derived of it; raise CompareError if it is none, or has not ended."""
    try:
        recorded = manifest.read_whole(folder)
    except manifest.ManifestError as error:
        raise CompareError(str(error)) from None
    if recorded.get("status") == "running":
        raise CompareError(f"{folder}: the run has not ended; wait for it, or, if it was killed, run it again")
    try:
        figures = derived.read(folder, figures_file.FILE, FiguresFile)
        judged = derived.read(folder, verdict_file.FILE, Verdict)
    except DerivedError as error:
        return RunRecord(folder, recorded, verdict=None, figures={}, why={}, underived=str(error))
    return RunRecord(folder, recorded, judged, figures.figures, figures.why)
