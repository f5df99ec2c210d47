"""Advice: the knob that a run's main cause points to, its value, and the command that makes the run again with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from analysis import formatting, suggested
from analysis.diagnosis import causes
from analysis.diagnosis.causes.remedies import NO_KNOB, Recorded
from analysis.reports import reasons
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


def advise_on_run(record: Record) -> Advice:
    """Return the advice on the main cause of a run, whose ledger has requests."""
    main = next(iter(reasons.find_reasons(record)), None)
    if main is None:
        return Advice(None, 0, "no request failed or was slow: there is nothing to change")
    return advise_on_cause(record.manifest, record.ledger, main.cause.name, main.count)


def advise_on_cause(manifest: Mapping[str, Any], ledger: Mapping[str, Any], cause: str, count: int) -> Advice:
    """Return the advice on one cause of a run, of whose requests `count` have it; its ledger has requests."""
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
    test = rerun_command(manifest, {found.knob: found.value, **found.besides})
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


_ALONE = "default"


@dataclass(frozen=True)
class Rerun:
    """How a run is made again.

    Attributes:
        command: None where no command does it.
        instead: then what does.
    """

    command: str | None
    instead: str | None = None


def rerun_command(manifest: Mapping[str, Any], changes: Mapping[str, str] | None = None) -> Rerun:
    """Return the command that makes a run again, with knobs changed to values as a scenario writes them.

    Of an arm it runs that arm alone, and of a cell its scenario or, if need be, the matrix.
    """
    changed = dict(changes or {})
    # A scenario that is not one of the lab's own is called by its folder.
    folder, preset = manifest.get("folder"), manifest.get("preset")
    scenario = str(folder or manifest["scenario"])
    kind, name = _series(manifest)
    for knob in changed:
        record = manifest.get("knobs", {}).get(knob, {})
        if record.get("source") == "file":
            where = " and ".join(record.get("where") or []) or "it has no line there yet"
            return Rerun(None, f"the scenario's own configuration says {knob}: change it there ({where})")
    if kind == "arms" or (kind is None and manifest.get("cell", _ALONE) != _ALONE):
        named = {"preset": preset, "arm": manifest["cell"]}
        return Rerun(_command("run", ("SCENARIO", scenario), named, _sets(manifest, "set") | changed))
    if kind is None or manifest.get("by_set", True):
        return Rerun(
            _command("run", ("SCENARIO", scenario), {"preset": preset}, _sets(manifest, "set", "cell") | changed)
        )
    if kind == "search":
        return Rerun(
            None,
            f"{scenario} has arms, which the search left out: set it in"
            f" {folder or f'scenarios/{scenario}'}/scenario.yaml",
        )
    fixed = changed.keys() & _sets(manifest, "cell").keys()
    if fixed:
        return Rerun(None, f"the matrix sets {min(fixed)} itself: change it in scenarios/matrices/{name}.yaml")
    return Rerun(_command("matrix", ("MATRIX", name), {}, _sets(manifest, "set") | changed))


def _series(manifest: Mapping[str, Any]) -> tuple[str | None, str]:
    """Return kind and name of the series that a run belongs to; None if it belongs to none."""
    if not manifest.get("series"):
        return None, ""
    _, kind, name = str(manifest["series"]).split("-", 2)
    return kind, name


def _sets(manifest: Mapping[str, Any], *sources: str) -> dict[str, str]:
    return {
        name: formatting.format_knob(knob)
        for name, knob in manifest.get("knobs", {}).items()
        if knob.get("source") in sources
    }


def _command(verb: str, what: tuple[str, str], named: Mapping[str, str | None], sets: Mapping[str, str]) -> str:
    given = {name: value for name, value in named.items() if value}
    # make splits SET at blanks, so a value that has one needs the program itself.
    if any(any(char.isspace() or char == '"' for char in f"{name}{value}") for name, value in sets.items()):
        options = [part for name, value in given.items() for part in (f"--{name}", value)]
        options += [part for name, value in sets.items() for part in ("--set", f"{name}={value}")]
        return suggested.connlab(verb, options, what[1])
    return suggested.make(verb, dict([what]) | {name.upper(): value for name, value in given.items()}, sets)
