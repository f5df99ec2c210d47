"""One observation, from its first collector to its report."""

import contextlib
import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

from analysis.evidence.rawfiles import FOLDER, Places
from formats import run_liveness
from formats.knob_types import format_duration
from formats.manifest import Listener, Manifest, Observed
from lab import paths, terminal
from lab.engines.protocol import Engine, Sidecar, Sidecars, await_healthy
from lab.errors import FilesLost, LabError
from lab.observe.options import ObserveOptions
from lab.observe.targets import FoundTarget
from lab.runs import machine, raw_folders, run_results
from lab.runs.run_folders import make_run_folder, point_latest, unwritable
from lab.signals import Interrupted, interruptible, shielded

# What is read of a namespace, and never set.
SYSCTLS = (
    "net.core.somaxconn",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_abort_on_overflow",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_max_tw_buckets",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_tw_reuse",
)
_RATE_HZ = 10
# How often the engine is asked whether the targets still run.
_LOOK_S = 1.0
# A collector that does not sample and capture by then never will.
_READY_S = 30
# How long a collector goes on past its time, if nobody stops it.
_LEFT_ALONE_S = 300
# The window's edges lie between ticks.
_EDGE_S = 0.3


def announce(targets: Sequence[FoundTarget], options: ObserveOptions) -> list[str]:
    """Return what the lab will see, for the user, before it starts."""
    names = ", ".join(each.record.name for each in targets)
    packets = {
        "headers": (
            "the headers of each TCP packet: addresses, ports, flags, lengths, times; at most 128 bytes of a packet"
            f" and no data; {options.capture_max_mb} MiB at most"
        ),
        "handshakes": (
            "the headers of SYN, FIN and RST packets: at most 128 bytes of a packet and no data;"
            f" {options.capture_max_mb} MiB at most"
        ),
        "off": "no packet",
    }[options.capture]
    processes = ["  - names, processor time and memory of its processes, once a second."]
    events = [
        "  - what the kernel itself tells of each connection there: when it was accepted and by which program,",
        "    retransmissions, resets, dropped packets; by BPF programs that run while the lab watches;",
    ]
    leaves = "It restarts nothing, sets nothing and sends nothing, and"
    if any(each.record.kind == "pod" for each in targets):
        after = [
            f"{leaves} its collector ends at the end. It is an ephemeral container: Kubernetes takes none",
            "out of a pod, so its entry stays there, ended and without its files, until the pod is gone.",
        ]
    else:
        after = [f"{leaves} takes its collector away at the end."]
    return [
        f"The lab watches {names} for {format_duration(options.for_ms)}, from inside its network namespace. It sees:",
        f"  - {packets};",
        "  - the kernel's counters, listening sockets, and sockets by state and address, ten times a second;",
        *(events if options.events == "kernel" else []),
        *(processes if any(each.processes for each in targets) else []),
        *(
            f"It does not see the processes of {each.record.name}: {each.container.apart}."
            for each in targets
            if each.container.apart
        ),
        *after,
    ]


def observe(targets: Sequence[FoundTarget], options: ObserveOptions, engine: Engine, command: Sequence[str]) -> Path:
    """Observe, analyse, and return the run's folder.

    What was recorded before an interruption, or before a target ended, is kept and analysed.

    Raises:
        LabError: no collector could be started, or what it recorded cannot be analysed.
    """
    sidecars = engine.sidecars()
    # The nodes of a cluster have the image, or do not: a collector there tells which it is, once it runs.
    images = engine.images(["collector"]) if engine.on_this_machine else {}
    first = next(each for each in targets if not each.record.peer).record.instance
    folder = _folder(f"observed-{first}")
    record = _manifest(targets, options, engine, folder, command)
    record.images = images
    record.begin("prepare")
    record.save(folder)
    collectors: dict[str, Sidecar] = {}
    failed: LabError | None = None
    with interruptible():
        try:
            _start(targets, options, folder, sidecars, collectors)
            _inspect(record, collectors)
            _look_at_clocks(record, collectors)
            record.begin("measure")
            record.save(folder)
            _watch(targets, options, sidecars)
        except Interrupted as error:
            terminal.problem(f"{error}: what was recorded so far is analysed")
        except LabError as error:
            failed = error
        finally:
            # A signal now asks for what is being done already.
            with contextlib.suppress(Interrupted), shielded():
                record.end_phase()
                if failed is None:
                    time.sleep(_EDGE_S)
                    _look_at_clocks(record, collectors)
                left = _leave(targets, record, collectors)
                failed = left or failed
                try:
                    record.removed += raw_folders.seal_raw_folders(folder / FOLDER, ended=left is None)
                except OSError as error:
                    what = f"the files in {paths.shown(folder / FOLDER)} cannot be taken back: {error.strerror}"
                    failed = failed or LabError(what)
                measured = record.phase("measure") is not None
                why = None if failed is None else failed.what
                record.finish("complete" if failed is None and measured else "failed", why)
                run_liveness.release_run(folder)
                record.save(folder)
    if failed is not None or record.status != "complete":
        raise failed or LabError("nothing was recorded: it was interrupted before the collectors were ready")
    run_results.analyse_run(folder)
    point_latest(folder)
    return folder


def _manifest(
    targets: Sequence[FoundTarget], options: ObserveOptions, engine: Engine, folder: Path, command: Sequence[str]
) -> Manifest:
    observed = Observed(targets=[each.record for each in targets], **asdict(options))
    title = f"Observed: {', '.join(each.record.name for each in targets)}"
    record = Manifest.of_observation(folder, title, observed, command)
    record.git, record.lab, record.host = machine.git_state(), machine.lab_version(), machine.describe_host(engine)
    record.nodes = {each.record.instance: each.container.machine for each in targets if each.container.machine}
    return record


def _folder(name: str) -> Path:
    parent = paths.RESULTS / name
    try:
        parent.mkdir(parents=True, exist_ok=True)
        folder = make_run_folder(parent, "default-r01")
        run_liveness.hold_run(folder)
    except OSError as error:
        raise unwritable(error, parent) from None
    return folder


def _start(
    targets: Sequence[FoundTarget],
    options: ObserveOptions,
    folder: Path,
    sidecars: Sidecars,
    collectors: dict[str, Sidecar],
) -> None:
    places = Places(folder)
    for each in targets:
        instance = each.record.instance
        raw_folders.make_raw_folders(places, instance)
        environment = {
            "CONNLAB_ROLE": instance,
            "CONNLAB_RATE_HZ": str(_RATE_HZ),
            "CONNLAB_CAPTURE": options.capture,
            "CONNLAB_CAPTURE_MAX_MB": str(options.capture_max_mb),
            "CONNLAB_INTERFACE": options.interface,
            "CONNLAB_EVENTS": options.events,
            "CONNLAB_OBSERVING": "1",
            "CONNLAB_DEADLINE_S": str(options.for_ms // 1000 + _LEFT_ALONE_S),
        }
        collectors[instance] = sidecars.start(
            f"connlab-observe-{os.getpid()}-{instance}"[:120],
            environment,
            places.collector(instance),
            target=each.joins,
            processes=each.processes,
        )
    end = time.monotonic() + _READY_S
    for each in targets:
        gone = partial(_gone_note, each, sidecars)
        await_healthy(collectors[each.record.instance], each.record.name, _READY_S, end, gone)


def _gone_note(target: FoundTarget, sidecars: Sidecars) -> str:
    return " (the target has ended)" if _is_gone(target, sidecars) else ""


def _inspect(record: Manifest, collectors: dict[str, Sidecar]) -> None:
    arguments = [part for name in SYSCTLS for part in ("--sysctl", name)]
    for instance, collector in collectors.items():
        told = json.loads(collector.ask("collector", "inspect", *arguments))
        record.images["collector"] = collector.image()
        record.sysctls[instance] = told["sysctls"]
        record.listeners[instance] = [Listener.model_validate(each) for each in told["listeners"]]
        # The loopback's belong to each namespace.
        record.addresses[instance] = [*told["addresses"], "127.0.0.1", "::1"]


def _look_at_clocks(record: Manifest, collectors: Mapping[str, Sidecar]) -> None:
    for instance in record.nodes:
        if instance in collectors:
            record.clocks += machine.read_clock(instance, collectors[instance].ask)


def _watch(targets: Sequence[FoundTarget], options: ObserveOptions, sidecars: Sidecars) -> None:
    """Wait until the time is over, or every target has ended."""
    end = time.monotonic() + options.for_ms / 1000
    while time.monotonic() < end:
        for each in targets:
            if not each.record.ended and _is_gone(each, sidecars):
                each.record.ended = True
                # A pod takes the files of its collector with it.
                kept = "" if each.record.kind == "pod" else "; what was recorded so far is analysed"
                terminal.problem(f"{each.record.name} ended while it was observed{kept}")
        if all(each.record.ended for each in targets):
            return
        time.sleep(min(_LOOK_S, max(end - time.monotonic(), 0)))


def _is_gone(target: FoundTarget, sidecars: Sidecars) -> bool:
    if isinstance(target.joins, str):
        return not sidecars.is_running(target.joins)
    return not Path(f"/proc/{target.joins}").is_dir()


def _leave(targets: Sequence[FoundTarget], record: Manifest, collectors: dict[str, Sidecar]) -> LabError | None:
    """Stop and remove each collector, whatever has become of its target and of the others; return what failed last."""
    failed: LabError | None = None
    for collector in collectors.values():
        try:
            collector.stop()
        except FilesLost as error:
            failed = error
        except LabError:
            try:
                collector.remove()
            except LabError as error:
                failed = LabError(f"a collector could not be removed: {error.what}", hint=error.hint)
    if record.observed:
        record.observed.targets = [each.record for each in targets]
    return failed
