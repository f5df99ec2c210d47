"""`connlab compare`: finds what it is given in the results, compares it, writes the page, and prints the answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from analysis import command_hints, compare
from analysis.compare import narrative
from analysis.compare.replicates import load_plan
from analysis.formatting import format_count
from analysis.reports import comparison_page
from analysis.reports.advice import rerun_command
from formats import series as series_file
from formats.knob_types import format_knob_value
from formats.manifest import FILE as MANIFEST_FILE
from formats.manifest import ManifestError, load_manifest
from lab import paths
from lab.console.next_steps import after_explanation, is_without_requests, worst_request
from lab.console.run_lookup import find_run, series_folder
from lab.errors import BadInput, Problem
from lab.reading.validation_messages import did_you_mean
from lab.runs.run_results import STYLES, format_figure
from lab.scenarios import places
from lab.series import matrices

if TYPE_CHECKING:
    from analysis.compare import Comparison, SeriesVerdict
    from analysis.compare.comparison_file import PairEntry, Setting, SettingChange

# Runs of the same scenario are read to learn of the noise; those of last year say no more than the last few.
_OTHERS_MAX = 200

# What an answer may fill of a terminal, and of that claims and pairs.
_LINES_MAX, _CLAIMS_MAX, _PAIRS_MAX = 30, 5, 3
# Digits of an id that tell images apart.
_ID_SHOWN = 19


@dataclass(frozen=True)
class Compared:
    """A comparison, the folder of comparison.json and comparison.html, and the verdict on its series, if it is one."""

    comparison: Comparison
    folder: Path
    verdict: SeriesVerdict | None = None


def compare_runs(a: Sequence[str], b: Sequence[str]) -> Compared:
    """Compare two groups of runs and write what came out.

    Args:
        a: the runs to compare with, as `find_runs` takes them.
        b: the others.

    Raises:
        BadInput: a name that is none, or runs that cannot be compared.
    """
    if not a or not b:
        raise BadInput(Problem("a comparison takes two groups of runs", hint="give A=<run> B=<run>, or MATRIX=<name>"))
    runs_a, runs_b = find_runs(a), find_runs(b)
    scenarios = {folder.parent for folder in (*runs_a, *runs_b)}
    others = sorted((run.parent for each in scenarios for run in each.glob(f"*/{MANIFEST_FILE}")), reverse=True)
    with refusals():
        comparison = compare.compare_runs(runs_a, runs_b, [run for run in others[:_OTHERS_MAX] if not run.is_symlink()])
    name = f"{runs_a[0].parent.name}-{runs_a[0].name}-and-{runs_b[0].name}"
    return _written(comparison, paths.RESULTS / "comparisons" / name, paths.RESULTS)


def compare_series(name: str) -> Compared:
    """Compare the cells of a series and write what came out.

    Args:
        name: its folder, its id, or the matrix or scenario whose newest series it is.

    Raises:
        BadInput: there is no such series, or its runs cannot be compared.
    """
    folder = find_series(name)
    with refusals():
        comparison, verdict = compare.compare_series(folder)
    compare.write_verdict(folder, verdict)
    # The folder of all runs is that beside which the series lies, wherever it was copied to.
    return _written(comparison, folder / "derived", folder.parent.parent, verdict)


def _written(comparison: Comparison, folder: Path, results: Path, verdict: SeriesVerdict | None = None) -> Compared:
    if folder.parent.is_symlink():
        raise BadInput(Problem(f"{folder.parent} is a link; the lab writes through none", hint="remove it"))
    folder.mkdir(parents=True, exist_ok=True)
    comparison_page.write(comparison, folder, results, verdict)
    return Compared(comparison, folder, verdict)


@contextmanager
def refusals() -> Iterator[None]:
    """Turn what the analysis refuses into bad input."""
    try:
        yield
    except compare.CompareError as error:
        raise BadInput(Problem(str(error))) from None


def find_runs(names: Iterable[str]) -> list[Path]:
    """Find runs.

    Args:
        names: each as `find_run` takes it, a folder of runs, `<series>:<cell>`, or a series of one cell.

    Raises:
        BadInput: a name that is none.
    """
    found: list[Path] = []
    for name in names:
        folder = Path(name)
        of_series, colon, cell = name.rpartition(":")
        whole = series_folder(name)
        if whole is not None or colon:
            found += _find_cell(whole or find_series(of_series), cell if whole is None else None)
        elif folder.is_dir() and not (folder / MANIFEST_FILE).is_file() and any(folder.glob(f"*/{MANIFEST_FILE}")):
            found += sorted(file.parent for file in folder.glob(f"*/{MANIFEST_FILE}") if not file.parent.is_symlink())
        else:
            found.append(find_run(name))
    return found


def _find_cell(folder: Path, cell: str | None) -> list[Path]:
    """Return the runs of a cell that completed; of the only one, if none is named."""
    with refusals():
        plan = load_plan(folder)
    known = [each.cell for each in plan.cells]
    if cell is None and len(known) > 1:
        hint = f"name one of them: {', '.join(f'{folder.name}:{each}' for each in known)}"
        raise BadInput(Problem(f"the series {folder.name} has {len(known)} cells", hint=hint))
    cell = cell or known[0]
    if cell not in known:
        raise BadInput(Problem(f"the series {plan.series} has no cell '{cell}'", hint=did_you_mean(cell, known)))
    runs = [place.run for place in plan.runs if place.cell == cell and place.status == "complete"]
    found = [paths.RESULTS / run for run in runs if run is not None]
    if not found:
        raise BadInput(Problem(f"no run of the cell '{cell}' completed in {plan.series}", hint="run it again"))
    return found


def find_series(name: str) -> Path:
    """Find a series by its folder, its id, or the newest of a matrix or scenario.

    Raises:
        BadInput: there is none.
    """
    root = paths.RESULTS / "series"
    if series := series_folder(name):
        return series.resolve()
    ids = sorted((file.parent.name for file in root.glob(f"*Z-*-*/{series_file.FILE}")), reverse=True)
    named = {series_file.split_id(series_id)[1]: series_id for series_id in reversed(ids)}
    if name in named:
        return root / named[name]
    what = f"no series of '{name}'" if name else "no series is named"
    run_one = command_hints.example_command_here("matrix", {"MATRIX": "<name>"})
    hint = _not_run(name) or did_you_mean(name, named) or f"run one first: {run_one}"
    raise BadInput(Problem(f"{what} below {paths.shown(root)}", hint=hint))


def _not_run(name: str) -> str | None:
    """Return how to run what has a name and no series yet."""
    if name in matrices.matrix_names():
        return f"run it first: {command_hints.make_command_here('matrix', {'MATRIX': name})}"
    if name in places.slugs():
        return f"run it first: {command_hints.make_command_here('run', {'SCENARIO': name})}"
    return None


def print_answer(console: Console, compared: Compared) -> None:
    """Print what a comparison found in at most 30 lines, and where the rest lies."""
    comparison = compared.comparison
    claims = list(_claims(compared.verdict)) if compared.verdict else []
    pairs, hidden = comparison.pairs[:_PAIRS_MAX], len(comparison.pairs) - _PAIRS_MAX
    left_out = sum(not run.used for group in comparison.groups for run in group.runs)
    # Title, remark on pairs and on runs, result, next step.
    free = _LINES_MAX - 5 - len(comparison.answer) - len(claims)
    lines = [Text(comparison.title, "bold"), *map(Text, comparison.answer), *claims]
    for pair in pairs:
        lines += _pair_lines(pair, free // len(pairs))
    if hidden > 0:
        lines.append(Text(f"{format_count(hidden, 'pair')} more on the page", "dim"))
    if left_out:
        lines.append(Text(f"{format_count(left_out, 'run')} not counted; the page says why", "yellow"))
    lines.append(Text(f"result: {paths.shown(compared.folder)}/comparison.html, comparison.json"))
    for line in lines:
        console.print(line, soft_wrap=True)


def _claims(verdict: SeriesVerdict) -> Iterator[Text]:
    """Yield the verdict and the claims of a series; those that do not hold come first."""
    yield Text.assemble("verdict: ", (verdict.verdict, STYLES[verdict.verdict]))
    ordered = sorted(verdict.predictions, key=lambda one: one.status == "true")
    for one in ordered[:_CLAIMS_MAX]:
        yield Text.assemble((f"  {one.status:<8}", STYLES[one.status]), one.description)
    if len(ordered) > _CLAIMS_MAX:
        yield Text(f"  {format_count(len(ordered) - _CLAIMS_MAX, 'claim')} more on the page", "dim")


def _pair_lines(pair: PairEntry, share: int) -> Iterator[Text]:
    """Yield so many lines on a pair; where they do not suffice, what users felt stays."""
    yield Text(f"{pair.b} vs. {pair.a}", "bold")
    asked = [f"{one.name}: {_setting(one, one.a)} → {_setting(one, one.b)}" for one in pair.settings if one.asked]
    yield Text(f"    set: {'; '.join(asked) or 'nothing differently'}")
    unasked = [one.name for one in pair.settings if not one.asked]
    if unasked:
        yield Text(f"    unintended differences: {', '.join(unasked)}", "yellow")
    told = [each.line for each in narrative.find_moved(pair)] or [narrative.explain_no_moves(pair)]
    room = max(share - (3 if unasked else 2), 1)
    if len(told) > room:
        kept = told[len(told) - max(room - 1, 1) :]
        told = [f"… {format_count(len(told) - len(kept), 'group')} of figures more moved before that", *kept]
    yield from (Text(f"    {line}") for line in told)


def _setting(setting: SettingChange, value: Setting) -> str:
    if value is None:
        return "none"
    if setting.unit or isinstance(value, bool) or value == "":
        return format_knob_value(value, setting.unit)
    return str(value)[:_ID_SHOWN] if str(value).startswith("sha256:") else format_figure(value)


def after_comparison(compared: Compared, runs: Sequence[str]) -> str:
    """Return the next step: repeat a run that stands alone, else explain the worst request; for a series, the page."""
    alone = next((group for group in compared.comparison.groups if sum(run.used for run in group.runs) == 1), None)
    if runs and alone is not None:
        run, command = next(paths.RESULTS / run.run for run in alone.runs if run.used), None
        with suppress(ManifestError):
            command = rerun_command(load_manifest(run)).command
        if command:
            return (
                f"next, {alone.name} once more, so that groups can be compared: {command_hints.command_here(command)}"
            )
    if runs:
        last = next((run.run for run in reversed(compared.comparison.groups[-1].runs) if run.used), None)
        if last is not None and is_without_requests(paths.RESULTS / last):
            return after_explanation(paths.RESULTS / last)
        return worst_request(command_hints.name_typed(runs[-1]) if Path(runs[-1]).is_dir() else runs[-1])
    return f"next, in the browser: {paths.shown(compared.folder / 'comparison.html')}"
