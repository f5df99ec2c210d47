"""All runs and series on one page, results/index.html: it filters and sorts without a server."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeVar

from analysis import formatting
from analysis.compare import SeriesVerdict
from analysis.diagnosis import causes
from analysis.formatting import format_count
from analysis.output import DerivedFile
from analysis.output import write as write_file
from analysis.reports import advice, rendering, run_report
from analysis.verdicts import derived
from analysis.verdicts.connections_file import Connections
from analysis.verdicts.derived import DerivedError
from analysis.verdicts.ledger_file import Ledger
from analysis.verdicts.verdict_file import Verdict
from formats.manifest import Manifest, ManifestError, load_manifest
from formats.series import Series, load_series

_Model = TypeVar("_Model", bound=DerivedFile)

FILE = Path("index.html")
_SET = frozenset({"set", "cell"})
# Nothing went wrong in what is of these states, as far as is known.
_FINE = frozenset({"reproduced", "observed", "not analysed", "running"})
# A reason is one line of the list; the report has all of it, with the log of the program that ended.
_REASON_MAX = 160


@dataclass(frozen=True)
class Entry:
    """One run.

    Attributes:
        folder: below the results, `<scenario>/<run-id>`.
        state: its verdict; how it ended, if it did not complete; `not analysed`; `analyse again`, if what was
            derived from it is damaged or of another version.
        reason: why it did not complete, in one line.
        differed: the knobs that were set for it, and the cell of a series.
        total, failed: its requests, None if that is not known.
        cause: the main one, as in its report, in words.
        link: to its report; None if there is none.
    """

    scenario: str
    run: str
    series: str | None
    folder: str
    started: str
    state: str
    reason: str
    differed: str
    total: int | None
    failed: int | None
    cause: str
    link: str | None


@dataclass(frozen=True)
class SeriesEntry:
    """One series, with those of its runs that are there; `link` is to its page, `state` is as of a run."""

    scenario: str
    run: str
    folder: str
    started: str
    state: str
    kind: str
    cells: int
    link: str | None
    runs: list[Entry]


class ComparisonEntry(NamedTuple):
    """A page that compares runs."""

    name: str
    link: str


def write(results: Path) -> Path:
    """Write the page of all runs and series below a folder of results.

    Raises:
        OSError: it cannot be written.
    """
    path = results / FILE
    manifests = {folder: _manifest(folder) for folder in _folders(results)}
    runs = _entries(results, manifests)
    series, broken = _series(results, runs)
    listed = {each.run for each in series}
    linked = {each.link for each in series}
    unread = [folder for folder, manifest in manifests.items() if manifest is None]
    lines: list[Entry | SeriesEntry] = [*series, *(entry for entry in runs if entry.series not in listed)]
    context = {
        "lines": _wrong_first(lines),
        "runs": len(runs),
        "unread": sorted(_link(results, folder) for folder in [*unread, *broken]),
        "comparisons": [each for each in list_comparisons(results) if each.link not in linked],
        "scenarios": sorted({entry.scenario for entry in runs}),
        "states": sorted({line.state for line in [*lines, *runs]}),
    }
    filters: dict[str, Callable[..., str]] = {"number": formatting.format_value, "format_count": format_count}
    write_file(path, rendering.render("index", None, context, filters, styles=("index",)))
    return path


def newest_runs(results: Path, count: int) -> list[Entry]:
    """Return the runs that began last, the newest first; one whose manifest cannot be read is passed over."""
    folders = sorted(_folders(results), key=lambda folder: folder.name, reverse=True)[:count]
    return _entries(results, {folder: _manifest(folder) for folder in folders})


def list_comparisons(results: Path) -> list[ComparisonEntry]:
    """Return the pages that compare runs, the newest first."""
    return [
        ComparisonEntry(
            found.parent.parent.name if found.parent.name == "derived" else found.parent.name, _link(results, found)
        )
        for pattern in ("series/*/derived/comparison.html", "comparisons/*/comparison.html")
        for found in sorted(results.glob(pattern), reverse=True)
        if "latest" not in found.parts
    ]


def _folders(results: Path) -> list[Path]:
    return [found.parent for found in results.glob("*/*/manifest.json") if not found.parent.is_symlink()]


def _entries(results: Path, manifests: Mapping[Path, Manifest | None]) -> list[Entry]:
    return sorted(
        (_entry(results, folder, manifest) for folder, manifest in manifests.items() if manifest is not None),
        key=lambda entry: (entry.started, entry.folder),
        reverse=True,
    )


_Line = TypeVar("_Line", Entry, SeriesEntry, Entry | SeriesEntry)


def _wrong_first(lines: Iterable[_Line]) -> list[_Line]:
    """Return what went wrong, and then the rest; the newest first in both."""
    return sorted(lines, key=lambda line: (line.state not in _FINE, line.started, line.folder), reverse=True)


def _series(results: Path, runs: list[Entry]) -> tuple[list[SeriesEntry], list[Path]]:
    """Return the series below a folder of results, and the folders of those that cannot be read."""
    found: list[SeriesEntry] = []
    broken: list[Path] = []
    for folder in (file.parent for file in results.glob("series/*/series.json") if not file.parent.is_symlink()):
        try:
            found.append(_series_entry(results, folder, load_series(folder), runs))
        except (OSError, ValueError):
            broken.append(folder)
    return found, broken


def _series_entry(results: Path, folder: Path, plan: Series, runs: list[Entry]) -> SeriesEntry:
    verdict = _read(folder, SeriesVerdict)
    page = folder / "derived" / "comparison.html"
    return SeriesEntry(
        scenario=", ".join(sorted({cell.scenario for cell in plan.cells})),
        run=plan.series,
        folder=_link(results, folder),
        started=_written(plan.started),
        state=verdict.verdict if verdict else "not analysed" if plan.status == "complete" else plan.status,
        kind=plan.kind,
        cells=len(plan.cells),
        link=_link(results, page) if page.is_file() else None,
        runs=_wrong_first(entry for entry in runs if entry.series == plan.series),
    )


def _written(time: str) -> str:
    return time.replace("T", " ").removesuffix("Z")


def _one_line(reason: str) -> str:
    line = next(iter(reason.strip().splitlines()), "")
    return line if len(line) <= _REASON_MAX else f"{line[: _REASON_MAX - 1]}…"


def _link(results: Path, path: Path) -> str:
    return path.relative_to(results).as_posix()


def _manifest(folder: Path) -> Manifest | None:
    """Return a run's manifest; None if it is broken, or of another version."""
    try:
        return load_manifest(folder)
    except ManifestError:
        return None


def _read(folder: Path, model: type[_Model]) -> _Model | None:
    """Return a file of a run; None if it is none that this version writes, which a list of runs has to live with."""
    try:
        return derived.read(folder, model)
    except DerivedError:
        return None


def _entry(results: Path, folder: Path, manifest: Manifest) -> Entry:
    verdict, ledger = _read(folder, Verdict), _read(folder, Ledger)
    requests = ledger.requests if ledger else None
    ranked = advice.rank_causes(ledger.causes, ledger.unexplained, ledger.failed_causes) if ledger else []
    completed = manifest.status == "complete"
    return Entry(
        scenario=manifest.scenario,
        run=manifest.run,
        series=manifest.series,
        folder=_link(results, folder),
        started=_written(manifest.started),
        state=_state(folder, verdict, ledger) if completed else manifest.status,
        reason="" if completed else _one_line(manifest.reason or ""),
        differed=", ".join(_differed(manifest)),
        total=requests.total if requests else None,
        failed=requests.failed if requests else None,
        cause=causes.cause_named(ranked[0][0]).label if ranked else "",
        link=_link(results, folder / run_report.FILE) if (folder / run_report.FILE).is_file() else None,
    )


def _state(folder: Path, verdict: Verdict | None, ledger: Ledger | None) -> str:
    if verdict and ledger:
        # A system that was only watched has no prediction to be judged by.
        return "observed" if (folder / Connections.file).is_file() else verdict.verdict
    return "analyse again" if (folder / Verdict.file).is_file() else "not analysed"


def _differed(manifest: Manifest) -> Iterator[str]:
    if manifest.cell != "default":
        yield f"cell {manifest.cell}"
    if manifest.preset:
        yield f"preset {manifest.preset}"
    for name, knob in manifest.knobs.items():
        if knob.source in _SET:
            yield f"{name}={formatting.format_knob(knob)}"
