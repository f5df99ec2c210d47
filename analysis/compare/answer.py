"""The answer of a comparison in a few sentences: what differs, by how much, and how sure that is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from analysis.compare import numbers
from analysis.compare.figure_labels import called
from analysis.compare.intervals import REPETITIONS_MAX
from analysis.formatting import counted

if TYPE_CHECKING:
    from analysis.compare.comparison_file import EffectEntry, MatrixEntry, PairEntry
    from analysis.compare.series import Plan, Search
    from analysis.compare.verdict import SeriesVerdict

_OF_ARM = re.compile(r"\barms\.[a-z0-9_]+\.([a-z][a-z0-9_.]*)")
# Differences that an answer tells of; the page has them all.
_PAIRS = 3
# Cells that a sentence names; a map shows more at a glance.
_NAMED_MAX = 5


def main_figure(plan: Plan) -> str | None:
    """The figure that a series is about: the first it names, else of its claims, else beside what was published."""
    if plan.figures:
        return plan.figures[0]
    stated = [each.expression for each in plan.predictions] + list(
        plan.published.here.values() if plan.published else ()
    )
    return next((match[1] for each in stated for match in _OF_ARM.finditer(each)), None)


def of_series(
    plan: Plan, figure: str | None, pairs: list[PairEntry], matrix: MatrixEntry, verdict: SeriesVerdict
) -> Iterator[str]:
    """Answer what a series asked.

    Args:
        plan: of the series.
        figure: that it is about.
        pairs: its cells side by side.
        matrix: the cells.
        verdict: on its claims.
    """
    if plan.search is not None:
        yield _found(plan.search)
    elif plan.kind == "matrix":
        yield from _border(matrix)
    elif not pairs:
        yield "Nothing can be compared yet: no two arms have a run that came to its end. The same command goes on."
    elif figure is None:
        yield (
            "Neither figures: nor a claim over the arms says what this series is about. What moved between them stands"
            " below; name the figure in the scenario, as arms: {figures: […]}, and it is answered here."
        )
    else:
        yield from (_told(pair, figure, matrix) for pair in pairs[:_PAIRS])
        if len(pairs) > _PAIRS:
            yield f"{counted(len(pairs) - _PAIRS, 'pair')} more below."
    yield from _claims(verdict)


def of_runs(pair: PairEntry, used: tuple[int, int]) -> Iterator[str]:
    """Answer what two groups of runs differ in."""
    if min(used) < 2:  # noqa: PLR2004  one run has no spread
        yield (
            f"One run of {pair.a} or {pair.b} does not tell a difference from chance: repeat both, and compare groups"
            " of runs."
        )
        return
    changed = [each for each in pair.effects if each.status == "changed" and each.stage == "users"]
    if not changed:
        yield f"Nothing that users feel differs between {pair.a} and {pair.b} by more than repetitions do."
    yield from (_difference(pair, each) for each in changed[:_PAIRS])


def _told(pair: PairEntry, figure: str, matrix: MatrixEntry) -> str:
    effect = next((each for each in pair.effects if each.figure == figure), None)
    if effect is not None:
        return _difference(pair, effect)
    both = [cell.figures.get(figure) for cell in matrix.cells if cell.cell in (pair.a, pair.b)]
    if any(each is None or each.mean is None for each in both):
        return f"{called(figure, begins=True)} is not known of both {pair.a} and {pair.b}."
    return f"{called(figure, begins=True)} is the same with {pair.a} and with {pair.b}."


def _difference(pair: PairEntry, effect: EffectEntry) -> str:
    unit = f" {effect.unit}" if effect.unit else ""
    figure = called(effect.figure, begins=True)
    if effect.status == "unknown":
        return f"{figure} is not known of both {pair.a} and {pair.b}: {effect.why}."
    if effect.status == "noise":
        return f"{figure} differs between {pair.a} and {pair.b} by no more than repetitions of one of them do."
    runs = min(len(effect.a.values), len(effect.b.values))
    if effect.status == "unclear":
        needed = effect.repetitions_needed
        more = f"; {'more than ' if needed == REPETITIONS_MAX else 'about '}{needed} would" if needed else ""
        have = "One repetition" if runs == 1 else f"{runs} repetitions"
        return f"{have} cannot tell whether {called(effect.figure)} differs between {pair.a} and {pair.b}{more}."
    low, high = sorted(abs(each) for each in (effect.low or 0, effect.high or 0))
    word = "lower" if (effect.difference or 0) < 0 else "higher"
    return (
        f"{figure} is {numbers.number(abs(effect.difference or 0))}{unit} {word} with {pair.b} than with {pair.a}:"
        f" {numbers.number(effect.b.mean)} in place of {numbers.number(effect.a.mean)}{unit}"
        f" (95 %: {numbers.number(low)} to {numbers.number(high)}; {counted(runs, 'repetition')} of each)."
    )


def _border(matrix: MatrixEntry) -> Iterator[str]:
    told = [cell for cell in matrix.cells if cell.agrees is not None]
    runs = [cell.used for cell in matrix.cells]
    states = {state: sum(cell.state == state for cell in matrix.cells) for state in ("clean", "failing", "mixed")}
    open_ = len(matrix.cells) - sum(states.values())
    said = f"Users failed in {states['failing'] + states['mixed']} of {counted(len(matrix.cells), 'cell')}"
    said += f", in {states['mixed']} of them not in every run" if states["mixed"] else ""
    failed = [cell.cell for cell in matrix.cells if cell.state in ("failing", "mixed")]
    lines = list(_by_level(matrix)) if failed else []
    said += f": {', '.join(failed)}" if 0 < len(failed) <= _NAMED_MAX and not lines else ""
    yield said + (f"; {open_} cannot be told." if open_ else ".")
    yield from lines
    if told:
        wrong = [cell.cell for cell in told if not cell.agrees]
        where = f" It is otherwise in {', '.join(wrong)}." if wrong else ""
        right = f"{len(told) - len(wrong)} of {counted(len(told), 'cell')}"
        yield f"The model says where users fail and where none does; the runs agree with it in {right}.{where}"
    if max(runs) == 1:
        yield "Each cell ran once, so nothing tells how far repetitions lie apart."


def _by_level(matrix: MatrixEntry) -> Iterator[str]:
    """Where the border lies in a matrix of two axes: for each level of the second, which of the first fail."""
    if len(matrix.axes) != 2 or len(matrix.axes[1].levels) > _NAMED_MAX:  # noqa: PLR2004
        return
    down, across = matrix.axes
    told = []
    for level in across.levels:
        cells = [cell for cell in matrix.cells if cell.levels[across.name] == level]
        failing = [cell.levels[down.name] for cell in cells if cell.state in ("failing", "mixed")]
        clean = [cell.levels[down.name] for cell in cells if cell.state == "clean"]
        ends = [f"fails with {', '.join(failing)}"] if failing else []
        ends += [f"is clean with {', '.join(clean)}"] if clean else []
        if ends:
            told.append(f"{level} {' and '.join(ends)}")
    yield f"{across.name} by {down.name}: {'; '.join(told)}."


def _found(search: Search) -> str:
    if search.found is None:
        why = f": {search.why}" if search.why else ""
        return f"No value of {search.knob} was found at which it begins to hold that {search.until}{why}."
    end = "smallest" if search.goal == "smallest" else "largest"
    said = f"The {end} {search.knob} with which {search.until} holds is {search.found:,}."
    if search.predicted is None:
        return f"{said} The model does not say."
    here = "there, too" if search.predicted == search.found else f"at {search.predicted:,}"
    return f"{said} The model had it {here}."


def _claims(verdict: SeriesVerdict) -> Iterator[str]:
    claims = verdict.predictions
    if not claims:
        return
    false = [each.id for each in claims if each.status == "false"]
    open_ = [each.id for each in claims if each.status == "unknown"]
    if not false and not open_:
        all_of_them = {1: "The claim holds.", 2: "Both claims hold."}
        yield all_of_them.get(len(claims), f"All {len(claims)} claims hold.")
    if false:
        yield f"{len(false)} of {counted(len(claims), 'claim')} does not hold: {', '.join(false)}."
    if open_:
        yield f"{len(open_)} of {counted(len(claims), 'claim')} cannot be decided: {', '.join(open_)}."
