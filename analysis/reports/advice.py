"""Advice: the knob that the main cause of a run's failures points to, its value, and the command that tests it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from analysis.diagnosis import causes
from analysis.diagnosis.causes.remedies import NO_KNOB, Recorded
from analysis.reports import reasons
from analysis.reports.again import again
from analysis.reports.run_record import Record
from formats import role as role_file
from formats.manifest import declared_roles


@dataclass(frozen=True)
class Advice:
    """What to change, and why.

    Attributes:
        cause: the run's main cause; None if every request was fine.
        count: the requests that have it.
        knob: what to set; None where no setting of the path would help.
        value: as a scenario writes it.
        why: how the value comes about, or what to do instead.
        command: the one command that tests it.
        besides: what has to be set with it, as knobs and values.
    """

    cause: str | None
    count: int
    why: str
    knob: str | None = None
    value: str | None = None
    command: str | None = None
    besides: Mapping[str, str] = field(default_factory=dict)


def of_run(record: Record) -> Advice:
    """Give the advice on the main cause of a run, whose ledger has requests."""
    main = next(iter(reasons.of_run(record)), None)
    if main is None:
        return Advice(None, 0, "no request failed or was slow: there is nothing to change")
    return of_cause(record.manifest, record.ledger, main.cause.name, main.count)


def of_cause(manifest: Mapping[str, Any], ledger: Mapping[str, Any], cause: str, count: int) -> Advice:
    """Give the advice on one cause of a run, which so many requests have.

    Args:
        manifest: the content of manifest.json.
        ledger: that of derived/ledger.json, which has requests.
        cause: of the closed list.
        count: the requests that have it.
    """
    remedy = causes.cause_named(cause).remedy
    if isinstance(remedy, str):
        return Advice(cause, count, remedy)
    try:
        declared = declared_roles(manifest)
        kinds = {name: role.kind for name, role in declared.items()}
        limits = {name: role.limiting_knobs() for name, role in declared.items()}
        found = remedy(Recorded(manifest, ledger, kinds, limits, role_file.request_path(manifest["path"], kinds.get)))
    except KeyError as missing:
        return Advice(cause, count, _without(manifest, str(missing.args[0])))
    if found is None:
        return Advice(cause, count, NO_KNOB)
    test = again(manifest, {found.knob: found.value, **found.besides})
    why = f"{found.why}; {test.instead}" if test.instead else found.why
    return Advice(cause, count, why, found.knob, found.value, test.command, found.besides)


def _without(manifest: Mapping[str, Any], knob: str) -> str:
    """Say why there is no value where the manifest lacks a knob: an older run's did, and so does that of a script."""
    workload = manifest["knobs"].get("load.workload", {}).get("value")
    if workload == "script" and knob.startswith("load."):
        return (
            "the value rests on the load, which the scenario's own script makes: the lab does not know how much it is"
        )
    return f"its manifest does not have {knob}, which the value rests on"
