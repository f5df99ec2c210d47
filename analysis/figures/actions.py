"""What followed the lab's actions: requests at servers that it ended in order or reloaded, and names that it moved."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from analysis.database import sql
from analysis.diagnosis.health import CLIENT, Evidence
from analysis.diagnosis.joins import Joined
from analysis.diagnosis.shutdowns import Ending, find_endings
from analysis.evidence.window import Window
from analysis.expressions.values import Value, unknown
from analysis.figures.declaration import Compute, Figure, of_joined
from analysis.figures.ledger import spoilt_evidence
from analysis.figures.run import Run

ENDED, MOVED = "shutdown.", "moved."
_ended = partial(Figure, source="derived/ledger.json")
_moved = partial(Figure, source="the proxy: access.jsonl; the manifest: actions")


def _sum(read: Callable[[Ending], int]) -> Compute:
    @of_joined
    def compute(run: Run, joined: Joined, found: Mapping[str, str]) -> Value:
        role = found["role"]
        instances = run.instances(role)
        own = [one for one in find_endings(joined, run.raw.manifest) if one.instance in instances]
        if not own:
            return unknown(f"the lab ended and reloaded no instance of {role}")
        rests_on = {Evidence.REQUESTS: CLIENT, Evidence.DIALS: CLIENT, Evidence.TIMES: ""}
        return spoilt_evidence(run, joined) or run.resting_on(run.clients, rests_on, lambda _: sum(map(read, own)))

    return compute


_OF_PROXIES = {Evidence.ACCESS: "access", Evidence.TIMES: ""}
# When a name was moved, and for each try after that until it moved again: whether it went to where the name led before.
Tries = Sequence[tuple[int, bool]]


def _of_moves(read: Callable[[int, Tries], int], over: Callable[[Sequence[int]], int]) -> Compute:
    @of_joined
    def compute(run: Run, joined: Joined, found: Mapping[str, str]) -> Value:
        moves = [one for one in run.raw.manifest.actions if one.do == "dns" and one.start_us is not None]
        if not moves:
            return unknown("the lab moved no name")

        def count(window: Window) -> Value:  # noqa: ARG001  a name moves within it
            counts = []
            for move in moves:
                later = [one.start_us for one in moves if one.name == move.name and one.at_ms > move.at_ms]
                asked = {"start": move.start_us, "until": min(filter(None, later), default=None)}
                ends = {"former": move.was, "latter": move.instance, "proxies": run.instances(found["proxy"])}
                rows = joined.execute(sql(__name__, "tries_after_move"), **asked, **ends).fetchall()
                counts.append(read(int(move.start_us or 0), rows))
            return over(counts)

        return run.resting_on(list(run.raw.records.access), _OF_PROXIES, count)

    return compute


def _count(*, old: bool) -> Callable[[int, Tries], int]:
    return lambda _, tries: sum(1 for _, went_to_old in tries if went_to_old == old)


def _last_ms(start_us: int, tries: Tries) -> int:
    """Return how long after the move the last try went to where the name led before, in whole ms."""
    return max(((time_us - start_us) // 1000 for time_us, went_to_old in tries if went_to_old), default=0)


FIGURES = (
    _ended(
        f"{ENDED}<role>.under_way",
        "Requests under way at the role's servers when the lab began to drain, stop, restart or reload them: sent, and"
        " not answered whole.",
        _sum(lambda one: one.under_way),
    ),
    _ended(
        f"{ENDED}<role>.under_way_lost",
        "Those of them that failed.",
        _sum(lambda one: one.under_way_lost),
    ),
    _ended(
        f"{ENDED}<role>.came",
        "Requests that came to such a server from then on, until it served again or had reloaded; also those that it"
        " refused, and a proxy passed on.",
        _sum(lambda one: one.came),
    ),
    _ended(f"{ENDED}<role>.came_lost", "Those of them that failed.", _sum(lambda one: one.came_lost)),
    _ended(
        f"{ENDED}<role>.elsewhere",
        "Of all these, those that another server answered.",
        _sum(lambda one: one.elsewhere),
    ),
    _ended(f"{ENDED}<role>.lost", "All of them that failed.", _sum(lambda one: one.lost)),
    _moved(
        f"{MOVED}<proxy>.to_old",
        "Tries that the proxy began after a name had moved, at the server to which the name led before.",
        _of_moves(_count(old=True), sum),
    ),
    _moved(
        f"{MOVED}<proxy>.to_new",
        "The same at the server to which the name leads since.",
        _of_moves(_count(old=False), sum),
    ),
    _moved(
        f"{MOVED}<proxy>.old_ms",
        "How long after a move the last try went to the old server; of several moves the longest time.",
        _of_moves(_last_ms, max),
        unit="ms",
    ),
)
