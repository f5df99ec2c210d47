"""The figures of what was observed and modelled; over them the identities of a run, and the figures about these."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import TYPE_CHECKING

from analysis.diagnosis import identities
from analysis.expressions.values import Unknown, Value, merge, unknown
from analysis.figures import client, declaration, flows, kernel, ledger, model, programs, proxies
from analysis.figures.declaration import Compute, Figure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from analysis.diagnosis.identities import HopAccount
    from analysis.figures.run import Run


MEASURED: tuple[Figure, ...] = (
    *client.FIGURES,
    *kernel.FIGURES,
    *programs.FIGURES,
    *proxies.FIGURES,
    *flows.FIGURES,
    *ledger.FIGURES,
)
MODELLED: tuple[Figure, ...] = model.FIGURES


def observed_value(run: Run, name: str) -> Value:
    """Return the value of a knob or of an observed figure; unknown, with a reason, where the evidence gives none."""
    return declaration.compute_value(_find, run, name)


@lru_cache(maxsize=4096)
def _find(name: str) -> tuple[Figure, dict[str, str]] | None:
    return declaration.find_figure((*MEASURED, *MODELLED), name)


_IDENTITY_MEANINGS = {
    "holding": ("true", "Identities that hold: both observers counted the same."),
    "failed": ("false", "Identities that do not."),
    "unknown": ("unknown", "Identities with a side that is unknown."),
}


def balance_hops(run: Run) -> tuple[HopAccount, ...]:
    """Return what must be equal on each hop, and whether it is; empty if no hop is known. Computed once for a run."""
    if run.balanced is None:
        joined = run.joined
        known = () if isinstance(joined, Unknown) else joined.hops
        value = partial(observed_value, run.without(identities.SET_ASIDE))
        run.balanced = identities.balance(known, run.raw.manifest, value)
    return run.balanced


def _identities(status: str) -> Compute:
    """Return how many identities have a status; while one is unknown, so is how many hold and how many fail."""

    def compute(run: Run, _found: Mapping[str, str]) -> Value:
        if isinstance(run.joined, Unknown):
            return run.joined
        balances = [balance for hop in balance_hops(run) for balance in hop.balances]
        reasons = [unknown(f"{each.identity.id}: {each.why}") for each in balances if each.why is not None]
        if reasons and status != "unknown":
            return merge(*reasons)
        return sum(balance.holds == status for balance in balances)

    return compute


FIGURES: tuple[Figure, ...] = tuple(
    Figure(f"ledger.identities.{name}", meaning, "derived/ledger.json", _identities(status))
    for name, (status, meaning) in _IDENTITY_MEANINGS.items()
)
