"""Advice on a run, which analysis.reports.advice computes, and the outcome of advice that a run followed."""

from collections.abc import Iterator
from pathlib import Path

from analysis import formatting
from analysis.formatting import format_count
from analysis.reports import advice as reports_advice
from analysis.reports import run_record
from analysis.reports.advice import Advice
from analysis.verdicts import derived
from analysis.verdicts.ledger_file import Ledger
from formats import manifest
from formats.manifest import Manifest
from lab import paths
from lab.errors import BadInput, Problem


def advise_on_run(folder: Path) -> Advice:
    """Return the advice for a run.

    Raises:
        BadInput: the run was not analysed, or its records cannot be read.
    """
    try:
        run = run_record.load_record(folder)
        if run.ledger["requests"] is None and not run.ledger["by_connection"]:
            what = f"the ledger of {paths.shown(folder)} is empty: {'; '.join(run.ledger['lacks'])}"
            raise BadInput(Problem(what, hint="advise on a complete run"))
        # Its tables are read only here.
        return reports_advice.advise_on_run(run)
    except derived.DerivedError as error:
        raise BadInput(Problem(str(error))) from None


def advice_outcome(folder: Path) -> str | None:
    """Return how many requests failed, or were slow, before a run followed advice, and how many do now.

    Returns:
        One line; None if the run follows no advice on an earlier run beside it.
    """
    try:
        whole = manifest.load_manifest(folder)
        outcomes = (_became(each, other, folder, whole) for each, other in _earlier(folder, whole))
        return next(filter(None, outcomes), None)
    except (manifest.ManifestError, OSError):
        return None


def _earlier(folder: Path, whole: Manifest) -> Iterator[tuple[Path, Manifest]]:
    """Yield the earlier runs of the same arm on the same path, the latest first; a run's name begins with its start."""
    same = ("scenario", "folder", "cell", "preset", "path")
    for each in sorted(folder.parent.iterdir(), reverse=True):
        if each.name >= folder.name or each.is_symlink() or not (each / manifest.FILE).is_file():
            continue
        try:
            other = manifest.load_manifest(each)
        except manifest.ManifestError:
            continue
        if other.status == "complete" and all(getattr(other, name) == getattr(whole, name) for name in same):
            yield each, other


def _became(before: Path, other: Manifest, after: Path, whole: Manifest) -> str | None:
    changed = _changed(other, whole)
    if not changed:
        return None
    try:
        given = advise_on_run(before)
        old = derived.read(before, Ledger).requests
        new = derived.read(after, Ledger).requests
    except (BadInput, derived.DerivedError):
        return None
    if given.knob is None or old is None or new is None:
        return None
    asked = {given.knob: [str(given.value), *given.choices], **{name: [value] for name, value in given.besides.items()}}
    if any(value not in asked.get(name, ()) for name, value in changed.items()):
        return None
    now, what = (new.failed, "failure") if old.failed else (new.slow, "slow request")
    became = f"{format_count(old.failed or old.slow, what)} → {now:,}"
    sets = ", ".join(f"{name} = {value}" for name, value in changed.items())
    return f"{became}, with {sets}, as advised on {paths.shown(before)}"


def _changed(before: Manifest, after: Manifest) -> dict[str, str]:
    """Return the knobs that are not what they were, with their values now, as a scenario writes them."""
    return {
        name: formatting.format_knob(after.knobs[name]) if name in after.knobs else ""
        for name in sorted({*before.knobs, *after.knobs})
        if before.value_of(name) != after.value_of(name)
    }
