"""What a report is made from: manifest.json and derived/ of a run, and nothing else of it."""

import os
import weakref
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import duckdb

from analysis.database import Row, Tables, in_memory
from analysis.output import DerivedFile
from analysis.reports.stories.timeline import Ladders
from analysis.verdicts import derived
from analysis.verdicts.derived import DerivedError
from analysis.verdicts.figures_file import FiguresFile
from analysis.verdicts.ledger_file import Ledger
from analysis.verdicts.verdict_file import Verdict
from formats import manifest
from formats.manifest import Knob, Manifest, Phase
from formats.safe_files import open_within

_TABLES = ("requests", "flows", "timeline", "readings")


@dataclass(frozen=True)
class Record:
    """One run; a file that the analysis could not make of it is empty.

    Attributes:
        folder: where it lies.
        verdict, ledger, ladders: the whole of those files.
        figures: every figure, by name.
        why: of each figure that is unknown, why.
    """

    folder: Path
    manifest: Manifest
    verdict: Row
    ledger: Row
    ladders: Row
    figures: Row
    why: dict[str, str]

    @cached_property
    def role_of(self) -> dict[str, str]:
        """Return the role of each instance."""
        return {each: role for role, instances in self.manifest.instances.items() for each in instances}

    @cached_property
    def start_us(self) -> int | None:
        """Return when the measurement began, Unix epoch; None if it never did."""
        measured = self.manifest.phase("measure")
        return measured.start_us if measured else None

    @property
    def phases(self) -> list[Phase]:
        """Return the phases that the run came to, on the steady clock of what is derived."""
        began = self.manifest.phase("measure")
        if began is None or not began.start_mono_us:
            return self.manifest.phases
        ahead_us = began.start_us - began.start_mono_us
        return [_on_steady(each, ahead_us) for each in self.manifest.phases]

    def offset_s(self, time_us: int) -> float:
        """Return a moment, Unix epoch, in seconds since the measurement began."""
        return round((time_us - (self.start_us or 0)) / 1e6, 3)

    @cached_property
    def usable_knobs(self) -> dict[str, Knob]:
        """Return the knobs of the manifest that its load can use: by their declarations, the workload reads them."""
        workloads = {
            role.knob(name): knob.workloads
            for role in self.manifest.roles.values()
            for name, knob in role.knobs.items()
        }
        workload = self.manifest.value_of("load.workload")
        return {
            name: knob for name, knob in self.manifest.knobs.items() if workload in (workloads.get(name) or [workload])
        }

    def has(self, table: str) -> bool:
        """Return whether there is a derived/<table>.parquet."""
        try:
            open_within(self.folder, _file_of(table)).close()
        except OSError:
            return False
        return True

    def rows(self, query: str, **parameters: object) -> list[Row]:
        """Return the rows that a query over the derived tables gives; raise DerivedError if a table is damaged."""
        try:
            return Tables(self._database).rows(query, **parameters)
        except duckdb.Error:
            where = self.folder / "derived"
            raise DerivedError(f"a table in {where} is damaged", self.folder) from None

    def count_requests(self) -> int:
        """Return how many requests there are."""
        return int(self.rows("SELECT count(*) AS count FROM requests")[0]["count"])

    def columns(self, table: str) -> list[str]:
        """Return the columns of a derived table, none if there is no such table."""
        return [row["column_name"] for row in self.rows(f"DESCRIBE {table}")] if self.has(table) else []

    @cached_property
    def _database(self) -> duckdb.DuckDBPyConnection:
        database = in_memory()
        for table in filter(self.has, _TABLES):
            with open_within(self.folder, _file_of(table)) as file:
                # Open for as long as the view is.
                descriptor = os.dup(file.fileno())
            weakref.finalize(database, os.close, descriptor)
            rows = f"read_parquet('/dev/fd/{descriptor}', hive_partitioning = false)"
            try:
                database.execute(f"CREATE VIEW {table} AS SELECT * FROM {rows}")  # noqa: S608  a number
            except duckdb.Error:
                raise DerivedError(f"{self.folder / _file_of(table)}: damaged", self.folder) from None
        return database


def _file_of(table: str) -> Path:
    return Path("derived") / f"{table}.parquet"


def load_manifest(folder: Path) -> Manifest:
    """Return a run's manifest; raise DerivedError if it is missing, broken, or of another version."""
    try:
        return manifest.load_manifest(folder)
    except manifest.ManifestError as error:
        raise DerivedError(str(error)) from None


def load_record(folder: Path) -> Record:
    """Read a run.

    Raises:
        DerivedError: its manifest or its verdict is missing, broken, or of another version.
    """
    content = load_manifest(folder)
    figures = _read(folder, FiguresFile)
    return Record(
        folder=folder,
        manifest=content,
        verdict=_read(folder, Verdict),
        ledger=_read(folder, Ledger),
        ladders=_read(folder, Ladders),
        figures=figures["figures"],
        why=figures["why"],
    )


def _read(folder: Path, model: type[DerivedFile]) -> Row:
    """Return what a file holds, as templates and scripts take it."""
    return derived.read(folder, model).model_dump(mode="json", by_alias=True)


def _on_steady(phase: Phase, ahead_us: int) -> Phase:
    """Return a phase with the times of a wall clock that is always as far ahead of the monotonic one."""
    mono_us = {"start_us": phase.start_mono_us, "end_us": phase.end_mono_us}
    return phase.model_copy(update={edge: each + ahead_us for edge, each in mono_us.items() if each is not None})
