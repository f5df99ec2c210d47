"""The figures of what was observed and modelled: all but those of the identities, which rest on these."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from analysis.figures import client, declaration, flows, gateway, kernel, ledger, model, servers, sysctls

if TYPE_CHECKING:
    from analysis.expressions.values import Value
    from analysis.figures.declaration import Figure
    from analysis.figures.run import Run

MEASURED: tuple[Figure, ...] = (
    *client.FIGURES,
    *kernel.FIGURES,
    *sysctls.FIGURES,
    *servers.FIGURES,
    *gateway.FIGURES,
    *flows.FIGURES,
    *ledger.FIGURES,
)
MODELLED: tuple[Figure, ...] = model.FIGURES


def value(run: Run, name: str) -> Value:
    """The value of a knob or of an observed figure in a run; unknown, with a reason, where the evidence gives none."""
    return declaration.value(_find, run, name)


@lru_cache(maxsize=4096)
def _find(name: str) -> tuple[Figure, dict[str, str]] | None:
    return declaration.find((*MEASURED, *MODELLED), name)
