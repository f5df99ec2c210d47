"""Compares two groups of runs, or the cells of a series: settings, then every figure from the cause to the user."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Literal

from analysis.compare import data_quality, intervals, narrative
from analysis.compare.comparison_file import (
    AxisEntry,
    CellEntry,
    Comparison,
    Counts,
    Effect,
    GroupEntry,
    MatrixEntry,
    PairEntry,
    RunEntry,
    Sample,
    SearchEntry,
    Stage,
    State,
    Status,
    TryEntry,
)
from analysis.compare.intervals import FEWEST_OF_TWO, Groups, Interval, Spread, Values, find_intervals
from analysis.compare.replicates import (
    CompareError,
    Group,
    RunRecord,
    SeriesRuns,
    figure_names,
    figure_values,
    find_changes,
    find_mismatch,
    load_run,
    require_comparable,
)
from analysis.compare.verdict import SeriesVerdict
from formats.series import Cell, Series

# Up to this many arms are compared pairwise; with more, each cell is compared with the baseline.
_ALL_PAIRS_MAX = 4

_FAILED = "client.requests.failed"
# What a matrix is asked about first.
_HEADLINES = (_FAILED, "client.users.failed", "client.latency_ms.mean", "client.latency_ms.p95")

_STAGES = {"model": Stage.MODEL, "flows": Stage.PACKETS, "ledger": Stage.USERS, "client": Stage.USERS}
# How well the account adds up, which nobody on the way feels.
_OF_THE_LAB = ("ledger.identities.", "ledger.unexplained")
_STAGE_ORDER, _STATUS_ORDER = ({each: at for at, each in enumerate(kind)} for kind in (Stage, Status))

Means = Mapping[Groups, Interval]


def compare_groups(a: Group, b: Group, others: Iterable[Path] = ()) -> Comparison:
    """Compare two groups of runs; others, by their folders, tell of the noise if they repeat a or b."""
    require_comparable(a, b)
    compared = {run.folder.resolve() for run in (*a.runs, *b.runs)}
    found = [_load_or_none(folder) for folder in others if folder.resolve() not in compared]
    usable = [run for run in found if run is not None and run.unusable is None]
    more = [[run for run in usable if _repeats(group.example, run)] for group in (a, b)]
    # With one cell on both sides the difference in question must not count as its noise.
    one_cell = _repeats(a.example, b.example)
    repetitions = [a.used, b.used, more[0]] if one_cell else [a.used + more[0], b.used + more[1]]
    pair = _compare_pair(a, b, repetitions, _mean_intervals([a, b]))
    return Comparison(
        contract="connlab.comparison/1",
        kind="runs",
        title=f"{a.example.scenario}: {_named(a)} and {_named(b)}",
        question="",
        answer=list(narrative.answer_runs(pair, (len(a.used), len(b.used)))),
        figure=None,
        figure_name=None,
        confidence=intervals.CONFIDENCE,
        groups=[_group(a), _group(b)],
        pairs=[pair],
        matrix=None,
        trust=None,
    )


def _repeats(run: RunRecord, other: RunRecord) -> bool:
    return run.scenario == other.scenario and find_mismatch(run, other) is None


def _load_or_none(folder: Path) -> RunRecord | None:
    """Return a run that nobody asked for; None if it cannot be read."""
    try:
        return load_run(folder)
    except CompareError:
        return None


def _named(group: Group) -> str:
    first, *rest = (run.manifest.run for run in group.runs)
    return f"{group.name} = {first}{f' and {len(rest)} more' if rest else ''}"


def compare_cells(series: SeriesRuns, verdict: SeriesVerdict) -> Comparison:
    """Compare the cells of a judged series: each of few arms with each, else each cell with the baseline."""
    plan, groups = series.plan, series.groups
    cells = [cell.cell for cell in plan.cells if cell.cell in groups]
    ordered = sorted(cells, key=lambda cell: cell != plan.baseline)
    if plan.kind == "arms" and len(ordered) <= _ALL_PAIRS_MAX:
        names = list(combinations(ordered, 2))
    else:
        names = [(ordered[0], cell) for cell in ordered[1:]] if ordered and ordered[0] == plan.baseline else []
    for a, b in names:
        require_comparable(groups[a], groups[b], scenarios_differ=True)
    means = _mean_intervals(list(groups.values()))
    pairs = [_compare_pair(groups[a], groups[b], [groups[a].used, groups[b].used], means) for a, b in names]
    figure = narrative.find_main_figure(plan)
    matrix = _matrix(series, means, figure)
    return Comparison(
        contract="connlab.comparison/1",
        kind=plan.kind,
        title=plan.title or plan.name,
        question=plan.question,
        answer=list(narrative.answer_series(plan, figure, pairs, matrix, verdict)),
        figure=figure,
        figure_name=narrative.label_for(figure) if figure else None,
        confidence=intervals.CONFIDENCE,
        groups=[_group(groups[cell]) for cell in cells],
        pairs=pairs,
        matrix=matrix,
        search=_search(plan),
        trust=data_quality.assess(series, figure, pairs),
    )


def _group(group: Group) -> GroupEntry:
    runs = [RunEntry(run=run.name, used=run.unusable is None, why=run.unusable) for run in group.runs]
    return GroupEntry(name=group.name, runs=runs)


def _mean_intervals(groups: Sequence[Group]) -> Means:
    """Return the interval of the mean of every figure in every group."""
    return find_intervals((figure_values(group.used, name),) for name in figure_names(groups) for group in groups)


def _compare_pair(a: Group, b: Group, repetitions: Sequence[Sequence[RunRecord]], means: Means) -> PairEntry:
    """Compare b with a; `repetitions`: groups of runs of one cell each, which tell how far such runs lie apart."""
    # Without a run that is evidence every figure is unknown, for a reason that stands beside the run.
    effects = _effects(a, b, repetitions, means) if a.used and b.used else []
    counted = Counter((effect.stage, effect.status) for effect in effects)
    noisy = sum(effect.noise is not None for effect in effects)
    return PairEntry(
        a=a.name,
        b=b.name,
        settings=find_changes(a.example, b.example),
        counts={stage: Counts(**{status.value: counted[stage, status] for status in Status}) for stage in Stage},
        by_chance=noisy * (1 - intervals.CONFIDENCE),
        references=sum(map(len, repetitions)) - len(a.used) - len(b.used),
        effects=[effect for effect in effects if effect.status is not Status.EQUAL],
    )


def _effects(a: Group, b: Group, repetitions: Sequence[Sequence[RunRecord]], means: Means) -> list[Effect]:
    """Compare every figure of two groups, ordered by stage, then by status, then by the size of the difference."""
    pairs = {name: (figure_values(a.used, name), figure_values(b.used, name)) for name in figure_names((a, b))}
    differences = find_intervals(pair for pair in pairs.values() if all(pair))
    found = []
    for name, pair in pairs.items():
        samples = [Sample.of(values, means.get((values,))) for values in pair]
        stage, unit = stage_of(name), narrative.unit_for(name)
        effect = Effect(figure=name, stage=stage, unit=unit, status=Status.UNKNOWN, a=samples[0], b=samples[1])
        if all(pair):
            spread = intervals.spread([figure_values(runs, name) for runs in repetitions])
            changes = _judge(stage, *pair, differences.get(pair), spread)
        else:
            without = a if not pair[0] else b
            changes = {"why": without.used[0].why.get(name, f"{without.name} has no such figure")}
        found.append(effect.model_copy(update=changes))
    return sorted(
        found,
        key=lambda each: (
            _STAGE_ORDER[each.stage], _STATUS_ORDER[each.status], -each.relative, -abs(each.difference or 0),
            each.figure,
        ),
    )  # fmt: skip


def stage_of(figure: str) -> Stage:
    """Return where a figure stands on the way from the cause to the user."""
    if figure.startswith(_OF_THE_LAB):
        return Stage.LAB
    return _STAGES.get(figure.partition(".")[0], Stage.COUNTERS)


def _judge(stage: Stage, a: Values, b: Values, interval: Interval | None, spread: Spread | None) -> dict[str, object]:
    """Return what an effect says of two groups that know a figure."""
    difference = sum(b) / len(b) - sum(a) / len(a)
    found: dict[str, object] = {
        "difference": difference,
        "low": interval and interval.low,
        "high": interval and interval.high,
    }
    if len({*a, *b}) == 1:
        return found | {"status": Status.EQUAL, "difference": 0.0}
    if stage is Stage.MODEL and len(set(a)) == len(set(b)) == 1:
        # Computed from the settings, so it has no noise.
        return found | {"status": Status.CHANGED}
    noise = spread.noise(len(a), len(b)) if spread else None
    status, why = _status(a, b, difference, interval, noise)
    needed = None
    if status is not Status.CHANGED and difference:
        needed = intervals.repetitions_needed(difference, spread.deviation) if spread else FEWEST_OF_TWO
    standardised = intervals.standardised(difference, a, b)
    return found | {
        "status": status, "noise": noise, "standardised": standardised, "repetitions_needed": needed, "why": why,
    }  # fmt: skip


def _status(
    a: Values, b: Values, difference: float, interval: Interval | None, noise: float | None
) -> tuple[Status, str | None]:
    if noise is None:
        return Status.UNCLEAR, "without repetitions, the noise is unknown"
    if abs(difference) <= noise:
        return Status.NOISE, None
    # Where every repetition came out the same, there is nothing that further ones would average out.
    exact = min(len(a), len(b)) > 1 and len(set(a)) == len(set(b)) == 1
    if interval is None or not (exact or intervals.suffice(len(a), len(b))):
        return Status.UNCLEAR, f"{len(a)} and {len(b)} runs are too few for an interval"
    if interval.has(0):
        return Status.UNCLEAR, "the interval of the difference includes zero"
    return Status.CHANGED, None


def _matrix(series: SeriesRuns, means: Means, figure: str | None) -> MatrixEntry:
    plan, groups = series.plan, series.groups
    values = {
        name: {cell: figure_values(group.used, name) for cell, group in groups.items()}
        for name in figure_names(groups.values())
    }
    about = [*([figure] if figure else []), *plan.figures]
    varying = {
        name: by_cell
        for name, by_cell in values.items()
        if name in about or len({each for cell in by_cell.values() for each in cell}) > 1
    }
    names = [name for name in dict.fromkeys([*about, *_HEADLINES]) if name in varying]
    names += sorted(varying.keys() - set(names), key=lambda name: (-_STAGE_ORDER[stage_of(name)], name))
    samples = {
        cell: {name: Sample.of(known, means.get((known,))) for name in names if (known := varying[name][cell])}
        for cell in groups
    }
    return MatrixEntry(
        axes=[AxisEntry(name=axis.name, levels=[level.name for level in axis.levels]) for axis in plan.axes],
        baseline=plan.baseline,
        about=plan.figures,
        figures=names,
        cells=[_cell(series, cell, samples.get(cell.cell, {})) for cell in plan.cells],
    )


def _search(plan: Series) -> SearchEntry | None:
    if plan.search is None:
        return None
    values = {cell.cell: cell.knobs.get(plan.search.knob) for cell in plan.cells}
    return SearchEntry(
        **plan.search.model_dump(include={"knob", "until", "goal", "predicted", "found"}),
        tries=[
            TryEntry(value=value, cell=place.cell, holds=place.holds, run=place.run)
            for place in plan.runs
            if isinstance(value := values.get(place.cell), int)
        ],
    )


def _cell(series: SeriesRuns, cell: Cell, figures: dict[str, Sample]) -> CellEntry:
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
    failed = figure_values(used, _FAILED)
    if not failed:
        return "inconclusive" if begun else "missing"
    if all(failed):
        return "failing"
    return "mixed" if any(failed) else "clean"


def _predicted(cell: Cell, group: Group | None) -> tuple[int, Literal["model", "capacity"]] | tuple[None, None]:
    """Return the users who fail: by the model, else by the places that there are at once, if users are what it counts.

    Both are known before the runs; a run has them where the series does not.
    """
    example = group.example if group else None

    def known(name: str) -> object:
        measured = example.number(f"model.{name}") if example else None
        return cell.model.get(name) if measured is None else measured

    failed, capacity = known("users_failed"), known("accept_capacity")
    if isinstance(failed, int):
        return failed, "model"
    users = example.number("load.users") if example and _holds_places(example) else None
    if isinstance(capacity, int) and isinstance(users, int):
        return max(users - capacity, 0), "capacity"
    return None, None


def _holds_places(run: RunRecord) -> bool:
    """Return whether users connect directly to the backends, each with a connection of its own."""
    workload = run.manifest.value_of("load.workload")
    return workload in ("users", "long_polling") and run.manifest.path == ["k6", "backend"]
