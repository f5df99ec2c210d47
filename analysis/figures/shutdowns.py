"""What became of the requests at servers that the lab ended in order, or reloaded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from analysis.diagnosis.health import CLIENT, Evidence
from analysis.diagnosis.joins import Joined
from analysis.diagnosis.shutdowns import Ending, find_endings
from analysis.expressions.values import Value, unknown
from analysis.figures.declaration import Compute, Figure, of_joined
from analysis.figures.ledger import spoilt_evidence
from analysis.figures.run import Run

PREFIX = "shutdown."
_figure = partial(Figure, source="derived/ledger.json")


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


FIGURES = (
    _figure(
        f"{PREFIX}<role>.under_way",
        "Requests under way at the role's servers when the lab began to drain, stop, restart or reload them: sent, and"
        " not answered whole.",
        _sum(lambda one: one.under_way),
    ),
    _figure(
        f"{PREFIX}<role>.under_way_lost",
        "Those of them that failed.",
        _sum(lambda one: one.under_way_lost),
    ),
    _figure(
        f"{PREFIX}<role>.came",
        "Requests that came to such a server from then on, until it served again or had reloaded; also those that it"
        " refused, and a proxy passed on.",
        _sum(lambda one: one.came),
    ),
    _figure(f"{PREFIX}<role>.came_lost", "Those of them that failed.", _sum(lambda one: one.came_lost)),
    _figure(
        f"{PREFIX}<role>.elsewhere",
        "Of all these, those that another server answered.",
        _sum(lambda one: one.elsewhere),
    ),
    _figure(f"{PREFIX}<role>.lost", "All of them that failed.", _sum(lambda one: one.lost)),
)
