"""Output of a run: verdict, ledger, guesses, profile, and what evidence is missing."""

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from analysis.diagnosis.causes import UNEXPLAINED
from analysis.diagnosis.identities import Side
from analysis.formatting import format_count, format_ms, format_races
from analysis.reports import run_report
from analysis.reports.summary import held_predictions
from analysis.verdicts import derived, guesses
from analysis.verdicts.figures_file import FiguresFile
from analysis.verdicts.guesses import GuessOutcome
from analysis.verdicts.ledger_file import HopEntry, Ledger, NamedRequests
from formats.knob_types import format_knob_value
from formats.manifest import load_manifest
from formats.series import Search, Series
from lab import paths
from lab.console.advice import advice_outcome
from lab.runs import run_results
from lab.runs.run_results import STYLES

_LONGEST = "client.latency_ms.max"


def print_verdict(console: Console, verdict: Mapping[str, Any], folder: Path) -> None:
    """Print what came out.

    First what became of an advice that the run followed; then the ledger, each prediction with what was measured, what
    the instruments lack, the verdict, and where it all lies.
    """
    became = advice_outcome(folder)
    if became:
        console.print(Text(became, "bold"), soft_wrap=True)
    lacks = MissingEvidence(verdict.get("problems", []))
    print_ledger(console, folder, lacks)
    for one in verdict["predictions"]:
        title = Text.assemble((one["id"], "bold"), f": {one['description']}")
        why = lacks.short(one.get("why") or "")
        run_results.print_judgement(console, one["status"], title, run_results.format_figures(one["measured"]), why)
    for problem in verdict.get("problems", []):
        console.print(Text(f"evidence: {problem['instrument']}: {problem['message']}", "yellow"), soft_wrap=True)
    print_guesses(console, folder, verdict)
    console.print(Text.assemble("verdict: ", (verdict["verdict"], STYLES[verdict["verdict"]]), _about(verdict, folder)))
    console.print(f"result: {paths.shown(folder)}", soft_wrap=True)
    if (folder / run_report.FILE).is_file():
        console.print(f"report: {paths.shown(folder / run_report.FILE)}", soft_wrap=True)


def _about(verdict: Mapping[str, Any], folder: Path) -> str:
    """Return what the verdict is about: predictions hold, whatever became of the requests."""
    requests = run_results.read_derived(folder, Ledger).requests
    failed = f"{requests.failed:,} of {format_count(requests.total, 'request')} failed" if requests else ""
    about = "; ".join(filter(None, (held_predictions(verdict), failed)))
    return f" ({about})" if about else ""


class MissingEvidence:
    """The evidence that a run's instruments lack, as its verdict has it under `problems`."""

    def __init__(self, problems: Iterable[Mapping[str, Any]]) -> None:
        self._instruments = {f"{one['instrument']}: {one['message']}": one["instrument"] for one in problems}

    def short(self, why: str) -> str:
        """Return a reason with the instrument's name in place of its problem's text, each thing once."""
        # The longest first: one problem's text may be the beginning of another's.
        for told in sorted(self._instruments, key=len, reverse=True):
            why = why.replace(told, f"{self._instruments[told]} lacks evidence")
        kept: list[str] = []
        for reason in why.split("; "):
            if not any(before.endswith(reason) for before in kept):
                kept.append(reason)
        return "; ".join(kept)


_STYLES = {"false": "red", "unknown": "yellow"}
_EXAMPLES = 3
_NAMES = 10


def print_ledger(console: Console, folder: Path, lacks: MissingEvidence) -> None:
    """Print the ledger of a run; what its instruments lack is printed elsewhere."""
    ledger = run_results.read_derived(folder, Ledger)
    _print_causes(console, ledger)
    for hop in ledger.hops:
        _print_hop(console, hop, lacks)


def _print_causes(console: Console, ledger: Ledger) -> None:
    requests = ledger.requests
    if requests is None and (made := [hop for hop in ledger.hops if hop.connections]) and ledger.by_connection:
        for hop in made:
            _print_connections(console, hop)
        return
    if requests is None or ledger.unexplained is None:
        console.print(Text(f"ledger: none: {'; '.join(ledger.lacks)}", "yellow"), soft_wrap=True)
        return
    of = f"{requests.failed:,} failed and {requests.slow:,} slow; {requests.total:,} requests in all"
    _print_unexplained(console, ledger.unexplained, of)
    for one in ledger.unexplained_requests[:_EXAMPLES]:
        console.print(Text(f"        {one.request} {one.outcome}: {one.why}", "red"), soft_wrap=True)
    for name, count in ledger.causes.items():
        console.print(f"{count:>8,} {name}", soft_wrap=True)
    if ledger.streams is not None:
        console.print(Text(f"        {ledger.streams.sentences}"), soft_wrap=True)
    held = [
        *(one.sentences for one in ledger.places),
        *(one.sentences for one in ledger.holders),
        *(one.sentences for one in ledger.turned_away),
    ]
    for sentences in held:
        console.print(Text(f"        {sentences}"), soft_wrap=True)
    if len(ledger.names) > 1:
        _print_names(console, [one for one in ledger.names if one.causes])


def _print_unexplained(console: Console, count: int, of: str) -> None:
    told = (f"{count:,} unexplained", "bold red" if count else "bold green")
    console.print(Text.assemble("ledger: ", told, f" of {of}"), soft_wrap=True)


def _print_connections(console: Console, hop: HopEntry) -> None:
    """Print what became of a hop's connections, where the load has no record of requests."""
    found = hop.connections
    if found is None:
        return
    of = f"{found.failed:,} connections that failed from {hop.from_} to {hop.to}; {found.total:,} in all"
    _print_unexplained(console, found.causes.get(UNEXPLAINED.name, 0), of)
    for name, count in found.causes.items():
        if name != UNEXPLAINED.name:
            console.print(f"{count:>8,} {name}", soft_wrap=True)
    if found.delayed:
        late = ", ".join(f"{name} {count:,}" for name, count in found.delayed.items())
        made = format_count(sum(found.delayed.values()), "connection")
        console.print(f"        {made} more did not fail, but came late: {late}", soft_wrap=True)
    if found.requests is not None:
        console.print(f"        by the packets they carried {found.requests:,} requests", soft_wrap=True)


def _print_names(console: Console, hurt: list[NamedRequests]) -> None:
    """Print which requests of a script failed or were slow."""
    for one in hurt[:_NAMES]:
        group = f" in {one.group}" if one.group else ""
        causes = ", ".join(f"{name} {count:,}" for name, count in one.causes.items())
        what = f"{one.failed:,} failed and {one.slow:,} slow of {one.total:,} named {one.name}{group}: {causes}"
        console.print(Text(f"        {what}"), soft_wrap=True)
    if len(hurt) > _NAMES:
        console.print(f"        and those of {len(hurt) - _NAMES:,} other names: see the report")


def _print_hop(console: Console, hop: HopEntry, lacks: MissingEvidence) -> None:
    identities = hop.identities
    dropped = hop.dropped_syns
    holding = sum(one.holds == "true" for one in identities)
    syns = (
        "dropped SYNs unknown"
        if dropped.lost is None
        else f"dropped SYNs: {dropped.lost:,} never answered, {dropped.recovered:,} recovered on retry"
    )
    if hop.dropped_later:
        syns += f"; {hop.dropped_later:,} ACKs and data"
    if hop.in_vain:
        syns += f"; {format_count(hop.in_vain, 'client')} left before an answer, and {hop.to} had the request"
    if races := format_races(hop.model_dump()):
        syns += f"; {races}"
    agreed = f"{holding} of {len(identities)} identities hold"
    console.print(f"        {hop.from_} → {hop.to}: {agreed}; {syns}", soft_wrap=True)
    for one in identities:
        if one.holds == "false":
            sides = f"{one.id}: {_side(one.left)}, {_side(one.right)}: {one.difference:+,}"
            console.print(Text(f"{'false':<8}{sides}", _STYLES["false"]), soft_wrap=True)
    # Several often lack the same.
    unknown: dict[str, list[str]] = {}
    for one in identities:
        if one.holds == "unknown":
            unknown.setdefault(lacks.short(one.why or ""), []).append(one.id)
    for why, ids in unknown.items():
        console.print(Text(f"{'unknown':<8}{', '.join(ids)}: {why}", _STYLES["unknown"]), soft_wrap=True)


def _side(side: Side) -> str:
    most = "" if side.value_max is None else f" to {side.value_max:,}"
    return f"{side.name} = {side.value:,}{most}"


_MARKS = {
    "right": ("✓ right", "green"),
    "near": ("≈ near", "cyan"),
    "off": ("○ off", "yellow"),
    "skipped": ("- passed", "dim"),
    "unknown": ("? unknown", "yellow"),
}


def print_guesses(console: Console, folder: Path, verdict: Mapping[str, Any]) -> None:
    """Print what was expected of a run; nothing if nobody was asked."""
    asked = load_manifest(folder).guesses
    if not any(one.value is not None for one in asked):
        return
    figures = run_results.read_derived(folder, FiguresFile).model_dump(mode="json", by_alias=True)
    console.print(Text("your predictions", "bold"))
    for outcome in guesses.score_guesses(asked, verdict, figures):
        print_guess(console, outcome)


def print_answer(console: Console, mark: str, asks: str, yours: str | None, measured: str) -> None:
    """Print a question, with its answer beside what was measured."""
    word, style = _MARKS[mark]
    console.print(Text.assemble((f"{word:<10}", style), asks), soft_wrap=True)
    console.print(Text(f"          you: {yours or '-'}, measured: {measured}"), soft_wrap=True)


def print_guess(console: Console, one: GuessOutcome) -> None:
    """Print one answer."""
    yours = None if one.guess is None else guesses.written(one.guess, one.unit)
    measured = "unknown" if one.measured is None else guesses.written(one.measured, one.unit)
    remark = f" ({one.remark})" if one.remark and one.mark != "skipped" else ""
    print_answer(console, one.mark, one.asks, yours, f"{measured}{remark}")
    if one.says and one.mark == "off":
        console.print(Text(f"          {one.says}", "dim"), soft_wrap=True)


# What a run is for; all else happens around it.
_LOAD = ("measure", "drain")


def print_profile(console: Console, folders: Sequence[Path]) -> None:
    """Print a table with a row for each step; of several runs, the medians of those that had the step.

    A run whose manifest has no profile does not count.
    """
    profiles = [profile for folder in folders if (profile := _profile(folder))]
    if not profiles:
        return
    names = dict.fromkeys(name for each in profiles for name in each)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("step" if len(profiles) == 1 else f"step, medians of {format_count(len(profiles), 'run')}")
    table.add_column("ms", justify="right")
    for name in names:
        *above, last = name.split("/")
        ms = median(each[name] for each in profiles if name in each)
        table.add_row(f"{'  ' * len(above)}{last}", f"{ms:,.0f}")
    console.print(table)
    whole, load = (median(_sum_ms(each, only) for each in profiles) for only in ((), _LOAD))
    console.print(f"all of it {format_ms(whole)}, of which the load and its drain {format_ms(load)}", soft_wrap=True)


def _profile(folder: Path) -> dict[str, float] | None:
    with contextlib.suppress(OSError, ValueError):
        return load_manifest(folder).profile
    return None


def _sum_ms(profile: dict[str, float], only: Sequence[str]) -> float:
    """Return the sum of steps that are part of no other one; of some of them, or of all."""
    return sum(ms for name, ms in profile.items() if "/" not in name and (not only or name in only))


def search_summary(search: Search, series: Series) -> Iterator[str]:
    """Yield which requests failed or were slow in the first complete run at the value found, and why."""
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
        ledger = derived.read(folder, Ledger)
        longest = derived.read(folder, FiguresFile).figures.get(_LONGEST)
    except derived.DerivedError:
        return
    requests = ledger.requests
    if requests is None:
        return
    why = ", ".join(f"{count:,} {name}" for name, count in ledger.causes.items())
    waited = f"; the longest answer took {format_ms(longest)}" if isinstance(longest, int | float) else ""
    slow = f"{format_count(requests.slow, 'request')} {'was' if requests.slow == 1 else 'were'} slow"
    yield (
        f"with {format_knob_value(search.found, search.unit)}: {format_count(requests.failed, 'request')} failed,"
        f" {slow}{f' ({why})' if why else ''}{waited}"
    )
    if requests.slow and not requests.failed:
        yield "slow is no failure; 'connlab advise' on a run that failed names the value with which nobody waits"
