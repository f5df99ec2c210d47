"""What moved between two groups of runs, as a story: figures that say one thing are told together, by a name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from analysis.compare import numbers
from analysis.compare.effects import Stage
from analysis.formatting import counted

if TYPE_CHECKING:
    from analysis.compare.comparison_file import EffectEntry, PairEntry

# A difference below this part of the greater mean may be certain, and matters to nobody.
_MATTERS = 0.05

_COUNT, _TIME, _SPEED, _USE = ("fewer", "more"), ("shorter", "longer"), ("faster", "slower"), ("less", "more")
# From the settings to the users. A figure belongs to the first of its stage whose pattern it matches.
_GROUPS: tuple[tuple[Stage, str, tuple[str, str], str], ...] = (
    (
        Stage.COUNTERS,
        "connections in the accept queue, or turned away by it",
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
    (Stage.COUNTERS, "packets lost and sent again", _COUNT, r"kernel\..*(Retrans|Timeouts|Loss|TCPSyn)"),
    (Stage.COUNTERS, "sockets in other states", _COUNT, r"sockets\."),
    (Stage.COUNTERS, "use of processors, memory and files", _USE, r"process\."),
    (Stage.COUNTERS, "counted by other counters of the kernel", _USE, r"kernel\."),
    (Stage.COUNTERS, "servers that a proxy tried", _COUNT, r"access\..*\.tries"),
    (Stage.COUNTERS, "lines of some kind in a proxy's logs", _COUNT, r"access\."),
    # What a page said when it was last read, and not at the end of the load.
    (Stage.COUNTERS, "counted on the programs' own pages, read once a second", _USE, r""),
    (Stage.PACKETS, "resets and packets sent again", _COUNT, r".*(reset_|retransmissions)"),
    (
        Stage.PACKETS,
        "handshakes without an answer",
        _COUNT,
        r".*\.(syn_|syns_of_unanswered|refused|unanswered|half_open|healed|ack_)",
    ),
    (Stage.PACKETS, "handshakes", _SPEED, r".*_ms\."),
    (Stage.PACKETS, "sockets in TIME_WAIT, by packets", _COUNT, r".*time_wait"),
    (Stage.PACKETS, "connections that one side closed first", _COUNT, r".*\.closed_by_"),
    (Stage.PACKETS, "SYNs", _COUNT, r".*\.syns$"),
    (Stage.PACKETS, "connections", _COUNT, r""),
    (Stage.USERS, "failures", _COUNT, r".*(failed|\.error\.|dropped)"),
    (Stage.USERS, "waits to connect", _TIME, r"client\.dial_ms\."),
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
        figure: that one.
        others: how many more moved.
        by: the size of that figure's difference.
        plain: whether the group's name says what moved, and not only where it was counted.
    """

    stage: Stage
    says: str
    figure: str
    others: int
    by: float
    plain: bool


def of_pair(pair: PairEntry) -> list[Moved]:
    """Tell what moved beyond noise and matters; what the lab says of itself moves no user."""
    found: dict[tuple[int, bool], list[EffectEntry]] = {}
    by_name = {effect.figure: effect for effect in pair.effects}
    for effect in pair.effects:
        if effect.status == "changed" and _relative(effect) >= _MATTERS and not _of_one(effect, by_name):
            at = _group_of(effect)
            if at is not None:
                found.setdefault((at, (effect.difference or 0) < 0), []).append(effect)
    return [_told(at, found[at, fell]) for at, fell in sorted(found)]


def in_short(story: Sequence[Moved], figure: str | None) -> str:
    """The story in a sentence: of the counters and of the packets what moved by most, and then the users.

    Args:
        story: of a pair, as `of_pair` tells it.
        figure: the one that the comparison is about, of which the users' part is told if it moved.
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


def _of_one(effect: EffectEntry, by_name: Mapping[str, EffectEntry]) -> bool:
    """Whether a statistic is of a single connection on one side: it says nothing of the others."""
    times = _TIMES_OF.match(effect.figure)
    if times is None:
        return False
    count = by_name.get(f"{times['flows']}.established" if times["flows"] else "client.dials.ok")
    return count is not None and min(count.a.mean or 0, count.b.mean or 0) <= 1


def nothing(pair: PairEntry) -> str:
    """Say what it means that nothing is told of a pair."""
    unclear = sum(effect.status == "unclear" for effect in pair.effects)
    if not pair.effects:
        return "nothing is known of both"
    if unclear:
        differ = f"{counted(unclear, 'figure')} {'differs' if unclear == 1 else 'differ'}"
        return f"not known: too few runs tell whether {differ} by more than chance"
    return "nothing that matters moved beyond noise"


def small(pair: PairEntry) -> str:
    """Say how many figures moved beyond noise by too little to matter; empty if none did."""
    few = [
        each
        for each in pair.effects
        if each.status == "changed" and _relative(each) < _MATTERS and _group_of(each) is not None
    ]
    return f"{counted(len(few), 'figure')} more moved by less than {_MATTERS:.0%}." if few else ""


def _group_of(effect: EffectEntry) -> int | None:
    return next((at for at, group in enumerate(_GROUPS) if _is_of(effect, group)), None)


def _is_of(effect: EffectEntry, group: tuple[Stage, str, tuple[str, str], str]) -> bool:
    stage, _, _, pattern = group
    return effect.stage == stage and re.match(pattern, effect.figure) is not None


def _told(at: int, effects: list[EffectEntry]) -> Moved:
    stage, name, (less, more), _ = _GROUPS[at]
    most = min(effects, key=lambda each: (_rank(each.figure), -_relative(each)))
    word = less if (most.difference or 0) < 0 else more
    unit = f" {most.unit}" if most.unit else ""
    says = f"{word} {name}: {numbers.number(most.a.mean)} → {numbers.number(most.b.mean)}{unit}"
    plain = not name.startswith(_VAGUE)
    return Moved(stage, says, most.figure, len(effects) - 1, abs(most.difference or 0), plain)


# Which statistic stands for a list of times: an extreme is of one request.
_RANKS = {"p50": 0, "mean": 1, "p90": 3, "p95": 3, "p99": 3, "max": 4, "min": 4}


def _rank(figure: str) -> int:
    return _RANKS.get(figure.rpartition(".")[2], 2 if "_ms." in figure else 0)


def _relative(effect: EffectEntry) -> float:
    greater = max(abs(effect.a.mean or 0), abs(effect.b.mean or 0))
    return abs(effect.difference or 0) / greater if greater else 0.0


def lines(moved: Iterable[Moved]) -> list[str]:
    """Write each group in one line."""
    return [f"{each.says} ({each.figure}{f', {each.others} more alike' if each.others else ''})" for each in moved]
