"""Makes a comparison of two groups of runs, or of a series."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Literal

from analysis.compare import answer, data_quality, figure_labels, groups, intervals, replicates, runs
from analysis.compare.comparison_file import (
    SCHEMA,
    AxisEntry,
    CellEntry,
    Comparison,
    Counts,
    EffectEntry,
    GroupEntry,
    MatrixEntry,
    PairEntry,
    RunEntry,
    SampleEntry,
    SearchEntry,
    SettingEntry,
    State,
    TryEntry,
)
from analysis.compare.differences import changes, mixed
from analysis.compare.effects import Effect, Stage, Status, effects, stage_of
from analysis.compare.groups import Group
from analysis.compare.incomparable import CompareError
from analysis.compare.intervals import Interval
from analysis.compare.replicates import Sample, Values
from analysis.compare.runs import RunRecord
from analysis.compare.series import Cell, Plan, Series
from analysis.compare.verdict import SeriesVerdict

# Up to this many arms are compared pairwise; with more, each cell is compared with the baseline.
_ALL_PAIRS_MAX = 4

_FAILED = "client.requests.failed"
_USERS = "load.users"
_USERS_FAILED = "model.users_failed"
_CAPACITY = "model.accept_capacity"

# What a matrix is asked about first.
_HEADLINES = (_FAILED, "client.users.failed", "client.latency_ms.mean", "client.latency_ms.p95")

_DIGITS = 6


def of_groups(a: Group, b: Group, others: Iterable[Path] = ()) -> Comparison:
    """Compare two groups of runs.

    Args:
        a: the group to compare with.
        b: the other.
        others: folders of runs among which may be further repetitions of a or b, which tell of the noise.
    """
    groups.require_comparable(a, b)
    compared = {run.folder.resolve() for run in (*a.runs, *b.runs)}
    found = [_read(folder) for folder in others if folder.resolve() not in compared]
    usable = [run for run in found if run is not None and run.unusable is None]
    more = [[run for run in usable if _repeats(group.example, run)] for group in (a, b)]
    # With one cell on both sides the difference in question must not count as its noise.
    one_cell = _repeats(a.example, b.example)
    repetitions = [a.used, b.used, more[0]] if one_cell else [a.used + more[0], b.used + more[1]]
    pair = _pair(a, b, repetitions, replicates.all_mean_intervals([a, b]))
    return Comparison(
        contract=SCHEMA,
        kind="runs",
        title=f"{a.example.scenario}: {_named(a)} and {_named(b)}",
        question="",
        answer=list(answer.of_runs(pair, (len(a.used), len(b.used)))),
        figure=None,
        figure_name=None,
        confidence=intervals.CONFIDENCE,
        groups=[_group(a), _group(b)],
        pairs=[pair],
        matrix=None,
        trust=None,
    )


def _repeats(run: RunRecord, other: RunRecord) -> bool:
    return run.scenario == other.scenario and mixed(run, other) is None


def _read(folder: Path) -> RunRecord | None:
    """A run that nobody asked for: one that cannot be read is none."""
    try:
        return runs.read(folder)
    except CompareError:
        return None


def _named(group: Group) -> str:
    first, *rest = (run.manifest["run"] for run in group.runs)
    return f"{group.name} = {first}{f' and {len(rest)} more' if rest else ''}"


def of_series(series: Series, judged: SeriesVerdict) -> Comparison:
    """Compare the cells of a series that was judged: each of few arms with each, else each cell with the baseline."""
    cells = [cell.cell for cell in series.plan.cells if cell.cell in series.groups]
    baseline = series.plan.baseline
    ordered = sorted(cells, key=lambda cell: cell != baseline)
    if series.plan.kind == "arms" and len(ordered) <= _ALL_PAIRS_MAX:
        pairs = list(combinations(ordered, 2))
    else:
        pairs = [(ordered[0], cell) for cell in ordered[1:]] if ordered and ordered[0] == baseline else []
    for a, b in pairs:
        groups.require_comparable(series.groups[a], series.groups[b], scenarios_differ=True)
    means = replicates.all_mean_intervals([series.groups[cell] for cell in cells])
    entries = [
        _pair(series.groups[a], series.groups[b], [series.groups[each].used for each in (a, b)], means)
        for a, b in pairs
    ]
    figure = answer.main_figure(series.plan)
    matrix = _matrix(series, means, figure)
    return Comparison(
        contract=SCHEMA,
        kind=series.plan.kind,
        title=series.plan.title or series.plan.name,
        question=series.plan.question,
        answer=list(answer.of_series(series.plan, figure, entries, matrix, judged)),
        figure=figure,
        figure_name=figure_labels.name_of(figure) if figure else None,
        confidence=intervals.CONFIDENCE,
        groups=[_group(series.groups[cell]) for cell in cells],
        pairs=entries,
        matrix=matrix,
        search=_search(series.plan),
        trust=data_quality.of_series(series, figure, entries),
    )


def _group(group: Group) -> GroupEntry:
    return GroupEntry(
        name=group.name,
        runs=[RunEntry(run=run.name, used=run.unusable is None, why=run.unusable) for run in group.runs],
    )


def _pair(
    a: Group, b: Group, repetitions: Sequence[Sequence[RunRecord]], means: Mapping[Values, Interval]
) -> PairEntry:
    # Without a run that is evidence every figure is unknown, for a reason that stands beside the run.
    found = effects(a, b, repetitions, means) if a.used and b.used else []
    counted = {stage: Counter(effect.status.value for effect in found if effect.stage is stage) for stage in Stage}
    noisy = sum(effect.noise is not None for effect in found)
    return PairEntry(
        a=a.name,
        b=b.name,
        settings=[
            SettingEntry(name=each.name, a=each.a, b=each.b, asked=each.asked) for each in changes(a.example, b.example)
        ],
        counts={
            stage: Counts(**{status.value: counts[status.value] for status in Status})
            for stage, counts in counted.items()
        },
        by_chance=_rounded(noisy * (1 - intervals.CONFIDENCE)),
        references=sum(map(len, repetitions)) - len(a.used) - len(b.used),
        effects=[_effect(effect) for effect in found if effect.status is not Status.EQUAL],
    )


def _effect(effect: Effect) -> EffectEntry:
    return EffectEntry(
        figure=effect.figure,
        stage=effect.stage,
        unit=effect.unit,
        status=effect.status,
        a=_sample(effect.a),
        b=_sample(effect.b),
        difference=_rounded_or_none(effect.difference),
        low=_rounded_or_none(effect.interval.low if effect.interval else None),
        high=_rounded_or_none(effect.interval.high if effect.interval else None),
        standardised=_rounded_or_none(effect.standardised),
        noise=_rounded_or_none(effect.noise),
        repetitions_needed=effect.needed,
        why=effect.why,
    )


def _sample(sample: Sample) -> SampleEntry:
    return SampleEntry(
        values=list(sample.values),
        mean=_rounded_or_none(sample.mean),
        low=_rounded_or_none(sample.interval.low if sample.interval else None),
        high=_rounded_or_none(sample.interval.high if sample.interval else None),
    )


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")


def _rounded_or_none(value: float | None) -> float | None:
    return None if value is None else _rounded(value)


def _matrix(series: Series, means: Mapping[Values, Interval], figure: str | None) -> MatrixEntry:
    found = list(series.groups.values())
    values = {
        name: {group.name: replicates.values(group.used, name) for group in found} for name in replicates.names(found)
    }
    about = [*([figure] if figure else []), *series.plan.figures]
    varying = {
        name: by_cell
        for name, by_cell in values.items()
        if name in about or len({each for cell in by_cell.values() for each in cell}) > 1
    }
    first = dict.fromkeys([*about, *_HEADLINES])
    stages = list(Stage)
    names = [name for name in first if name in varying]
    names += sorted(varying.keys() - set(names), key=lambda name: (-stages.index(stage_of(name)), name))
    return MatrixEntry(
        axes=[AxisEntry(name=axis.name, levels=[level.name for level in axis.levels]) for axis in series.plan.axes],
        baseline=series.plan.baseline,
        about=series.plan.figures,
        figures=names,
        cells=[
            _cell(
                series,
                cell,
                {
                    name: _sample(Sample(sample, means.get(sample)))
                    for name in names
                    if (sample := varying[name].get(cell.cell))
                },
            )
            for cell in series.plan.cells
        ],
    )


def _search(plan: Plan) -> SearchEntry | None:
    if plan.search is None:
        return None
    values = {cell.cell: cell.knobs.get(plan.search.knob) for cell in plan.cells}
    return SearchEntry(
        knob=plan.search.knob,
        until=plan.search.until,
        goal=plan.search.goal,
        predicted=plan.search.predicted,
        found=plan.search.found,
        tries=[
            TryEntry(value=value, cell=place.cell, holds=place.holds, run=place.run)
            for place in plan.runs
            if isinstance(value := values.get(place.cell), int)
        ],
    )


def _cell(series: Series, cell: Cell, figures: dict[str, SampleEntry]) -> CellEntry:
    group, places = series.groups.get(cell.cell), series.places(cell.cell)
    used = group.used if group else []
    state = _state(used, begun=any(place.run is not None for place in places))
    predicted, by = _predicted(cell, group)
    told = predicted is not None and state in ("clean", "failing")
    return CellEntry(
        cell=cell.cell,
        levels=cell.levels,
        planned=len(places),
        used=len(used),
        state=state,
        predicted_users_failed=predicted,
        predicted_by=by,
        agrees=(state == "failing") == (predicted != 0) if told else None,
        figures=figures,
    )


def _state(used: Sequence[RunRecord], *, begun: bool) -> State:
    failed = replicates.values(used, _FAILED)
    if not failed:
        return "inconclusive" if begun else "missing"
    if all(failed):
        return "failing"
    return "mixed" if any(failed) else "clean"


def _predicted(cell: Cell, group: Group | None) -> tuple[int, Literal["model", "capacity"]] | tuple[None, None]:
    """The users who fail: by the model, else by the places that there are at once, if users are what it counts.

    Both are known before the runs; a run has them where the series does not.
    """
    example = group.example if group else None
    known = {
        name: example.number(name) if example and example.number(name) is not None else cell.model.get(short)
        for name, short in ((_USERS_FAILED, "users_failed"), (_CAPACITY, "accept_capacity"))
    }
    failed, capacity = known[_USERS_FAILED], known[_CAPACITY]
    if isinstance(failed, int):
        return failed, "model"
    users = example.number(_USERS) if example and _holds_places(example) else None
    if isinstance(capacity, int) and isinstance(users, int):
        return max(users - capacity, 0), "capacity"
    return None, None


def _holds_places(run: RunRecord) -> bool:
    """Whether users stand straight before the backends, each with a connection of its own."""
    workload = run.manifest["knobs"].get("load.workload", {}).get("value")
    return workload in ("users", "long_polling") and run.manifest.get("path") == ["k6", "backend"]
