"""The narrative of a comparison: its answer in a few sentences, what moved from the settings to the users, and labels.

Figures that mean the same are grouped under a name, and listed only if they changed by more than noise and enough to
matter.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from analysis.compare.comparison_file import Effect, MatrixEntry, PairEntry, Sample, Stage
from analysis.compare.intervals import REPETITIONS_MAX
from analysis.compare.verdict import SeriesVerdict
from analysis.figures.catalogue import find
from analysis.formatting import format_count, format_number
from formats.series import Search, Series

_STATISTICS = {
    "min": "shortest {}",
    "mean": "mean {}",
    "p50": "median {}",
    "p90": "90th percentile of the {}",
    "p95": "95th percentile of the {}",
    "p99": "99th percentile of the {}",
    "max": "longest {}",
}
_TIMES = {"client.latency_ms": "answer time", "client.dial_ms": "time to connect"}
_COUNTS = {
    "client.requests.ok_per_second": "throughput",
    "client.requests.ok": "number of answered requests",
    "client.requests.failed": "number of failed requests",
    "client.users.failed": "number of users that failed",
    "client.users.served": "number of users served",
    "client.dials.total": "number of attempts to connect",
}
_OF_TIMES = re.compile(rf"({'|'.join(map(re.escape, _TIMES))})\.({'|'.join(_STATISTICS)})")


def label_for(figure: str) -> str | None:
    """Return what people call a figure; None where it has only its identifier."""
    times = _OF_TIMES.fullmatch(figure)
    return _STATISTICS[times[2]].format(_TIMES[times[1]]) if times else _COUNTS.get(figure)


def in_sentence(figure: str, *, begins: bool = False) -> str:
    """Return a figure's label with its article, or its identifier; `begins`: where the sentence begins with it."""
    label = label_for(figure)
    return figure if label is None else f"{'The' if begins else 'the'} {label}"


def unit_for(figure: str) -> str:
    """Return a figure's unit, empty for a count."""
    found = find(figure)
    return found[0].unit if found else ""


def with_unit(value: str, unit: str) -> str:
    """Return a number with its unit, if it has one."""
    return f"{value} {unit}" if unit else value


def _interval(low: float | None, high: float | None) -> str:
    return "" if low is None else f" [{format_number(low)}, {format_number(high)}]"


def format_sample(sample: Sample | None) -> str:
    """Return a mean, with its interval where the runs differ."""
    if sample is None or sample.mean is None:
        return "unknown"
    return format_number(sample.mean) + ("" if sample.low == sample.high else _interval(sample.low, sample.high))


def format_difference(effect: Effect) -> str:
    """Return a difference with its interval."""
    if effect.difference is None:
        return ""
    return format_number(effect.difference, signed=True) + _interval(effect.low, effect.high)


def remark(effect: Effect) -> str:
    """Return why a difference is none to build on, and how many runs it would take; nothing of one that is."""
    if effect.status == "changed":
        return ""
    if effect.status == "noise":
        return "within the noise"
    needed = effect.repetitions_needed
    takes = f"; {'more than ' if needed == REPETITIONS_MAX else ''}{needed} of each would be needed" if needed else ""
    return f"{effect.why}{takes}"


_OF_ARM = re.compile(r"\barms\.[a-z0-9_]+\.([a-z][a-z0-9_.]*)")
# Differences that an answer tells of; the page has them all.
_PAIRS = 3
# Cells that a sentence names; a map shows more at a glance.
_NAMED_MAX = 5


def find_main_figure(plan: Series) -> str | None:
    """Return the figure that a series is about: the first it names, else of its claims, else of what was published."""
    if plan.figures:
        return plan.figures[0]
    stated = [each.expression for each in plan.predictions] + list(
        plan.published.here.values() if plan.published else ()
    )
    return next((match[1] for each in stated for match in _OF_ARM.finditer(each)), None)


def answer_series(
    plan: Series, figure: str | None, pairs: list[PairEntry], matrix: MatrixEntry, verdict: SeriesVerdict
) -> Iterator[str]:
    """Yield what answers a series' question, in sentences."""
    if plan.search is not None:
        yield _found(plan.search)
    elif plan.kind == "matrix":
        yield from _border(matrix)
    elif not pairs:
        yield "Nothing can be compared yet: no two arms have a complete run. The same command resumes the series."
    elif figure is None:
        yield (
            "The scenario names no figure that this series is about, so there is no short answer. What changed is"
            " below; name a figure in the scenario, as arms: {figures: […]}."
        )
    else:
        yield from (_told(pair, figure, matrix) for pair in pairs[:_PAIRS])
        if len(pairs) > _PAIRS:
            yield f"{format_count(len(pairs) - _PAIRS, 'pair')} more below."
    yield from _claims(verdict)


def answer_runs(pair: PairEntry, used: tuple[int, int]) -> Iterator[str]:
    """Yield what two groups of runs differ in, in sentences."""
    if min(used) < 2:  # noqa: PLR2004  one run has no spread
        yield (
            f"One run of {pair.a} or {pair.b} cannot tell a difference from chance: repeat both, and compare groups"
            " of runs."
        )
        return
    changed = [each for each in pair.effects if each.status == "changed" and each.stage == "users"]
    if not changed:
        yield f"No figure of the users differs between {pair.a} and {pair.b} by more than repetitions do."
    yield from (_difference(pair, each) for each in changed[:_PAIRS])


def _told(pair: PairEntry, figure: str, matrix: MatrixEntry) -> str:
    effect = next((each for each in pair.effects if each.figure == figure), None)
    if effect is not None:
        return _difference(pair, effect)
    both = [cell.figures.get(figure) for cell in matrix.cells if cell.cell in (pair.a, pair.b)]
    begin = in_sentence(figure, begins=True)
    if any(each is None or each.mean is None for each in both):
        return f"{begin} is unknown for {pair.a} or {pair.b}."
    return f"{begin} is the same with {pair.a} and with {pair.b}."


def _difference(pair: PairEntry, effect: Effect) -> str:
    begin = in_sentence(effect.figure, begins=True)
    if effect.status == "unknown":
        return f"{begin} is unknown for {pair.a} or {pair.b}: {effect.why}."
    if effect.status == "noise":
        return f"{begin} differs between {pair.a} and {pair.b} by no more than repetitions of one of them do."
    runs = min(len(effect.a.values), len(effect.b.values))
    if effect.status == "unclear":
        needed = effect.repetitions_needed
        more = f"; {'more than ' if needed == REPETITIONS_MAX else 'about '}{needed} would" if needed else ""
        have = "One repetition" if runs == 1 else f"{runs} repetitions"
        return f"{have} cannot tell whether {in_sentence(effect.figure)} differs between {pair.a} and {pair.b}{more}."
    low, high = sorted(abs(each) for each in (effect.low or 0, effect.high or 0))
    word = "lower" if (effect.difference or 0) < 0 else "higher"
    return (
        f"{begin} is {with_unit(format_number(abs(effect.difference or 0)), effect.unit)} {word} with {pair.b} than"
        f" with {pair.a}: {format_number(effect.b.mean)} instead of"
        f" {with_unit(format_number(effect.a.mean), effect.unit)}"
        f" (95 %: {format_number(low)} to {format_number(high)}; {format_count(runs, 'repetition')} of each)."
    )


def _border(matrix: MatrixEntry) -> Iterator[str]:
    told = [cell for cell in matrix.cells if cell.agrees is not None]
    runs = [cell.used for cell in matrix.cells]
    states = {state: sum(cell.state == state for cell in matrix.cells) for state in ("clean", "failing", "mixed")}
    open_ = len(matrix.cells) - sum(states.values())
    said = f"Users failed in {states['failing'] + states['mixed']} of {format_count(len(matrix.cells), 'cell')}"
    said += f", in {states['mixed']} of them not in every run" if states["mixed"] else ""
    failed = [cell.cell for cell in matrix.cells if cell.state in ("failing", "mixed")]
    lines = list(_by_level(matrix)) if failed else []
    said += f": {', '.join(failed)}" if 0 < len(failed) <= _NAMED_MAX and not lines else ""
    yield said + (f"; {open_} cannot be decided." if open_ else ".")
    yield from lines
    if told:
        wrong = [cell.cell for cell in told if not cell.agrees]
        where = f" They disagree in {', '.join(wrong)}." if wrong else ""
        right = f"{len(told) - len(wrong)} of {format_count(len(told), 'cell')}"
        yield f"The model predicts in which cells users fail; the runs agree in {right}.{where}"
    if max(runs) == 1:
        yield "Each cell ran once, so the noise is unknown."


def _by_level(matrix: MatrixEntry) -> Iterator[str]:
    """Yield where the border lies in a matrix of two axes: for each level of the second, which of the first fail."""
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
        return f"The search found no value of {search.knob} from which on {search.until} holds{why}."
    end = "smallest" if search.goal == "smallest" else "largest"
    said = f"The {end} {search.knob} with which {search.until} holds is {search.found:,}."
    if search.predicted is None:
        return f"{said} The model predicts none."
    here = "the same" if search.predicted == search.found else f"{search.predicted:,}"
    return f"{said} The model predicts {here}."


def _claims(verdict: SeriesVerdict) -> Iterator[str]:
    claims = format_count(len(verdict.predictions), "claim")
    for status, what in (("false", "does not hold"), ("unknown", "cannot be decided")):
        found = [each.id for each in verdict.predictions if each.status == status]
        if found:
            yield f"{len(found)} of {claims} {what}: {', '.join(found)}."
    if verdict.predictions and all(each.status == "true" for each in verdict.predictions):
        yield {1: "The claim holds.", 2: "Both claims hold."}.get(len(verdict.predictions), f"All {claims} hold.")


# A difference below this part of the greater mean may be certain, and matters to nobody.
_MATTERS = 0.05

_COUNT, _TIME, _SPEED, _USE = ("fewer", "more"), ("shorter", "longer"), ("faster", "slower"), ("less", "more")
# From the settings to the users. A figure belongs to the first of its stage whose pattern it matches.
_GROUPS: tuple[tuple[Stage, str, tuple[str, str], str], ...] = (
    (
        Stage.COUNTERS,
        "connections in the accept queue, or dropped by it",
        _COUNT,
        r"listen\.|kernel\..*\.(Listen|TCPReqQ|Syncookies)",
    ),
    (Stage.COUNTERS, "sockets in TIME_WAIT", _COUNT, r"sockets\..*\.time_wait|kernel\..*\.(TW|TCPTimeWait)"),
    (
        Stage.COUNTERS,
        "connections opened",
        _COUNT,
        r"kernel\..*\.Tcp\.(Active|Passive|Attempt|Estab|Curr)|[a-z0-9_]+\.(connections|dials)\.",
    ),
    (Stage.COUNTERS, "packets lost and retransmitted", _COUNT, r"kernel\..*(Retrans|Timeouts|Loss|TCPSyn)"),
    (Stage.COUNTERS, "sockets in other states", _COUNT, r"sockets\."),
    (Stage.COUNTERS, "use of processors, memory and files", _USE, r"process\."),
    (Stage.COUNTERS, "counted by other kernel counters", _USE, r"kernel\."),
    (Stage.COUNTERS, "servers that a proxy tried", _COUNT, r"access\..*\.tries"),
    (Stage.COUNTERS, "lines in a proxy's logs", _COUNT, r"access\."),
    # What a page said when it was last read, and not at the end of the load.
    (Stage.COUNTERS, "counted on the programs' status pages", _USE, r""),
    (Stage.PACKETS, "resets and retransmissions", _COUNT, r".*(reset_|retransmissions)"),
    (
        Stage.PACKETS,
        "handshakes without an answer",
        _COUNT,
        r".*\.(syn_|syns_of_unanswered|refused|unanswered|half_open|recovered|ack_)",
    ),
    (Stage.PACKETS, "handshakes", _SPEED, r".*_ms\."),
    (Stage.PACKETS, "sockets in TIME_WAIT, by packets", _COUNT, r".*time_wait"),
    (Stage.PACKETS, "connections that one side closed first", _COUNT, r".*\.closed_by_"),
    (Stage.PACKETS, "SYNs", _COUNT, r".*\.syns$"),
    (Stage.PACKETS, "connections", _COUNT, r""),
    (Stage.USERS, "failures", _COUNT, r".*(failed|\.error\.|dropped)"),
    (Stage.USERS, "times to connect", _TIME, r"client\.dial_ms\."),
    (Stage.USERS, "connections that users made", _COUNT, r"client\.dials\."),
    (Stage.USERS, "answers", _SPEED, r".*_ms\."),
    (Stage.USERS, "requests with a cause", _COUNT, r"ledger\."),
    (Stage.USERS, "answers", _COUNT, r""),
)


# Groups that are named by where they were counted, and by nothing that a reader would call a cause.
_VAGUE = ("sockets in other", "use of", "counted", "lines", "requests with a cause")


@dataclass(frozen=True, slots=True)
class Moved:
    """Figures that moved together.

    Attributes:
        stage: where they stand on the way from the cause to the user.
        says: what became of them, with the figure that stands for them: `fewer connections: 500 → 1`.
        by: the size of that figure's difference.
        plain: whether the group's name says what moved, and not only where it was counted.
    """

    stage: Stage
    says: str
    figure: str
    others: int
    by: float
    plain: bool

    @property
    def line(self) -> str:
        """Return the group in one line."""
        return f"{self.says} ({self.figure}{f', {self.others} similar' if self.others else ''})"


def find_moved(pair: PairEntry) -> list[Moved]:
    """Return what moved beyond noise and matters; what the lab says of itself moves no user."""
    found: dict[tuple[int, bool], list[Effect]] = {}
    by_name = {effect.figure: effect for effect in pair.effects}
    for effect in pair.effects:
        if effect.status == "changed" and effect.relative >= _MATTERS and not _is_of_one(effect, by_name):
            at = _group_of(effect)
            if at is not None:
                found.setdefault((at, (effect.difference or 0) < 0), []).append(effect)
    return [_tell(at, found[at, fell]) for at, fell in sorted(found)]


def summarize_moved(story: Sequence[Moved], figure: str | None) -> str:
    """Return the story of a pair in a sentence: the counter and the packet figure that moved most, then the users.

    For the users it names `figure`, if that moved.
    """
    plain = [each for each in story if each.plain]
    way = [
        max(of_stage, key=lambda each: each.by)
        for stage in (Stage.COUNTERS, Stage.PACKETS)
        if (of_stage := [each for each in plain if each.stage is stage])
    ]
    users = sorted((each for each in plain if each.stage is Stage.USERS), key=lambda each: each.figure != figure)
    if not way or not users:
        return ""
    return f"In short: {'; '.join(each.says for each in way)}; and users got {users[0].says}."


# Times of connections, and what counts these.
_TIMES_OF = re.compile(r"client\.dial_ms\.|(?P<flows>flows\.[a-z0-9_]+)\.handshake_ms\.")


def _is_of_one(effect: Effect, by_name: Mapping[str, Effect]) -> bool:
    """Return whether a statistic is of a single connection on one side: it says nothing of the others."""
    times = _TIMES_OF.match(effect.figure)
    if times is None:
        return False
    count = by_name.get(f"{times['flows']}.established" if times["flows"] else "client.dials.ok")
    return count is not None and min(count.a.mean or 0, count.b.mean or 0) <= 1


def explain_no_moves(pair: PairEntry) -> str:
    """Return why no change of a pair is listed."""
    unclear = sum(effect.status == "unclear" for effect in pair.effects)
    if not pair.effects:
        return "no figure is known for both"
    if unclear:
        differ = f"{format_count(unclear, 'figure')} {'differs' if unclear == 1 else 'differ'}"
        return f"unknown: too few runs to tell whether {differ} by more than chance"
    return "nothing relevant changed beyond the noise"


def count_small_moves(pair: PairEntry) -> str:
    """Return how many figures moved beyond noise by too little to matter; empty if none did."""
    changed = [each for each in pair.effects if each.status == "changed" and each.relative < _MATTERS]
    few = sum(_group_of(each) is not None for each in changed)
    return f"{format_count(few, 'figure')} more moved by less than {_MATTERS:.0%}." if few else ""


def _group_of(effect: Effect) -> int | None:
    groups = enumerate(_GROUPS)
    return next((at for at, (stage, *_, of) in groups if effect.stage == stage and re.match(of, effect.figure)), None)


# Which statistic stands for a list of times: an extreme is of one request.
_RANKS = {"p50": 0, "mean": 1, "p90": 3, "p95": 3, "p99": 3, "max": 4, "min": 4}


def _tell(at: int, effects: list[Effect]) -> Moved:
    stage, name, (less, more), _ = _GROUPS[at]
    most = min(effects, key=lambda each: (_rank(each.figure), -each.relative))
    word = less if (most.difference or 0) < 0 else more
    says = f"{word} {name}: {format_number(most.a.mean)} → {with_unit(format_number(most.b.mean), most.unit)}"
    plain = not name.startswith(_VAGUE)
    return Moved(stage, says, most.figure, len(effects) - 1, abs(most.difference or 0), plain)


def _rank(figure: str) -> int:
    return _RANKS.get(figure.rpartition(".")[2], 2 if "_ms." in figure else 0)
