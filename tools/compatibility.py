"""Writes docs/compatibility.md: features of real files, each as a small file, and what the lab does with it.

`tests/compatibility/<kind>/<feature>/` has the files as a user has them, and `feature.yaml`: the feature's name, the
line that has it, and what the scenario says besides. `tests/compatibility/<kind>/scenario.yaml` is the rest of the
scenario. A key without a value in `feature.yaml` takes the key of the rest away.
"""

import json
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from lab import paths, terminal
from lab.engines.protocol import Engine
from lab.engines.selection import selected_engine
from lab.errors import BadInput, Problem
from lab.runs.user_files import examine_configurations, examine_script
from lab.scenarios.own_configuration import adaptation_faults, fault_problems, find_configuration
from lab.scenarios.resolve import resolve
from lab.scenarios.resolved import ResolvedScenario
from lab.scenarios.topology import Topology, topology_of

PAGE = paths.ROOT / "docs" / "compatibility.md"
FEATURES = paths.ROOT / "tests" / "compatibility"
_SELF = "python -m tools.compatibility"
_KINDS = {"nginx": "nginx", "haproxy": "HAProxy", "compose": "Compose", "k6": "k6 scripts"}
_HEAD = f"""\
# Compatibility

What does the lab do with a feature of your file? Each line is a small file in \
[tests/compatibility](../tests/compatibility) with one feature as it stands in real files. The lab checks it, and so \
does the program itself in the lab's image. Your file stays as it is. If a feature *runs, with a \
notice*, the page quotes what the lab prints about the copy that runs. If it is *refused*, the page quotes the reason \
and a hint. \
[Your own proxy configuration](own-proxy.md) and [Compose files](own-service.md#a-compose-file) have the rules.

This page is made: `{_SELF}`.
"""


@dataclass(frozen=True)
class Feature:
    """A feature, and what the lab does with it.

    Attributes:
        notices: what differs in what runs.
        refusals: why it does not run.
    """

    folder: Path
    name: str
    line: str
    notices: tuple[str, ...] = ()
    refusals: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """Return the kind of file."""
        return self.folder.parent.name

    def row(self) -> str:
        """Return its line of the table."""
        said = "runs"
        if self.refusals:
            said = "**refused**: " + "; ".join(self.refusals)
        elif self.notices:
            said = "runs, with a notice: " + "; ".join(self.notices)
        # Two signs around a line that has one itself.
        mark = "``" if "`" in self.line else "`"
        return "| " + " | ".join(_cell(one) for one in (self.name, f"{mark}{self.line}{mark}", said)) + " |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def folders(kind: str) -> list[Path]:
    """Return the folders of a kind's features, by name."""
    return sorted(one.parent for one in (FEATURES / kind).glob("*/feature.yaml"))


def _load(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = YAML(typ="safe").load(file)
    return found


def read_feature(folder: Path) -> dict[str, Any]:
    """Return what a feature's folder says of it."""
    said: dict[str, Any] = _load(folder / "feature.yaml")
    files = [one.read_text() for one in folder.rglob("*") if one.is_file() and one.name != "feature.yaml"]
    if not any(said["line"] in text for text in files):
        raise BadInput(Problem(f"no file there has the line {said['line']}", str(folder / "feature.yaml"), "copy it"))
    return said


def examine(folder: Path, engine: Engine | None) -> Feature:
    """Return what the lab does with a feature; without an engine, as far as the lab itself tells."""
    said = read_feature(folder)
    base = _load(folder.parent / "scenario.yaml")
    with tempfile.TemporaryDirectory() as place:
        home = Path(place).resolve() / folder.name
        shutil.copytree(folder, home)
        (home / "scenario.yaml").write_text(json.dumps(_merged(base, said.get("scenario", {}))))
        notices: list[str] = []
        refusals: list[str] = []
        try:
            resolved = resolve(str(home))
            topology = topology_of(resolved)
            notices += _notices(resolved, topology)
            refusals += map(str, _problems(resolved, topology, engine))
        except BadInput as error:
            refusals += map(str, error.problems)
        # A place begins with the user's folder.
        for one in (paths.shown(home), str(home)):
            notices = [each.replace(f"{one}/", "").replace(one, "your folder") for each in notices]
            refusals = [each.replace(f"{one}/", "").replace(one, "your folder") for each in refusals]
    return Feature(folder, said["feature"], said["line"], tuple(notices), tuple(refusals))


def _merged(base: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Return a scenario with what a feature says in it; a key without a value goes."""
    merged = dict(base)
    for key, value in own.items():
        both = isinstance(value, Mapping) and isinstance(base.get(key), Mapping)
        merged[key] = _merged(base[key], value) if both else value
    return {key: value for key, value in merged.items() if value is not None}


def _notices(resolved: ResolvedScenario, topology: Topology) -> Iterator[str]:
    yield from resolved.registry.notices
    for role in topology.instances:
        own = find_configuration(resolved, topology, role)
        if own is not None:
            yield from dict.fromkeys(one.what for one in own.adaptation.changes)


def _problems(resolved: ResolvedScenario, topology: Topology, engine: Engine | None) -> Iterator[Problem]:
    if engine is not None:
        yield from examine_configurations(resolved, topology, engine)[1]
        yield from examine_script(resolved, topology, engine)[1]
        return
    for role in topology.instances:
        own = find_configuration(resolved, topology, role)
        if own is not None:
            yield from fault_problems(own, list(adaptation_faults(own, topology)))


def write_page(features: Mapping[str, list[Feature]]) -> str:
    """Return the page."""
    parts = [_HEAD]
    for kind, found in features.items():
        rows = [one.row() for one in found]
        parts.append(
            "\n".join((f"\n## {_KINDS[kind]}\n", "| feature | in the file | in the lab |", "|---|---|---|", *rows))
        )
    return "\n".join(parts) + "\n"


def examine_all(engine: Engine | None) -> dict[str, list[Feature]]:
    """Return every feature of each kind that there is."""
    return {kind: [examine(one, engine) for one in found] for kind in _KINDS if (found := folders(kind))}


def main() -> int:
    """Write the page anew."""
    try:
        PAGE.write_text(write_page(examine_all(selected_engine())))
    except BadInput as error:
        for one in error.problems:
            terminal.problem(str(one))
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
