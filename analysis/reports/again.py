"""The command that makes a run again, as it was or with something changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from analysis import suggested
from analysis.reports import labels

_ALONE = "default"


@dataclass(frozen=True)
class Again:
    """How a run is made again.

    Attributes:
        command: None where no command does it.
        instead: then what does.
    """

    command: str | None
    instead: str | None = None


def again(manifest: Mapping[str, Any], changes: Mapping[str, str] | None = None) -> Again:
    """Find the command: of an arm it runs that arm alone, and of a cell its scenario or, if need be, the matrix.

    Args:
        manifest: the content of manifest.json.
        changes: knobs that are to have another value, as a scenario writes it.
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
            return Again(None, f"the scenario's own configuration says {knob}: change it there ({where})")
    if kind == "arms" or (kind is None and manifest.get("cell", _ALONE) != _ALONE):
        named = {"preset": preset, "arm": manifest["cell"]}
        return Again(_command("run", ("SCENARIO", scenario), named, _sets(manifest, "set") | changed))
    if kind is None or manifest.get("by_set", True):
        return Again(
            _command("run", ("SCENARIO", scenario), {"preset": preset}, _sets(manifest, "set", "cell") | changed)
        )
    if kind == "search":
        return Again(
            None,
            f"{scenario} has arms, which the search left out: set it in"
            f" {folder or f'scenarios/{scenario}'}/scenario.yaml",
        )
    fixed = changed.keys() & _sets(manifest, "cell").keys()
    if fixed:
        return Again(None, f"the matrix sets {min(fixed)} itself: change it in scenarios/matrices/{name}.yaml")
    return Again(_command("matrix", ("MATRIX", name), {}, _sets(manifest, "set") | changed))


def _series(manifest: Mapping[str, Any]) -> tuple[str | None, str]:
    """Give kind and name of the series that a run belongs to; None if it belongs to none."""
    if not manifest.get("series"):
        return None, ""
    _, kind, name = str(manifest["series"]).split("-", 2)
    return kind, name


def _sets(manifest: Mapping[str, Any], *sources: str) -> dict[str, str]:
    return {
        name: labels.knob_value(name, knob)
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
