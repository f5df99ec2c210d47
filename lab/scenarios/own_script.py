"""A user's own k6 script: where it lies, what it finds in its environment, and what its options say before a run."""

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis.evidence.k6_files import threshold_name
from analysis.expressions import ExpressionError
from analysis.formatting import format_ms
from formats.knob_types import parse_duration
from formats.predictions import Claim
from lab import paths
from lab.errors import Problem
from lab.reading.validation_messages import did_you_mean
from lab.scenarios.forecast import names_in
from lab.scenarios.model import OwnLoad
from lab.scenarios.resolved import PlacedPrediction, ResolvedScenario
from lab.scenarios.script_sources import Modules, Named, misnamed_check, read_named
from lab.scenarios.topology import Topology

WORKLOAD = "script"
# Where k6 finds the folder that the script lies in, and the remote modules that the lab fetched.
MOUNTED, FETCHED = Path("/script"), Path("/modules")
_RESERVED = ("K6_", "CONNLAB_")
# k6's own gracefulStop, which comes on top of an executor's time. The lab waits longer than that.
_GRACE_MS = 30_000
_BROWSERS = ("k6/browser", "k6/experimental/browser")
_OF_CHECKS = "client.checks."
_OUR_EXTENSION = "k6/x/connlab"
# How k6's messages name a line of a script, and a module that it could not find.
_NAMED = re.compile(rf"file://{MOUNTED}/(?P<file>[^ :]+):(?: Line )?(?P<line>[0-9]+)")
_IMPORTED = re.compile(r'moduleSpecifier \\?"([^"\\]+)')


@dataclass(frozen=True)
class OwnScript:
    """A script in its folder.

    Attributes:
        folder: what k6 sees of the machine: the scenario's folder, or the one that `root_of` finds.
        environment: what the script finds in __ENV, besides the lab's own variables.
        modules: where its remote modules have their text.
        image: the image of k6, if it is not the lab's.
    """

    folder: Path
    file: Path
    environment: Mapping[str, str]
    modules: Modules
    image: str | None = None

    @property
    def mounted(self) -> Path:
        """Return the script where k6 finds it."""
        return MOUNTED / self.file.relative_to(self.folder)

    def named(self) -> Iterator[Named]:
        """Yield what the script and its modules name."""
        return read_named(self.file, self.modules.text_of) if self.file.is_file() else iter(())

    def fetches(self) -> bool:
        """Return whether it has remote modules that `load.modules` does not name."""
        return any(one.remote and self.modules.file(one.text) is None for one in self.named())

    def missing_modules(self) -> dict[str, str]:
        """Return the remote modules whose text is not here yet, each with the place that imports it."""
        return {one.text: one.where for one in self.named() if one.remote and self.modules.text_of(one.text) is None}

    def settings(self) -> dict[str, str]:
        """Return the environment of k6 that the script adds."""
        served = {
            url: str(MOUNTED / file.relative_to(self.folder))
            for url, file in self.modules.mapped.items()
            if file.is_relative_to(self.folder)
        }
        if self.fetches():
            served["https://"] = str(FETCHED)
        modules = {"CONNLAB_MODULES": json.dumps(served)} if served else {}
        return {**self.environment, "CONNLAB_SCRIPT": str(self.mounted), **modules}

    def mounts(self) -> dict[Path, Path]:
        """Return what k6 sees of the machine, read-only, each with the place where it sees it."""
        return {self.folder: MOUNTED} | ({self.modules.fetched: FETCHED} if self.fetches() else {})

    def files(self, *, modules_only: bool = False) -> list[Path]:
        """Return the script and the files that it and its modules name, as far as they are here."""
        named = (one for one in self.named() if one.module or not modules_only)
        reached = [one.path or self.modules.text_of(one.text) for one in named]
        return sorted({self.file, *(file for file in reached if file is not None and file.is_file())})


def _cache() -> Path:
    folder = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(folder) / "connlab" / "modules"


def _normal(folder: Path, name: str) -> Path:
    return Path(os.path.normpath(folder / name))


def _modules(load: OwnLoad, home: Path) -> Modules:
    return Modules({url: _normal(home, file) for url, file in load.modules.items()}, _cache())


def root_of(load: OwnLoad, home: Path) -> Path:
    """Return the folder that k6 sees: `load.root`, or the nearest that holds the script and all that it names.

    A script in the scenario's folder sees at least this folder. Links are not followed.
    """
    if load.root is not None:
        return paths.real(home / load.root)
    file, modules = _normal(home, load.script or ""), _modules(load, home)
    held = {file.parent, *(one.parent for one in modules.mapped.values())}
    if file.is_relative_to(home):
        held.add(home)
    if file.is_file():
        named = read_named(file, modules.text_of)
        held |= {one.path.parent for one in named if one.path is not None and one.source.url is None}
    return Path(os.path.commonpath(held))


@dataclass(frozen=True)
class Options:
    """What k6 says of a script before it runs it.

    Attributes:
        lasts_ms: how long its scenarios take at most, with the time in which they end gracefully.
        grace_ms: the longest such time.
    """

    users_max: int
    lasts_ms: int
    grace_ms: int
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
    load = resolved.scenario.own_load
    if load is None or load.script is None:
        return None
    environment = {name: topology.fill_in(text) for name, text in load.environment.items()}
    return _script_of(resolved, load, environment)


def _script_of(resolved: ResolvedScenario, load: OwnLoad, environment: Mapping[str, str]) -> OwnScript:
    home = paths.real(resolved.place.home)
    return OwnScript(
        root_of(load, home), _normal(home, load.script or ""), environment, _modules(load, home), load.image
    )


def script_problems(resolved: ResolvedScenario) -> Iterator[Problem]:
    """Yield what is wrong with a scenario's own script as far as its files tell."""
    load, chosen = resolved.scenario.own_load, resolved.scenario.knobs.load.workload
    if load is None:
        if chosen == WORKLOAD:
            what = "the workload 'script' needs a k6 script of your own, and the scenario names none"
            yield Problem(what, resolved.where_knob("load.workload"), "write load: {script: ./<file>.js}")
        return
    where = resolved.where("load", "script")
    if chosen != WORKLOAD:
        own = f"a script of its own, {load.script}" if load.script else "a load of its own"
        what = f"load.workload is '{chosen}', but the scenario has {own}"
        yield Problem(what, resolved.where_knob("load.workload"), "leave one of the two out")
    if load.script is None:
        return
    script = _script_of(resolved, load, {})
    outside = list(_outside(resolved, load, script))
    yield from outside
    if not outside and not script.file.is_file():
        folder = script.file.parent
        beside = [one.name for one in folder.glob("*.[jt]s")] if folder.is_dir() else []
        hint = did_you_mean(script.file.name, beside) or "its path begins at the scenario's folder"
        yield Problem(f"there is no script {paths.shown(script.file)}", where, hint)
    elif not outside:
        yield from _unknown_to_k6(script)
        yield from _misnamed_checks(resolved, script)
    yield from _reserved(resolved, load)
    yield from _unmapped(resolved, script)


def _reserved(resolved: ResolvedScenario, load: OwnLoad) -> Iterator[Problem]:
    """Yield the variables that are the lab's."""
    for name in load.environment:
        if name.startswith(_RESERVED):
            what = f"load.environment sets {name}, but the lab uses the names that begin with {' or '.join(_RESERVED)}"
            yield Problem(what, resolved.where("load", "environment", name), "use another name in the script")


def _unmapped(resolved: ResolvedScenario, script: OwnScript) -> Iterator[Problem]:
    """Yield the files of `load.modules` that are not there."""
    for url, file in script.modules.mapped.items():
        place = resolved.where("load", "modules", url)
        if not url.startswith("https://"):
            yield Problem(f"load.modules names {url}", place, "k6 takes modules from https:// alone")
        elif not (file.is_dir() if url.endswith("/") else file.is_file()):
            what = f"there is no {'folder' if url.endswith('/') else 'file'} {paths.shown(file)}"
            yield Problem(
                what, place, "its path begins at the scenario's folder; an address that ends with / is a folder"
            )


def _outside(resolved: ResolvedScenario, load: OwnLoad, script: OwnScript) -> Iterator[Problem]:
    """Yield why k6 must not see the script's folder, or cannot see all that the script names."""
    home = paths.real(resolved.place.home)
    where = resolved.where("load", "root" if load.root is not None else "script")
    root, shown = script.folder, paths.shown(script.folder)
    repository = next((one for one in (home, *home.parents) if (one / ".git").exists()), None)
    if Path.home().is_relative_to(root):
        yield Problem(
            f"k6 would see all of {shown}", where, "put the script and what it imports into a folder of their own"
        )
    elif load.root is None and repository is not None and not root.is_relative_to(repository):
        what = f"the script {load.script} and what it names lie outside the repository {paths.shown(repository)}"
        yield Problem(what, where, f"write load: {{root: {os.path.relpath(root, home)}}}, if k6 may see all of {shown}")
    elif load.root is not None and not root.is_dir():
        yield Problem(f"there is no folder {shown}", where, "load.root begins at the scenario's folder")
    named = [(script.file, where, load.script)]
    named += [(one.path, one.where, one.text) for one in script.named() if one.path and one.source.url is None]
    named += [(file, where, str(file)) for file in script.modules.mapped.values()]
    for file, place, text in named:
        if not file.is_relative_to(root):
            yield Problem(f"{text} leads out of load.root, {shown}", place, "name a folder above by load.root")
        elif not paths.real(file).is_relative_to(paths.real(root)):
            what = f"{text} leads out of {shown}, the folder that k6 sees, by a symbolic link"
            yield Problem(what, place, "copy what it leads to into the folder, or name one above both by load.root")


def _unknown_to_k6(script: OwnScript) -> Iterator[Problem]:
    """Yield what the script imports of k6 that the lab's k6 does not have."""
    for one in script.named():
        if one.module and one.text in _BROWSERS:
            what = f"the script needs a browser ({one.text}), and the lab has none"
            yield Problem(what, one.where, "leave the browser's part out: the lab runs k6's protocols alone")
        elif one.module and one.text.startswith("k6/x/") and one.text != _OUR_EXTENSION and script.image is None:
            what = f"the script needs the extension {one.text}, and the lab's k6 does not have it"
            hint = "build an image of k6 that has it, and name it by load.image (docs/own-script.md, Extensions)"
            yield Problem(what, one.where, hint)


def _misnamed_checks(resolved: ResolvedScenario, script: OwnScript) -> Iterator[Problem]:
    """Yield the predictions about a check that the script does not make, and that it makes by almost the same name."""
    for stated, name in _predicted(resolved, _OF_CHECKS):
        check = name.removeprefix(_OF_CHECKS).rpartition(".")[0]
        if not script.missing_modules() and (near := misnamed_check(script.files(modules_only=True), check)):
            what = f"prediction '{stated.prediction.id}': the script makes no check named {check}"
            yield Problem(what, stated.where, f"did you mean {name.replace(check, near)}?")


def _predicted(resolved: ResolvedScenario, begins: str) -> Iterator[tuple[PlacedPrediction, str]]:
    """Yield the names that begin so in predictions of one run."""
    for stated in resolved.predictions:
        try:
            names = names_in(stated.prediction.expression)
        except ExpressionError:
            continue  # the check of predictions says what is wrong
        yield from ((stated, name) for name in names if name.startswith(begins))


def refusal(resolved: ResolvedScenario, script: OwnScript, said: str) -> Problem:
    """Return k6's refusal of a script, in its own words, as one problem."""
    lines = [line.strip() for line in said.splitlines() if line.strip()] or ["k6 said nothing"]
    # What is wrong with the options stands in a list; else the first line has it, and calls may follow.
    listed = [line.removeprefix("- ") for line in lines if line.startswith("- ")]
    message = "; ".join(listed) or lines[0]
    what = message.rpartition("could not load JS test ")[2].rpartition("'file:///-': ")[2]
    what = what.split(". Make sure that", maxsplit=1)[0].removeprefix("GoError: ").replace("file://", "")
    what = what.replace(f"{MOUNTED}/", "")
    hint = "correct the script"
    if "couldn't be found" in what or "no such file" in what:
        hint = (
            f"k6 sees only {paths.shown(script.folder)} and what lies below it:"
            " put the file there, or name a folder above by load.root"
        )
    elif "permission denied" in what:
        hint = "let every user read the script's files (chmod -R a+rX)"
    elif "couldn't be retrieved" in what:
        what = what.partition(" from the resolved")[0]
        hint = "the lab's network has no way out: keep the module beside the script, and name it in load.modules"
    where = _place(script, said) or resolved.where("load", "script")
    if "there is no image" in what:
        where, hint = (
            resolved.where("load", "image"),
            "build it (docs/own-script.md, Extensions), or correct load.image",
        )
    return Problem(f"k6 refuses {paths.shown(script.file)}: {what}", where, hint)


def _place(script: OwnScript, said: str) -> str | None:
    """Find the line of the script, or of a module that it imports, that k6's message is about."""
    named = _NAMED.search(said)
    if named:
        return f"{paths.shown(script.folder / named['file'])}:{named['line']}"
    imported = _IMPORTED.search(said)
    # k6 does not say which file has the import.
    return next((one.where for one in script.named() if imported and one.text == imported[1]), None)


def missing_refusal(missing: Mapping[str, str], why: str) -> Problem:
    """Return what to fetch, where the lab could not."""
    mapped = ", ".join(f'"{url}": ./vendor/{url.removeprefix("https://")}' for url in sorted(missing))
    what = f"the script imports modules that this machine cannot fetch ({why}): {', '.join(sorted(missing))}"
    hint = f"fetch them elsewhere, and write load: {{modules: {{{mapped}}}}}"
    return Problem(what, next(iter(missing.values())), hint)


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
    graces = [one.get("gracefulStop") for one in (said.get("scenarios") or {}).values()] or [None]
    grace_ms = max(_GRACE_MS if one is None else read_go_duration(one) for one in graces)
    return Options(int(said["maxVUs"]), read_go_duration(said["totalDuration"]), grace_ms, thresholds)


def read_go_duration(text: str) -> int:
    """Return the milliseconds of a duration as Go writes it, such as 1m30s."""
    return sum(map(parse_duration, re.findall(r"[0-9.]+(?:ms|s|m|h)", text)))


def contradictions(resolved: ResolvedScenario, options: Options) -> Iterator[Problem]:
    """Yield where a script's options and the scenario contradict each other."""
    load = resolved.scenario.knobs.load
    where = resolved.where("load", "script")
    if options.lasts_ms > load.max_duration + options.grace_ms:
        what = f"the script's options let it run for {format_ms(options.lasts_ms - options.grace_ms)}"
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
    known = [claim.expression for claim in options.claims()]
    for one, name in _predicted(resolved, "client.thresholds."):
        if name not in known:
            what = f"prediction '{one.prediction.id}': the script has no threshold {name}"
            yield Problem(what, one.where, did_you_mean(name, known) or "its options.thresholds has none like it")
