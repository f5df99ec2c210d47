"""A comparison in the terminal: from what was set to what users felt."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from analysis.compare import narrative, numbers
from analysis.formatting import counted
from lab import paths
from lab.results.matrix_printing import print_matrix
from lab.run.verdicts import STYLES, show
from lab.scenario.catalogue import CATALOGUE, show_value

if TYPE_CHECKING:
    from analysis.compare.comparison_file import Counts, PairEntry, SettingEntry
    from lab.results.comparisons import Compared

# So many rows tell the story; comparison.json and the page have all.
_ROWS_MAX = 12
_NOISE_ROWS_MAX = 4
# Digits of an id that tell images apart.
_ID_SHOWN = 19

# What an answer may fill of a terminal, and of that claims and pairs.
_LINES_MAX, _CLAIMS_MAX, _PAIRS_MAX = 30, 5, 3

_STAGES = {
    "model": "what the model makes of it",
    "counters": "counters that moved",
    "packets": "packets",
    "users": "what users felt",
    "lab": "the lab's own account",
}
# Differences that are no mere noise.
_TOLD = ("changed", "unclear")
_STYLES = {"changed": "bold", "unclear": "yellow", "noise": "dim", "unknown": "yellow"}


def print_answer(console: Console, compared: Compared) -> None:
    """Print what a comparison found in at most 30 lines, and where the rest lies."""
    comparison = compared.comparison
    claims = list(_claims(compared))
    pairs, hidden = comparison.pairs[:_PAIRS_MAX], len(comparison.pairs) - _PAIRS_MAX
    left_out = sum(not run.used for group in comparison.groups for run in group.runs)
    # Title, remark on pairs and on runs, result, next step.
    free = _LINES_MAX - 5 - len(comparison.answer) - len(claims)
    shares = [free // len(pairs)] * len(pairs) if pairs else []

    _print_head(console, compared)
    for claim in claims:
        console.print(claim, soft_wrap=True)
    for pair, share in zip(pairs, shares, strict=True):
        for line in _of_pair(pair, share):
            console.print(line, soft_wrap=True)
    if hidden > 0:
        console.print(Text(f"{counted(hidden, 'pair')} more on the page", "dim"))
    if left_out:
        console.print(Text(f"{counted(left_out, 'run')} not counted; VERBOSE=1 (--verbose) says why", "yellow"))
    _print_end(console, compared)


def _claims(compared: Compared) -> Iterator[Text]:
    """Give the verdict and the claims of a series; those that do not hold come first."""
    verdict = compared.verdict
    if verdict is None:
        return
    yield Text.assemble("verdict: ", (verdict.verdict, STYLES[verdict.verdict]))
    ordered = sorted(verdict.predictions, key=lambda one: one.status == "true")
    for one in ordered[:_CLAIMS_MAX]:
        yield Text.assemble((f"  {one.status:<8}", STYLES[one.status]), one.says)
    if len(ordered) > _CLAIMS_MAX:
        yield Text(f"  {counted(len(ordered) - _CLAIMS_MAX, 'claim')} more on the page", "dim")


def _of_pair(pair: PairEntry, share: int) -> Iterator[Text]:
    """Tell of a pair in so many lines; where they do not suffice, what users felt is told first of all."""
    yield Text(f"{pair.b} beside {pair.a}", "bold")
    asked = [
        f"{one.name}: {_setting(one.name, one.a)} → {_setting(one.name, one.b)}" for one in _asked(pair, asked=True)
    ]
    yield Text(f"    set: {'; '.join(asked) or 'nothing differently'}")
    unasked = [one.name for one in _asked(pair, asked=False)]
    if unasked:
        yield Text(f"    differs though nobody asked for it: {', '.join(unasked)}", "yellow")
    told = narrative.lines(narrative.of_pair(pair)) or [narrative.nothing(pair)]
    room = max(share - (3 if unasked else 2), 1)
    if len(told) > room:
        kept = told[len(told) - max(room - 1, 1) :]
        told = [f"… {counted(len(told) - len(kept), 'group')} of figures more moved before that", *kept]
    yield from (Text(f"    {line}") for line in told)


def _asked(pair: PairEntry, *, asked: bool) -> list[SettingEntry]:
    return [setting for setting in pair.settings if setting.asked == asked]


def _print_head(console: Console, compared: Compared) -> None:
    console.print(Text(compared.comparison.title, "bold"), soft_wrap=True)
    for sentence in compared.comparison.answer:
        console.print(Text(sentence), soft_wrap=True)


def _print_end(console: Console, compared: Compared) -> None:
    console.print(f"result: {paths.shown(compared.folder)}/comparison.html, comparison.json", soft_wrap=True)


def print_comparison(console: Console, compared: Compared) -> None:
    """Print all of a comparison, and where it lies."""
    comparison = compared.comparison
    _print_head(console, compared)
    console.print()
    for group in comparison.groups:
        used = [run for run in group.runs if run.used]
        console.print(
            f"{group.name}: {counted(len(used), 'run')}: {', '.join(run.run for run in used) or 'none'}", soft_wrap=True
        )
        for run in group.runs:
            if not run.used:
                console.print(Text(f"    not counted: {run.run}: {run.why}", "yellow"), soft_wrap=True)
    if comparison.matrix:
        print_matrix(console, comparison.matrix)
    if comparison.matrix and not comparison.pairs:
        text = f"nothing to compare with yet: no run of the baseline {comparison.matrix.baseline} beside another cell"
        console.print(Text(text, "yellow"), soft_wrap=True)
    elif comparison.kind == "matrix":
        console.print(_pairs(comparison.pairs))
    else:
        for pair in comparison.pairs:
            _print_pair(console, pair, comparison.confidence)
    _print_end(console, compared)


def _print_pair(console: Console, pair: PairEntry, confidence: float) -> None:
    console.print()
    console.print(Text.assemble((f"{pair.b} beside {pair.a}", "bold underline")))
    unasked, asked = _asked(pair, asked=False), _asked(pair, asked=True)
    if unasked:
        console.print(Text("differs though nobody asked for it:", "bold yellow"))
        for setting in unasked:
            line = f"    {setting.name}: {_setting(setting.name, setting.a)} → {_setting(setting.name, setting.b)}"
            console.print(Text(line, "yellow"), soft_wrap=True)
    console.print(Text("set differently:" if asked else "nothing was set differently", "bold"))
    for setting in asked:
        line = f"    {setting.name}: {_setting(setting.name, setting.a)} → {_setting(setting.name, setting.b)}"
        console.print(line, soft_wrap=True)
    remarks = {numbers.remark(effect) for effect in pair.effects if effect.status == "unclear"}
    # What is true of every line is said once.
    common = remarks.pop() if len(remarks) == 1 else ""
    if common:
        console.print(Text(f"of all that is unclear: {common}", "yellow"), soft_wrap=True)
    for stage, heading in _STAGES.items():
        _print_stage(console, pair, stage, heading, common)
    noisy = [effect.status in _TOLD for effect in pair.effects if effect.noise is not None]
    chance = "nothing tells the noise"
    if noisy:
        chance = f"{sum(noisy)} figures differ by more than the noise; {pair.by_chance:.0f} would by chance"
    same = counted(pair.references, "run")
    references = f"; {same} of the same settings told of the noise" if pair.references else ""
    console.print(
        f"{chance}{references}. Intervals: {confidence:.0%}, bootstrap over runs", style="dim", soft_wrap=True
    )


def _setting(name: str, value: object) -> str:
    if value is None:
        return "none"
    if name in CATALOGUE and isinstance(value, bool | int | str):
        return show_value(name, value)
    return str(value)[:_ID_SHOWN] if str(value).startswith("sha256:") else show(value)


def _print_stage(console: Console, pair: PairEntry, stage: str, heading: str, common: str) -> None:
    effects = [effect for effect in pair.effects if effect.stage == stage]
    counts = next(counts for each, counts in pair.counts.items() if each == stage)
    told = [effect for effect in effects if effect.status in _TOLD]
    noise = [effect for effect in effects if effect.status == "noise"]
    shown = told[:_ROWS_MAX] + (noise[:_NOISE_ROWS_MAX] if stage == "users" else [])
    if shown:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=heading, title_justify="left", title_style="bold")
        for column in ("figure", pair.a, pair.b, "difference", ""):
            table.add_column(column, overflow="fold")
        for effect in shown:
            remark = "" if numbers.remark(effect) == common else numbers.remark(effect)
            name = f"{effect.figure}{_unit(effect.unit)}"
            cells = (name, numbers.sample(effect.a), numbers.sample(effect.b), numbers.difference(effect), remark)
            table.add_row(*cells, style=_STYLES[effect.status])
        console.print(table)
    rest = [f"{len(told) - _ROWS_MAX} more that differ"] if len(told) > _ROWS_MAX else []
    for name, count in (("within the noise", counts.noise), ("equal", counts.equal), ("unknown", counts.unknown)):
        if count:
            rest.append(f"{count} {name}")
    if rest:
        console.print(f"{'' if shown else f'{heading}: '}{', '.join(rest)}", style="dim", soft_wrap=True)


def _unit(unit: str) -> str:
    return f" ({unit})" if unit else ""


def _count(counts: Counts) -> str:
    return f"{counts.changed} ({counts.unclear})" if counts.unclear else str(counts.changed)


def _pairs(pairs: Iterable[PairEntry]) -> Table:
    """One line for each cell beside the baseline."""
    title = "beside the baseline: figures that changed (and, in brackets, that are unclear)"
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=title, title_justify="left", title_style="bold")
    for column in ("cell", "set differently", "unasked", "counters", "packets", "users", "most felt"):
        table.add_column(column, overflow="fold")
    for pair in pairs:
        felt = next((one for one in pair.effects if one.stage == "users" and one.status in _TOLD), None)
        most = f"{felt.figure}: {numbers.number(felt.a.mean)} → {numbers.number(felt.b.mean)}" if felt else ""
        asked = ", ".join(f"{one.name} = {_setting(one.name, one.b)}" for one in pair.settings if one.asked)
        unasked = str(sum(not one.asked for one in pair.settings) or "")
        told = [_count(counts) for stage, counts in pair.counts.items() if stage not in ("model", "lab")]
        table.add_row(pair.b, asked, unasked, *told, most)
    return table
