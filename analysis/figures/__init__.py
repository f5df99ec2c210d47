"""Every figure of a run, declared once: what it means, where it comes from, and how it is computed.

In: evidence and account. Out: values by name; `scope()` refuses a wrong name before a run.
It must not know predictions. A figure is declared in the module of what it is about: client, kernel, servers, model.
"""

from analysis.expressions.values import Value
from analysis.figures import declaration, programs
from analysis.figures.catalogue import Scope, UnknownFigure, find, scope
from analysis.figures.run import Run

__all__ = ["Run", "Scope", "UnknownFigure", "scope", "value"]


def value(run: Run, name: str) -> Value:
    """Return the value of a knob or a figure in a run, unknown with a reason where the evidence does not give one."""
    return declaration.compute_value(
        lambda each: find(each) or declaration.find_figure(programs.page_figures(run.raw.manifest.roles), each),
        run,
        name,
    )
