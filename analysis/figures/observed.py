"""The figures of what was observed and modelled: all but those of the identities, which rest on these."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.figures import catalogue, client, flows, gateway, kernel, ledger, model, servers, sysctls

if TYPE_CHECKING:
    from analysis.expressions.values import Value
    from analysis.figures.catalogue import Figure
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
    return catalogue.value((*MEASURED, *MODELLED), run, name)
