"""What belongs to one run: its configuration, folder and manifest."""

import contextlib
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from analysis.evidence.rawfiles import FOLDER, Places
from analysis.steps import Steps
from formats import manifest, run_liveness
from formats.manifest import ActionRecord, Guess, Knob, Manifest, Status, utc_now
from lab import paths
from lab.engines.protocol import Engine
from lab.errors import BadInput, Problem
from lab.runs import machine, raw_folders, service_settings, user_files
from lab.runs.lock import Lock
from lab.runs.run_folders import make_run_folder, tries_out, unwritable
from lab.scenarios import dns_names, places
from lab.scenarios.places import Place
from lab.scenarios.resolved import ResolvedScenario
from lab.scenarios.topology import Topology, topology_of


@dataclass(frozen=True)
class RunPosition:
    """Which run this is: of which series, which cell of it, which repetition; and what somebody expects of it.

    Attributes:
        tries_out: whether it tries settings out, as an exercise does, so that `latest` stays where it is.
        profile: gets its steps, if its manifest is to say how long each took; has those that came before.
    """

    series: str | None = None
    cell: str = "default"
    repetition: int = 1
    guesses: Sequence[Guess] = ()
    tries_out: bool = False
    profile: Steps | None = None


_ALONE = RunPosition()


@dataclass(frozen=True)
class RunContext:
    """One run.

    Attributes:
        folder: results/<scenario>/<run-id>.
    """

    engine: Engine
    resolved: ResolvedScenario
    topology: Topology
    folder: Path
    manifest: Manifest
    tries_out: bool = False
    steps: Steps = field(default_factory=Steps)

    @property
    def raw(self) -> Path:
        """Return the folder of the raw files, one below it for each instance."""
        return self.folder / FOLDER

    @property
    def places(self) -> Places:
        """Return where in it each container writes."""
        return Places(self.folder)

    def save(self) -> None:
        """Write the manifest as it stands; with the steps so far, if it is to have them."""
        if self.manifest.profile is not None:
            self.manifest.profile = dict(self.steps.ms)
        self.manifest.save(self.folder)

    def finish(self, status: Status, reason: str | None = None) -> None:
        """Write the last manifest; a full disk has room for this one."""
        self.manifest.finish(status, reason)
        run_liveness.release_run(self.folder)
        self.save()


def open_run(
    resolved: ResolvedScenario,
    engine: Engine,
    command: Sequence[str],
    position: RunPosition = _ALONE,
    lock: Lock | None = None,
) -> RunContext:
    """Make the run's folders and its first manifest.

    The lock names the folder at once, so that no death leaves a run that seems at work.

    Raises:
        BadInput: another folder's runs lie there.
        LabError: they cannot be made, or no engine answers.
    """
    refuse_taken(resolved.place)
    topology = topology_of(resolved)
    host, git, version = machine.describe_host(engine), machine.git_state(), machine.lab_version()
    options = user_files.script_options(resolved, topology, engine)
    folder = _make_folders(paths.RESULTS / resolved.slug, resolved, topology, position)
    if lock:
        named = position.cell != RunPosition.cell
        lock.note(f"{position.cell} r{position.repetition:02}" if named else None, folder)
    scenario = resolved.scenario
    first = Manifest(
        contract=manifest.SCHEMA,
        status="running",
        scenario=resolved.slug,
        folder=None if resolved.place.own else str(resolved.place.home),
        title=scenario.title,
        question=scenario.question,
        run=folder.name,
        series=position.series,
        cell=position.cell,
        repetition=position.repetition,
        preset=resolved.preset,
        by_set=scenario.arms is None and resolved.variant.path is None,
        command=list(command),
        started=utc_now(),
        git=git,
        lab=version,
        settings=service_settings.find_settings(resolved, topology),
        host=host,
        path=list(scenario.path),
        roles=dict(resolved.roles),
        instances={str(role): list(instances) for role, instances in topology.instances.items()},
        metrics_port=engine.metrics,
        knobs=knob_records(resolved),
        actions=[
            ActionRecord(
                do=one.do,
                instance=one.instance,
                at_ms=one.at,
                for_ms=one.lasts,
                grace_ms=one.grace,
                cpus=one.cpus,
                to=one.to,
                change=None if one.change is None else one.change.model_dump(exclude_unset=True),
                name=one.name,
                was=dns_names.led_to(scenario, one),
                answer=one.answer,
            )
            for one in scenario.actions
        ],
        slow_ms=scenario.slow,
        tolerance=scenario.tolerance,
        predictions=[*(stated.prediction for stated in resolved.predictions), *(options.claims() if options else ())],
        published=resolved.published,
        guesses=list(position.guesses),
        profile=None if position.profile is None else {},
    )
    apart = position.tries_out or tries_out(position.series)
    context = RunContext(engine, resolved, topology, folder, first, apart, position.profile or Steps())
    try:
        run_liveness.hold_run(folder)
        context.save()
    except OSError as error:
        # A folder without a manifest is not a run.
        shutil.rmtree(folder, ignore_errors=True)
        raise unwritable(error, folder) from None
    return context


def refuse_taken(place: Place) -> None:
    """Refuse a folder whose results would lie among those of another one; a folder that was moved is no other one.

    Raises:
        BadInput: the newest run there is of another scenario.
    """
    results = paths.RESULTS / place.slug
    newest = max(results.glob(f"*/{manifest.FILE}"), default=None)
    if place.own or newest is None:
        return
    with contextlib.suppress(OSError, ValueError):
        other = manifest.load_manifest(newest.parent).folder
        if other is None or (other != str(place.home) and places.is_home(Path(other))):
            what = f"{paths.shown(results)} has runs of {other or 'a scenario of the lab itself'}"
            hint = f"rename the folder, or move {paths.shown(results)} away"
            raise BadInput(Problem(what, paths.shown(place.home), hint))


def _make_folders(parent: Path, resolved: ResolvedScenario, topology: Topology, position: RunPosition) -> Path:
    try:
        parent.mkdir(parents=True, exist_ok=True)
        folder = make_run_folder(parent, f"{position.cell}-r{position.repetition:02}")
        for instance in topology.all:
            own = resolved.registry.services.get(topology.role_of(instance))
            any_user = own is not None and own.user is not None and own.log is not None and not own.log.stdout
            raw_folders.make_raw_folders(Places(folder), instance, any_user=any_user)
    except OSError as error:
        raise unwritable(error, parent) from None
    return folder


def knob_records(resolved: ResolvedScenario) -> dict[str, Knob]:
    """Return every knob of the roles on the path with its default and who set it; sysctls have no default here."""
    declared = resolved.registry.knobs
    return {
        name: Knob(
            value=value,
            default=declared[name].default if name in declared else None,
            source=resolved.source(name),
            unit=declared[name].unit if name in declared else None,
        )
        for name, value in resolved.on_path.items()
    }
