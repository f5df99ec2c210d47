"""Runs that repeat one another: read alone or by their series, told apart by settings, and a figure's value in each.

A comparison reads a run's manifest, figures and verdict. Never its raw files.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from pydantic import ValidationError

from analysis.compare.comparison_file import Setting, SettingChange
from analysis.compare.intervals import Values
from analysis.expressions.values import Number, is_number
from analysis.verdicts import derived
from analysis.verdicts.derived import DerivedError
from analysis.verdicts.figures_file import FiguresFile, MeasuredValue
from analysis.verdicts.verdict_file import Verdict
from formats import manifest
from formats import series as series_file
from formats.manifest import Manifest
from formats.sanitize import format_validation_error
from formats.series import FILE, PlannedRun, Series


class CompareError(ValueError):
    """Runs that cannot be compared: the text says which, why, and what to do."""


@dataclass(frozen=True)
class RunRecord:
    """One run, as its manifest and the files of derived/ have it.

    Attributes:
        verdict: None where nothing is derived.
        why: of each figure that is unknown, why.
        underived: why there is nothing but the manifest, None if there is.
    """

    folder: Path
    manifest: Manifest
    verdict: Verdict | None
    figures: Mapping[str, MeasuredValue]
    why: dict[str, str]
    underived: str | None = None

    @property
    def name(self) -> str:
        """Return its scenario and id, as commands take them."""
        return f"{self.scenario}/{self.manifest.run}"

    @property
    def scenario(self) -> str:
        """Return the scenario's name."""
        return self.manifest.scenario

    @property
    def repetition(self) -> int:
        """Return which one of its cell it is, from 1."""
        return self.manifest.repetition

    @cached_property
    def unusable(self) -> str | None:
        """Return why the run is not evidence, None if it is.

        A run that did not complete, of which nothing is derived, that is inconclusive about a prediction of its own, or
        of which more is unexplained than its scenario tolerates, or whose observers contradict each other, is shown and
        not counted.
        """
        if self.manifest.status != "complete":
            return f"{self.manifest.status}{f': {self.manifest.reason}' if self.manifest.reason else ''}"
        if self.underived is not None:
            return self.underived
        if self.verdict is None:
            return None
        if self.verdict.verdict == "inconclusive" and self.verdict.predictions:
            unknown = [each for each in self.verdict.predictions if each.status == "unknown"]
            return "; ".join(["inconclusive", *(f"{each.id}: {each.why}" for each in unknown[:1])])
        return next((each.message for each in self.verdict.problems if each.instrument == "ledger"), None)

    def number(self, name: str) -> Number | None:
        """Return a figure or knob that is a number, None if it is unknown, or is none.

        Figures of the only instance of a role stand under the role's name.
        """
        value: object
        if name in self.manifest.knobs:
            value = self.manifest.knobs[name].value
        else:
            value = self.figures[name] if name in self.figures else self.figures.get(_of_role(name))
        return value if is_number(value) else None


def _of_role(name: str) -> str:
    parts = name.split(".")
    return ".".join(part.removesuffix("_1") if index == 1 else part for index, part in enumerate(parts))


def load_run(folder: Path) -> RunRecord:
    """Read a run; raise CompareError if it is none, has no verdict, or was written by another version."""
    record = load_ended_run(folder)
    if record.underived is not None:
        raise CompareError(record.underived)
    return record


def load_ended_run(folder: Path) -> RunRecord:
    """Read a run, whether or not anything is derived of it; raise CompareError if it is none, or has not ended."""
    try:
        recorded = manifest.load_manifest(folder)
    except manifest.ManifestError as error:
        raise CompareError(str(error)) from None
    if recorded.status == "running":
        raise CompareError(f"{folder}: the run has not ended; wait for it, or, if it was killed, run it again")
    try:
        figures = derived.read(folder, FiguresFile)
        judged = derived.read(folder, Verdict)
    except DerivedError as error:
        return RunRecord(folder, recorded, verdict=None, figures={}, why={}, underived=str(error))
    return RunRecord(folder, recorded, judged, figures.figures, figures.why)


def find_changes(a: RunRecord, b: RunRecord) -> list[SettingChange]:
    """Return every setting that differs between two runs, those that differ unasked first."""
    of_a, of_b = _settings(a), _settings(b)
    units = {name: knob.unit for run in (a, b) for name, knob in run.manifest.knobs.items()}
    found = [
        SettingChange(name=name, a=of_a.get(name), b=of_b.get(name), unit=units.get(name), asked=_is_asked(name, a, b))
        for name in sorted(of_a.keys() | of_b.keys())
        if of_a.get(name) != of_b.get(name) and (name in of_a.keys() & of_b.keys() or not _is_of_one_path(name, a, b))
    ]
    return sorted(found, key=lambda change: (change.asked, _is_sysctl(change.name), change.name))


def _is_of_one_path(name: str, a: RunRecord, b: RunRecord) -> bool:
    """Return whether a setting stands on one side because only that path has the instance, or role, that it is of.

    The path says so already, whoever set it: a knob of nginx means nothing where there is no nginx.
    """
    first, _, rest = name.partition(".")
    if _is_sysctl(name):
        return not all(rest.split(".")[0] in run.manifest.sysctls for run in (a, b))
    role = rest if first == "image" else first
    of_paths = [role in run.manifest.path for run in (a, b)]
    return any(of_paths) and not all(of_paths)


def _is_sysctl(name: str) -> bool:
    """Return whether a setting is a sysctl; they come after the rest: many differ at once when a kernel does."""
    return name.startswith("sysctl.")


def _is_asked(name: str, a: RunRecord, b: RunRecord) -> bool:
    """Return whether somebody set what differs: a knob beyond its default, the sysctl of one, or the path."""
    if name == "path":
        return True
    if _is_sysctl(name):
        _, instance, sysctl = name.split(".", 2)
        instances = [each for run in (a, b) for each in run.manifest.instances.items()]
        role = next((role for role, names in instances if instance in names), instance)
        return any(f"kernel.{role}.{sysctl}" in run.manifest.knobs for run in (a, b))
    knobs = [run.manifest.knobs.get(name) for run in (a, b)]
    return any(knob is not None and knob.source != "default" for knob in knobs)


def _settings(run: RunRecord) -> dict[str, Setting]:
    """Return every setting of a run by name: knobs, sysctls of each instance, images, machine, versions."""
    manifest = run.manifest
    found: dict[str, Setting] = {name: knob.value for name, knob in manifest.knobs.items()}
    found["path"] = " ".join(manifest.path)
    for group, part in (("host", manifest.host), ("git", manifest.git), ("lab", manifest.lab)):
        found |= _flat(group, part.model_dump(exclude_defaults=True))
    found |= _flat("image", manifest.images)
    for instance, sysctls in manifest.sysctls.items():
        found |= _flat(f"sysctl.{instance}", sysctls)
    found["slow_ms"] = manifest.slow_ms
    return found


def _flat(prefix: str, values: Mapping[str, Setting]) -> dict[str, Setting]:
    return {f"{prefix}.{name}": value for name, value in values.items()}


# What may differ between repetitions of one cell: it says who ran it, not what was run. What a kernel leaves of the
# memory at its start is not the same twice.
_OF_NO_EFFECT = ("git.", "lab.python", "host.memory_kb")


def must_agree(name: str) -> bool:
    """Return whether runs in which a setting differs are not repetitions of each other."""
    return not name.startswith(_OF_NO_EFFECT)


def find_mismatch(a: RunRecord, b: RunRecord) -> SettingChange | None:
    """Return the first setting by which two runs are not repetitions of each other; None if they are."""
    found = next((change for change in find_changes(a, b) if must_agree(change.name)), None)
    instances_a, instances_b = (run.manifest.instances for run in (a, b))
    if found is None and instances_a != instances_b:
        return SettingChange(name="instances", a=str(instances_a), b=str(instances_b), asked=True)
    return found


@dataclass(frozen=True)
class Group:
    """Repetitions of one cell, or of one side of a comparison; those that are not evidence too."""

    name: str
    runs: tuple[RunRecord, ...]

    @property
    def used(self) -> list[RunRecord]:
        """Return the runs that are evidence."""
        return [run for run in self.runs if run.unusable is None]

    @property
    def example(self) -> RunRecord:
        """Return one of them, for their settings: a usable one, if there is any."""
        return (self.used or self.runs)[0]


def load_group(name: str, folders: Sequence[Path]) -> Group:
    """Read a group; raise CompareError if it is none."""
    if not folders:
        raise CompareError(f"{name} names no run; give at least one run's folder")
    return group_runs(name, [load_run(folder) for folder in folders])


def group_runs(name: str, records: Sequence[RunRecord]) -> Group:
    """Group runs; raise CompareError if they are not repetitions of one another."""
    first = records[0]
    for index, record in enumerate(records[1:], start=1):
        # By its name: a copy of a run's folder is the same run.
        if record.name in [each.name for each in records[:index]]:
            raise CompareError(f"{name} names the run {record.name} twice; leave one out")
        if record.scenario != first.scenario:
            raise CompareError(
                f"{name} mixes the scenarios {first.scenario} and {record.scenario}; give runs of one scenario"
            )
        change = find_mismatch(first, record)
        if change is not None:
            raise CompareError(
                f"{name} mixes runs that are not repetitions of each other: {change.name} is {change.a} in {first.name}"
                f" and {change.b} in {record.name}; leave one out, or give them as A and B"
            )
    return Group(name, tuple(records))


def require_comparable(a: Group, b: Group, *, scenarios_differ: bool = False) -> None:
    """Raise CompareError unless two groups can be compared; cells of a matrix may be of different scenarios."""
    both = {run.name for run in a.runs} & {run.name for run in b.runs}
    if both:
        raise CompareError(f"the run {min(both)} is both A and B; give two different runs")
    if not scenarios_differ and a.example.scenario != b.example.scenario:
        raise CompareError(
            f"{a.example.name} and {b.example.name} are of different scenarios, whose figures do not mean the same;"
            " compare runs of one scenario, or write a matrix over both"
        )


# Figures that a run has only where something occurred → the figure that says that it was looked for.
_ZERO_IF_ABSENT = (
    (re.compile(r"client\.requests\.(error|status)\."), "client.requests.total"),
    (re.compile(r"access\.(?P<proxy>\w+)\.(status|errors)\."), "access.{proxy}.requests"),
)


def figure_names(groups: Iterable[Group]) -> list[str]:
    """Return every figure that is a number in some usable run, in the order of the runs' files."""
    runs = [run for group in groups for run in group.used]
    return list(dict.fromkeys(name for run in runs for name in run.figures if run.number(name) is not None))


def figure_values(runs: Iterable[RunRecord], name: str) -> Values:
    """Return the value of a figure in each run that knows it."""
    found = [_number(run, name) for run in runs]
    return tuple(value for value in found if value is not None)


def _number(run: RunRecord, name: str) -> Number | None:
    if name not in run.figures:
        for family, looked_for in _ZERO_IF_ABSENT:
            of_family = family.match(name)
            if of_family and run.number(looked_for.format(**of_family.groupdict())) is not None:
                return 0
    return run.number(name)


@dataclass(frozen=True)
class SeriesRuns:
    """A series with its runs: of each cell those that completed; cells without any are missing."""

    folder: Path
    plan: Series
    groups: dict[str, Group]

    def places(self, cell: str) -> list[PlannedRun]:
        """Return the repetitions of a cell, whatever became of them."""
        return [place for place in self.plan.runs if place.cell == cell]


def load_series(folder: Path) -> SeriesRuns:
    """Read a series and its runs; raise CompareError if there is none, or if its runs cannot be compared."""
    plan = load_plan(folder)
    found: dict[str, list[RunRecord]] = {}
    for place in plan.runs:
        if place.status == "complete" and place.run is not None:
            found.setdefault(place.cell, []).append(_run(folder, plan, place))
    return SeriesRuns(folder, plan, {cell: group_runs(cell, records) for cell, records in found.items()})


def load_plan(folder: Path) -> Series:
    """Read what a series is to run, and what became of each run; raise CompareError if the file is no such."""
    path = folder / FILE
    try:
        return series_file.load_series(folder)
    except FileNotFoundError:
        raise CompareError(f"{folder}: no {FILE} here; give a series' folder") from None
    except OSError as error:
        raise CompareError(f"{path}: {error.strerror}") from None
    except ValidationError as error:
        raise CompareError(
            f"{path}: {format_validation_error(error)}; run the series again with NEW=1 (--new)"
        ) from None


def _run(folder: Path, plan: Series, place: PlannedRun) -> RunRecord:
    # A series lies in results/series/<id>, its runs in results/<scenario>/<run-id>.
    path = folder.parent.parent / str(place.run)
    if not path.is_dir():
        raise CompareError(f"{path}: the series {plan.series} has this run, and it is not there; copy it too")
    record = load_ended_run(path)
    if record.underived is not None and place.reason is not None:
        record = replace(record, underived=place.reason)
    again = "run the series again with NEW=1 (--new)"
    manifest = record.manifest
    if (manifest.series, manifest.cell) != (plan.series, place.cell):
        raise CompareError(
            f"{path}: the run belongs to the cell {manifest.cell} of the series {manifest.series}, not to"
            f" {place.cell} of {plan.series}; {again}"
        )
    kernel = manifest.host.kernel
    if kernel != plan.fingerprint.kernel:
        raise CompareError(f"{path}: its kernel is {kernel}, that of the series {plan.fingerprint.kernel}; {again}")
    for role, image in manifest.images.items():
        if image != plan.fingerprint.images.get(role, image):
            raise CompareError(
                f"{path}: its image of {role} is not the one that the series began with: it was built again in between,"
                f" and the series mixes both; {again}"
            )
    return record
