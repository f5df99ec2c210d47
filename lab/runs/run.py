"""A run, phase by phase: prepare, warm up, measure, drain, stop, derive."""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console

from analysis import command_hints
from analysis.evidence import rawfiles
from analysis.reports import run_report
from analysis.steps import Steps
from formats import manifest, run_liveness
from formats.manifest import Guess
from lab import paths, terminal
from lab.engines.protocol import Engine
from lab.errors import BadInput, Interruption, LabError
from lab.runs import capacity, links, phases, raw_folders, run_results, scrape_targets, user_files
from lab.runs.gauges import Gauges
from lab.runs.live_display import Display
from lab.runs.lock import Lock, is_ours, machine_lock
from lab.runs.run_context import RunContext, RunPosition, open_run
from lab.runs.run_folders import point_latest
from lab.scenarios import forecast
from lab.scenarios.resolved import ResolvedScenario
from lab.signals import Interrupted, interruptible, shielded

_STOP_GRACE_ABORTED_S = 5


def run(
    resolved: ResolvedScenario,
    engine: Engine,
    command: Sequence[str],
    console: Console,
    *,
    guesses: Sequence[Guess] = (),
    lock: Lock | None = None,
    tries_out: bool = False,
    profile: Steps | None = None,
) -> Path:
    """Run a scenario once and return the folder with everything recorded; containers are gone when this returns.

    The command may hold the machine's `lock` for more than this run. With `tries_out`, `latest` stays where it is.

    Raises:
        BadInput: this machine or its kernel cannot do what is asked.
        LabError: the lab or the machine failed, or the run was interrupted; what was recorded stays.
    """
    steps = profile or Steps()
    with steps.step("check"):
        for line in user_files.describe_configurations(resolved, capacity.check_capacity(resolved, engine)):
            console.print(line, markup=False, highlight=False, soft_wrap=True)
    with machine_lock(f"the run of {resolved.slug}", held=lock) as held, interruptible():
        with steps.step("clear up"):
            clear_up_after(held, engine)
        cell = resolved.variant.arm or RunPosition.cell
        position = RunPosition(cell=cell, guesses=guesses, tries_out=tries_out, profile=profile)
        with steps.step("open"):
            context = open_run(resolved, engine, command, position, held)
        record(context, console, held, resolved.slug)
        return context.folder


def record(context: RunContext, console: Console, lock: Lock, title: str) -> None:
    """Take a run from its opened context to its end; the caller holds the machine's lock.

    Raises:
        BadInput, LabError: as `run`.
    """
    try:
        with _ensure_ending(context, lock):
            _phases(context, console, title)
    finally:
        scrape_targets.withdraw_targets()


def clear_up_after(lock: Lock, engine: Engine) -> None:
    """Remove what a run left behind that could not clear up after itself, and let its manifest say so."""
    engine.remove()
    scrape_targets.withdraw_targets()
    if lock.dead is None or lock.dead.folder is None:
        return
    try:
        _finish_dead_run(lock.dead.folder, lock.dead.pid)
    except Exception as error:  # noqa: BLE001 # whatever that run's containers made of its files, the next one begins
        where = paths.shown(paths.RESULTS / lock.dead.folder)
        terminal.problem(f"connlab: {where}: what the run before this one left stays as it is: {_reason(error)}")


def _finish_dead_run(name: str, pid: int) -> None:
    """Seal a run whose process ended without a word, and let its manifest say so."""
    try:
        folder = _find_own_folder(name)
        left = manifest.read_manifest(folder)
    except (OSError, ValueError):
        return
    if left.status != "running" or (left.scenario, left.run) != (folder.parent.name, folder.name):
        return
    left.finish("aborted", f"the lab's process {pid} ended without a message (killed, or the machine went down)")
    try:
        left.removed.extend(raw_folders.seal_raw_folders(folder / rawfiles.FOLDER))
    finally:
        run_liveness.release_run(folder)
        left.save(folder)


def _find_own_folder(name: str) -> Path:
    """Return the folder of a run of this checkout, if nobody else can have put anything in its place.

    Raises:
        ValueError: it is none: it lies elsewhere, a link leads to it, or other users may write there.
        OSError: it is not there.
    """
    results = paths.RESULTS.resolve()
    file = results / name / manifest.FILE
    scenario, run, _ = file.relative_to(results).parts
    chain = (results, results / scenario, results / scenario / run, file)
    if file.resolve() != file or not all(is_ours(one.lstat()) for one in chain):
        raise ValueError(f"{file} is not a manifest of this user's")
    return file.parent


@contextlib.contextmanager
def _ensure_ending(context: RunContext, lock: Lock) -> Iterator[None]:
    """See to it that, whatever happens, nothing of the run is left running and its manifest says how it ended."""
    try:
        yield
    except BaseException as error:
        reason, ended, left = _reason(error), False, None
        # A signal now asks for what is being done already.
        with contextlib.suppress(Interrupted), shielded():
            ended = _has_ended(context)
            left = None if ended else _abandon(context)
            with contextlib.suppress(OSError):
                context.finish("aborted", "; ".join(filter(None, (reason, left))))
                if left is None:
                    lock.note()
        if ended:
            raise _error_after_end(context, error) from error
        if isinstance(error, BadInput):
            raise
        if isinstance(error, Interrupted | LabError | OSError):
            kind = Interruption if isinstance(error, Interrupted) else LabError
            told = (f"the run was aborted: {reason}", left, *_derive_what_was_recorded(context))
            raise kind("\n".join(filter(None, told))) from error
        raise


def _has_ended(context: RunContext) -> bool:
    """Return whether the manifest on the disk says how the run ended."""
    with contextlib.suppress(OSError, ValueError):
        return manifest.load_manifest(context.folder).status != "running"
    return False


def _error_after_end(context: RunContext, error: BaseException) -> LabError:
    """Return an error for what came after the run's end: everything is recorded, and its manifest says so."""
    kind = Interruption if isinstance(error, Interrupted) else LabError
    folder = paths.shown(context.folder)
    derive = command_hints.make_command_here("analyse", {"RUN": command_hints.name_folder(context.folder)})
    return kind(
        f"{_reason(error)}, after the end of the run, which is {context.manifest.status}: {folder}",
        hint=f"derive its verdict: {derive}",
    )


def _derive_what_was_recorded(context: RunContext) -> Iterator[str]:
    """Derive what can be derived of a run that broke off, and return lines that say where it lies."""
    yield f"what was recorded stays in {paths.shown(context.folder)}"
    try:
        run_results.analyse_run(context.folder)
    except Exception as error:  # noqa: BLE001 # whatever half a run's files make of the analysis, why it broke off matters more
        yield f"there is no report of it: {str(error).splitlines()[0] if str(error) else type(error).__name__}"
    else:
        yield f"its report: {paths.shown(context.folder / run_report.FILE)}"


def _reason(error: BaseException) -> str:
    if isinstance(error, OSError):
        return f"{error.filename or 'the machine'}: {error.strerror}"
    return str(error) or type(error).__name__


def _abandon(context: RunContext) -> str | None:
    """Stop and remove in order; each step is tried whatever became of the one before."""
    with contextlib.suppress(Exception):
        context.engine.stop_along_the_path(context.topology, _STOP_GRACE_ABORTED_S)
    with contextlib.suppress(Exception):
        context.engine.keep_logs(context.topology, context.raw)
    with contextlib.suppress(Exception):
        context.manifest.exits = context.engine.exit_codes(context.topology)
    left = _try_to_remove(context.engine)
    with contextlib.suppress(Exception):
        context.manifest.removed.extend(raw_folders.seal_raw_folders(context.raw, ended=left is None))
    return left


def _try_to_remove(engine: Engine) -> str | None:
    """Remove what runs, on the way out of a failed run; where that fails too, return what is left."""
    try:
        engine.remove()
    except LabError as error:
        return f"its containers could not be removed: {error}; run 'connlab clean' (make clean)"
    return None


def _phases(context: RunContext, console: Console, title: str) -> None:
    scenario, topology, step = context.resolved.scenario, context.topology, context.steps.step
    with Display(console, title) as display, context.engine.watch(context.manifest.run) as watch:
        with step("prepare"):
            _begin(context, display, "prepare")
            phases.start_servers(context, watch)
            if line := scrape_targets.publish_targets(context):
                console.print(line, markup=False, highlight=False, soft_wrap=True)
            with step("start line"):
                topology = context.topology
                phases.await_clients(
                    context.engine, [one for one in topology.clients if one not in topology.generators], watch
                )
        if scenario.warmup.requests:
            with step("warmup"):
                _begin(context, display, "warmup")
                for line in phases.warm_up(context):
                    console.print(line, markup=False, highlight=False, soft_wrap=True)
        phases.record_clocks(context)
        _end(context)

        # Files that come after the run tell nothing during it.
        ports = {one: topology.port_of(one) for one in topology.all}
        gauges = Gauges(topology.clients, ports, context.places) if context.engine.on_this_machine else None
        display.watch(gauges)
        with step("measure"):
            _begin(context, display, "measure", forecast.expected_load_s(context.resolved))
            fault = phases.run_load(context, watch, display)
        with step("drain"):
            _begin(context, display, "drain", scenario.drain / 1000)
            phases.drain(context, watch, display)
        _end(context)
        phases.record_clocks(context)

        display.watch(None)
        display.phase("stopping")
        _close(context, fault)
    if context.manifest.profile is not None:
        context.save()


def _begin(context: RunContext, display: Display, name: manifest.PhaseName, expected_s: float | None = None) -> None:
    context.manifest.begin(name)
    context.save()
    display.phase(name, expected_s)


def _end(context: RunContext) -> None:
    context.manifest.end_phase()
    with context.steps.step("samples"):
        phases.await_samples(context)


def _close(context: RunContext, fault: str | None) -> None:
    """Bring the evidence into its final form, then clear up; no signal comes between."""
    step = context.steps.step
    with step("close"), shielded():
        links.record_use(context)
        with step("stop"):
            context.engine.stop_along_the_path(context.topology)
        with step("logs"):
            try:
                context.engine.keep_logs(context.topology, context.raw)
            except (LabError, OSError) as error:
                # They are for people; no figure rests on them.
                terminal.problem(f"connlab: what the containers said was not kept: {_reason(error)}")
            try:
                context.manifest.exits = context.engine.exit_codes(context.topology)
            except LabError as error:
                terminal.problem(f"connlab: the containers' exit codes were not kept: {error}")
        with step("seal"):
            context.manifest.removed.extend(raw_folders.seal_raw_folders(context.raw))
            context.finish("failed" if fault else "complete", fault)
        with step("remove"):
            context.engine.remove()
        if not context.tries_out:
            point_latest(context.folder)
