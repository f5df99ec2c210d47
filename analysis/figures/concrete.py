"""The names of all figures that a run has: every family with the roles, counters and codes that occur in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from analysis.database import sql
from analysis.evidence.own_script import figure_name
from analysis.expressions.values import Unknown
from analysis.figures import client
from analysis.figures.catalogue import Scope

if TYPE_CHECKING:
    from analysis.figures.declaration import Figure
    from analysis.figures.run import Run


def names(run: Run) -> Iterator[str]:
    """Every name, once, in the order of the catalogue.

    If a role has one instance, only the role is named: the instance would have the same figures again. If a parameter
    can be any number, such as an error code, the values that occurred are named.
    """
    manifest = run.raw.manifest
    counters = frozenset(name for samples in run.raw.samples.values() for name in samples.counters)
    scope = Scope(manifest.roles, {name: knob.value for name, knob in manifest.knobs.items()}, counters)
    for figure in scope.figures():
        choices = [_choices(run, scope, figure, parameter) for parameter in figure.parameters]
        for values in product(*choices):
            parameters = dict(zip(figure.parameters, values, strict=True))
            if _exists(run, parameters):
                yield figure.name(**parameters)


def _choices(run: Run, scope: Scope, figure: Figure, parameter: str) -> list[str]:
    if figure.pattern in _CODES and parameter in ("code", "status"):
        return [str(code) for code in _CODES[figure.pattern](run)]
    if parameter == "sysctl":
        return sorted({name for read in run.raw.manifest.sysctls.values() for name in read})
    if parameter in ("request", "group"):
        return _named(run, parameter)
    if parameter in ("check", "threshold"):
        return sorted(_judged(run, parameter))
    found = scope.choices(parameter)
    if parameter == "Counter":
        # Gauges stand among the sampled counters, under names that no counter has.
        return [name for name in found if figure.match(figure.name(role="k6", Counter=name)) is not None]
    single = {
        instances[0].replace("-", "_") for instances in run.raw.manifest.instances.values() if len(instances) == 1
    }
    # A role of one instance by the role's own name, as nginx, is not a repetition.
    repeated = single - set(run.raw.manifest.instances)
    return [name for name in found if name not in repeated]


# Without names of its own, a script's requests have their URLs' names: there can be thousands.
_NAMES_MAX = 50


def _has_own_script(run: Run) -> bool:
    workload = run.raw.manifest.knobs.get("load.workload")
    return workload is not None and workload.value == "script"


def _named(run: Run, parameter: str) -> list[str]:
    """The names or groups of the requests of a script of one's own; none if there are too many to be listed."""
    if isinstance(run.joined, Unknown) or not _has_own_script(run):
        return []
    names = {figure_name(row["given"]) for row in client.named(run.joined, parameter) if row["given"]}
    return sorted(names) if len(names) <= _NAMES_MAX else []


def _judged(run: Run, parameter: str) -> set[str]:
    """The checks or thresholds of a script of one's own; those of the lab's workloads repeat client.requests.ok."""
    if not _has_own_script(run):
        return set()
    judged = [client.judged for client in run.raw.clients.values() if client.judged is not None]
    return {name for each in judged for name in (each.checks if parameter == "check" else each.thresholds)}


def _exists(run: Run, parameters: Mapping[str, str]) -> bool:
    """Whether a role has a counter: the kernel shows some only where they are not zero."""
    if "Counter" not in parameters:
        return True
    samples = run.raw.samples
    return any(parameters["Counter"] in samples[each].counters for each in run.instances(parameters["role"]))


def _error_codes(run: Run) -> list[int]:
    codes = [client.requests.columns["error_code"] for client in run.raw.clients.values()]
    return [int(code) for code in np.unique(np.concatenate(codes)) if code] if codes else []


def _statuses(run: Run) -> list[int]:
    statuses = [log.columns["status"] for log in run.raw.access.values()]
    return [int(status) for status in np.unique(np.concatenate(statuses)) if status > 0] if statuses else []


def _answers(run: Run) -> list[int]:
    return _occurring(run, "answers", "status")


def _system_errors(run: Run) -> list[int]:
    return _occurring(run, "error_numbers", "number")


def _occurring(run: Run, query: str, column: str) -> list[int]:
    return [] if isinstance(run.joined, Unknown) else [row[column] for row in run.joined.rows(sql(__name__, query))]


# Figures with a parameter that any number fits → the numbers that occurred.
_CODES: dict[str, Callable[[Run], list[int]]] = {
    "client.requests.error.<code>": _error_codes,
    "client.requests.status.<status>": _answers,
    "access.<proxy>.status.<status>": _statuses,
    "access.<proxy>.errors.<code>": _system_errors,
}
