"""A user's own k6 script: where it lies, what it finds in its environment, and what its options say before a run."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis.evidence.client_files import threshold_name
from analysis.formatting import format_ms
from formats.knob_types import parse_duration
from formats.predictions import Claim
from lab import paths
from lab.errors import Problem
from lab.reading.validation_messages import did_you_mean
from lab.scenarios.resolved import ResolvedScenario
from lab.scenarios.topology import Topology

WORKLOAD = "script"
# Where k6 finds the folder that the script lies in.
MOUNTED = Path("/script")
_RESERVED = ("K6_", "CONNLAB_")
# How k6's messages name a line of a script, and a module that it could not find.
_NAMED = re.compile(rf"file://{MOUNTED}/(?P<file>[^ :]+):(?: Line )?(?P<line>[0-9]+)")
_IMPORTED = re.compile(r'moduleSpecifier \\?"([^"\\]+)')
# What a line of a script imports; a comment imports nothing.
_IMPORT = re.compile(r"""^(?!\s*(?://|\*)).*?(?:\bfrom|\bimport|\brequire)\s*\(?\s*['"](?P<module>[^'"]+)['"]""")


@dataclass(frozen=True)
class OwnScript:
    """A script in its folder.

    Attributes:
        folder: what k6 sees of the machine: the scenario's folder.
        environment: what the script finds in __ENV, besides the lab's own variables.
    """

    folder: Path
    file: Path
    environment: Mapping[str, str]

    @property
    def mounted(self) -> Path:
        """Return the script where k6 finds it."""
        return MOUNTED / self.file.relative_to(self.folder)

    def settings(self) -> dict[str, str]:
        """Return the environment of k6 that the script adds."""
        return {**self.environment, "CONNLAB_SCRIPT": str(self.mounted)}


@dataclass(frozen=True)
class Options:
    """What k6 says of a script before it runs it.

    Attributes:
        lasts_ms: how long its scenarios take at most, with the time in which they end gracefully.
    """

    users_max: int
    lasts_ms: int
    thresholds: Mapping[str, list[str]]

    def claims(self) -> list[Claim]:
        """Return the thresholds as predictions."""
        return [
            Claim(
                id=f"threshold-{threshold_name(metric, expression).replace('_', '-')}",
                description=f"The script's threshold: {metric}: {expression}.",
                expression=f"client.thresholds.{threshold_name(metric, expression)}",
            )
            for metric, expressions in self.thresholds.items()
            for expression in expressions
        ]


def find_script(resolved: ResolvedScenario, topology: Topology) -> OwnScript | None:
    """Return a scenario's own script; None if it has none."""
    load = resolved.scenario.load
    if load is None:
        return None
    folder = paths.real(resolved.place.home)
    environment = {name: text.replace("{target}", topology.targets[0]) for name, text in load.environment.items()}
    return OwnScript(folder, paths.real(folder / load.script), environment)


def script_problems(resolved: ResolvedScenario) -> Iterator[Problem]:
    """Yield what is wrong with a scenario's own script as far as its files tell."""
    load, chosen = resolved.scenario.load, resolved.scenario.knobs.load.workload
    if load is None:
        if chosen == WORKLOAD:
            what = "the workload 'script' needs a k6 script of your own, and the scenario names none"
            yield Problem(what, resolved.where_knob("load.workload"), "write load: {script: ./<file>.js}")
        return
    where = resolved.where("load", "script")
    if chosen != WORKLOAD:
        what = f"load.workload is '{chosen}', but the scenario has a script of its own, {load.script}"
        yield Problem(what, resolved.where_knob("load.workload"), "leave one of the two out")
    file = paths.real(resolved.place.home / load.script)
    if paths.inside(resolved.place.home, load.script) is None:
        what = f"the script {load.script} leads out of the scenario's folder"
        yield Problem(what, where, "copy it into the folder, with what it imports")
    elif not file.is_file():
        beside = [one.name for one in file.parent.glob("*.[jt]s")] if file.parent.is_dir() else []
        hint = did_you_mean(file.name, beside) or "its path begins at the scenario's folder"
        yield Problem(f"there is no script {paths.shown(file)}", where, hint)
    for name in load.environment:
        if name.startswith(_RESERVED):
            what = f"load.environment sets {name}, but the lab uses the names that begin with {' or '.join(_RESERVED)}"
            yield Problem(what, resolved.where("load", "environment", name), "use another name in the script")


def refusal(resolved: ResolvedScenario, script: OwnScript, said: str) -> Problem:
    """Return k6's refusal of a script, in its own words, as one problem."""
    lines = [line.strip() for line in said.splitlines() if line.strip()] or ["k6 said nothing"]
    # What is wrong with the options stands in a list; else the first line has it, and calls may follow.
    listed = [line.removeprefix("- ") for line in lines if line.startswith("- ")]
    message = "; ".join(listed) or lines[0]
    what = message.rpartition("could not load JS test ")[2].rpartition("'file:///tmp/own.js': ")[2]
    what = what.split(". Make sure that", maxsplit=1)[0].removeprefix("GoError: ").replace("file://", "")
    what = what.replace(f"{MOUNTED}/", "")
    hint = "correct the script"
    if "couldn't be found" in what or "no such file" in what:
        hint = f"k6 sees only {paths.shown(script.folder)} and what lies below it: put the file there"
    elif "permission denied" in what:
        hint = "let every user read the script's files (chmod -R a+rX)"
    elif "couldn't be retrieved" in what:
        what = what.partition(" from the resolved")[0]
        hint = "the lab's network has no way out: put the module beside the script"
    where = _place(script, said) or resolved.where("load", "script")
    return Problem(f"k6 refuses {paths.shown(script.file)}: {what}", where, hint)


def _place(script: OwnScript, said: str) -> str | None:
    """Find the line of the script, or of a module that it imports, that k6's message is about."""
    named = _NAMED.search(said)
    if named:
        return f"{paths.shown(script.folder / named['file'])}:{named['line']}"
    imported = _IMPORTED.search(said)
    # k6 does not say which file has the import.
    for file, number, module in _imports(script) if imported else ():
        if imported and module == imported[1]:
            return f"{paths.shown(file)}:{number}"
    return None


def _imports(script: OwnScript) -> Iterator[tuple[Path, int, str]]:
    """Yield each import of the script and of the modules that it reaches: the file, the line and the module."""
    waiting = [script.file]
    for file in waiting:
        lines = file.read_text(errors="replace").splitlines()
        for number, found in enumerate(map(_IMPORT.search, lines), start=1):
            if not found:
                continue
            yield file, number, found["module"]
            beside = paths.real(file.parent / found["module"])
            if beside not in waiting and beside.is_relative_to(script.folder) and beside.is_file():
                waiting.append(beside)


def read_options(text: str) -> Options:
    """Read what `k6 inspect --execution-requirements` prints.

    Raises:
        ValueError: it is something else.
    """
    said: Any = json.loads(text)
    thresholds = {
        metric: [one if isinstance(one, str) else one["threshold"] for one in of_metric]
        for metric, of_metric in (said.get("thresholds") or {}).items()
    }
    # Go writes a duration such as 1m30s.
    lasts_ms = sum(map(parse_duration, re.findall(r"[0-9.]+(?:ms|s|m|h)", said["totalDuration"])))
    return Options(int(said["maxVUs"]), lasts_ms, thresholds)


def contradictions(resolved: ResolvedScenario, options: Options) -> Iterator[Problem]:
    """Yield where a script's options and the scenario contradict each other."""
    load = resolved.scenario.knobs.load
    where = resolved.where("load", "script")
    if options.lasts_ms > load.max_duration:
        what = f"the script's options let it run for {format_ms(options.lasts_ms)}"
        yield Problem(
            f"{what}, but load.max_duration is {format_ms(load.max_duration)}", where, "raise load.max_duration"
        )
    if options.users_max < load.instances:
        what = f"the script's {options.users_max} users cannot be shared by {load.instances} instances of k6"
        yield Problem(what, resolved.where_knob("load.instances"), "lower load.instances")
    stated = {one.prediction.id for one in resolved.predictions}
    for claim in options.claims():
        if claim.id in stated:
            yield Problem(f"a prediction and a threshold are both named '{claim.id}'", where, "rename the prediction")
