"""Where series lie: opens a new one, and finds the one that a command goes on with."""

import hashlib
import os
from collections.abc import Container, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from analysis.compare.replicates import must_agree
from analysis.evidence import flows
from formats import role as role_file
from formats import series as series_file
from formats.manifest import utc_now
from formats.series import SCHEMA, Fingerprint, PlannedRun, Series, Stop
from formats.series import Budget as RecordedBudget
from lab import paths
from lab.engines.protocol import Engine
from lab.errors import BadInput, LabError, Problem
from lab.runs import machine
from lab.runs.run_folders import make_folder, point_latest
from lab.scenarios import own_script
from lab.scenarios.own_script import OwnScript
from lab.scenarios.resolved import ResolvedScenario
from lab.scenarios.topology import topology_of
from lab.series.plan import Plan

_SHOWN = 12


def take_fingerprint(
    plan: str, roles: Iterable[str], engine: Engine, own: Iterable[ResolvedScenario] = ()
) -> Fingerprint:
    """Take the fingerprint of this moment; images that are missing are built first.

    `own` has one cell of each scenario that brings services.

    Raises:
        BadInput: a service's image cannot be had.
        LabError: an image cannot be had, or no engine answers.
    """
    wanted = ["collector", *sorted(set(roles))]
    machine = _machine(engine)
    return Fingerprint(
        plan=plan,
        code=_digest([*_sources("lab"), paths.COMPOSE_FILE, *sorted(paths.ROOT.glob(f"*/{role_file.FILE}"))]),
        analysis=_digest([*_sources("analysis"), flows.EXPORTED]),
        images=engine.images(wanted)
        | {f"{one.slug}/{name}": image for one in own for name, image in engine.service_images(one).items()},
        kernel=machine.pop("host.kernel"),
        machine=machine,
    )


def add_own_files(plan: str, configurations: Iterable[str], scenarios: Iterable[ResolvedScenario]) -> str:
    """Return the digest of a plan with what the user's own files say, where there are any.

    What each scenario's script may read counts, too.
    """
    scenarios = list(scenarios)
    scripts = [script for one in scenarios if (script := own_script.find_script(one, topology_of(one)))]
    homes = [paths.real(one.place.home) for one in scenarios]
    said = [*configurations, *(_digest(files, folder) for folder, files in _read_by(scripts, homes).items())]
    return hashlib.sha256("\0".join((plan, *said)).encode()).hexdigest() if said else plan


def _read_by(scripts: Iterable[OwnScript], homes: Container[Path]) -> dict[Path, list[Path]]:
    """Return what counts of each folder that scripts see: all of a scenario's, but its pages for people.

    A folder above a scenario's may be a whole repository, so only what the script names counts there.
    """
    found: dict[Path, list[Path]] = {}
    for script in scripts:
        if script.folder in homes:
            files = [one for one in script.folder.rglob("*") if one.is_file() and one.suffix != ".md"]
        else:
            files = script.files()
        found[script.folder] = sorted({*found.get(script.folder, ()), *files})
    return found


def is_service_image(image: str) -> bool:
    """Return whether an image is that of a scenario's own service, which stands under <scenario>/<service>."""
    return "/" in image


def _machine(engine: Engine) -> dict[str, Any]:
    """Return what each run's manifest will say of machine and lab, as far as a comparison wants it alike in all."""
    parts = {"host": machine.describe_host(engine), "lab": machine.lab_version()}
    said = {f"{group}.{name}": value for group, part in parts.items() for name, value in part}
    return {name: value for name, value in said.items() if must_agree(name)}


def _sources(package: str) -> list[Path]:
    return sorted(file for kind in ("*.py", "*.sql") for file in (paths.PACKAGES / package).rglob(kind))


def _digest(files: Iterable[Path], folder: Path = paths.ROOT) -> str:
    digest = hashlib.sha256()
    for file in files:
        content = file.read_bytes() if file.is_file() else b""
        digest.update(f"{os.path.relpath(file, folder)}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


def list_differences(before: Fingerprint, after: Fingerprint) -> Iterator[str]:
    """Yield in words what changed between two fingerprints, so that their runs must not stand side by side."""
    if before.plan != after.plan:
        yield "the scenario, its own files, or the cells and their order"
    if before.code != after.code:
        yield "the lab's own program (lab/, compose.yaml or a role.yaml)"
    for name in sorted(before.images.keys() | after.images.keys()):
        if before.images.get(name) != after.images.get(name):
            was, is_now = (_short(images.get(name)) for images in (before.images, after.images))
            yield f"the image {'of ' if is_service_image(name) else 'connlab/'}{name} ({was}, now {is_now})"
    if before.kernel != after.kernel:
        yield f"the kernel ({before.kernel}, now {after.kernel})"
    # A series of an earlier version does not say this.
    for name, value in before.machine.items():
        if after.machine.get(name) != value:
            yield f"{name} ({value}, now {after.machine.get(name)})"


def _short(image: str | None) -> str:
    return image.removeprefix("sha256:")[:_SHOWN] if image else "none"


def open_series(plan: Plan, taken: Fingerprint, command: Sequence[str], *, new: bool) -> tuple[Series, Path, bool]:
    """Find the series that this request goes on with, or make a new one.

    Returns:
        The series, its folder, and whether it is an old one.

    Raises:
        BadInput: there is one that is not through, and what it ran with has changed since.
        LabError: the folder cannot be made.
    """
    found = None if new else _to_go_on_with(plan)
    if found is None:
        return (*_make(plan, taken, command), False)
    series, folder = found
    if plan.asked_repetitions and plan.rules.repetitions < series.repetitions:
        what = (
            f"the series {series.series} is not complete, and was begun with {series.repetitions} repetitions of each"
        )
        hint = f"ask for as many or for more (--repetitions {series.repetitions}); or NEW=1 (--new) starts another"
        raise BadInput(Problem(f"{what}, not with {plan.rules.repetitions}", hint=hint))
    changed = list(list_differences(series.fingerprint, taken))
    if changed:
        done = sum(one.status == "complete" for one in series.runs)
        what = f"the series {series.series} has {done} of {len(series.runs)} runs, and cannot continue"
        since = f"since it began, {'; '.join(changed)} changed, and their runs must not be compared"
        hint = "NEW=1 (--new) starts another series; or bring back what changed, and repeat the command"
        raise BadInput(Problem(f"{what}: {since}", hint=hint))
    series.status, series.reason, series.ended = "running", None, None
    if plan.asked_repetitions:
        _extend(series, plan)
        series.command = list(command)
    return series, folder, True


def _to_go_on_with(plan: Plan) -> tuple[Series, Path] | None:
    """Return the newest series of the same request, if it is not through, or has fewer repetitions than asked for."""
    for folder in sorted((paths.RESULTS / "series").glob(f"*Z-{plan.kind}-{plan.name}"), reverse=True):
        try:
            series = series_file.load_series(folder)
        except (OSError, ValueError):
            continue  # cut short before its first line was whole, or another version's
        if (series.overrides, series.request) == (list(plan.overrides), dict(plan.request)):
            more = plan.asked_repetitions and plan.rules.repetitions > series.repetitions
            goes_on = more if series.status == "complete" else series.status != "stopped"
            return (series, folder) if goes_on else None
    return None


def _extend(series: Series, plan: Plan) -> None:
    """Add the places that a series lacks of what the user asks for, after those that it has."""
    has = {(place.cell, place.repetition) for place in series.runs}
    series.runs += [
        PlannedRun(cell=cell, repetition=number) for cell, number in plan.order() if (cell, number) not in has
    ]
    series.repetitions = plan.rules.repetitions


def _make(plan: Plan, taken: Fingerprint, command: Sequence[str]) -> tuple[Series, Path]:
    folder = _folder(f"{plan.kind}-{plan.name}")
    rules = plan.rules
    series = Series(
        contract=SCHEMA,
        status="running",
        series=folder.name,
        kind=plan.kind,
        name=plan.name,
        title=plan.title,
        question=plan.question,
        scenarios=plan.scenarios,
        overrides=list(plan.overrides),
        request=dict(plan.request),
        command=list(command),
        started=utc_now(),
        seed=rules.seed,
        repetitions=rules.repetitions,
        cooldown_ms=rules.cooldown,
        stop=Stop(failed_in_a_row=rules.stop.failed_in_a_row, when=rules.stop.when),
        budget=RecordedBudget(cells=rules.budget.cells, duration_ms=rules.budget.duration),
        axes=list(plan.axes),
        baseline=plan.baseline,
        cells=[planned.cell for planned in plan.cells.values()],
        runs=[PlannedRun(cell=cell, repetition=repetition) for cell, repetition in plan.order()],
        predictions=list(plan.predictions),
        published=plan.published,
        leaves_open=plan.leaves_open,
        figures=list(plan.figures),
        search=plan.search,
        fingerprint=taken,
    )
    series.save(folder)
    point_latest(folder)
    return series, folder


def _folder(name: str) -> Path:
    root = paths.RESULTS / "series"
    try:
        root.mkdir(parents=True, exist_ok=True)
        return make_folder(root, name)
    except OSError as error:
        raise LabError(
            f"{error.filename}: {error.strerror}", hint=f"see that {paths.shown(paths.RESULTS)} is writable"
        ) from None
