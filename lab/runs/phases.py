"""The phases of a run: start and read back, hold k6 at the start line, warm up, load with its actions, drain."""

import json
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

from analysis.diagnosis.health.limits import K6_EXITS_IN_ORDER
from lab import parallel
from lab.engines import protocol
from lab.engines.protocol import Engine, Parts, Watch
from lab.errors import EngineFailed, LabError
from lab.runs import dns_names, links, machine, readback
from lab.runs.actions import Actions
from lab.runs.gauges import last_tick_us
from lab.runs.live_display import Display
from lab.runs.run_context import RunContext
from lab.scenarios.certificates import certificates_for
from lab.scenarios.topology import collector_of

_STATUS_URL = "http://127.0.0.1:6565/v1/status"
_POLL_S = 0.1
_READY_TIMEOUT_S = 120
# k6's lib.ExecutionStatusPausedBeforeRun: all users are initialised, and the test waits to be resumed.
_PAUSED_BEFORE_RUN = 4
_TICK_S = 0.25
# After max_duration k6 ends its users and writes its summary.
_END_MARGIN_S = 90
_DISK_FREE_MIN_BYTES = 64 << 20
_WARMUP_REQUEST_S = 2
_SAMPLE_MAX_S = 2
# A program that cannot be run, is not there, or was ended by a signal.
_CANNOT_RUN = 126
_SAMPLE_POLL_S = 0.02
# Where a sampler's file comes when the run is over: ten of its periods.
_UNSEEN_S = 1


def start_servers(context: RunContext, watch: Watch) -> None:
    """Start everything but the load and check that each setting took.

    Raises:
        BadInput: the kernel refuses a sysctl.
        LabError: an image, an instance or a setting failed.
    """
    engine, resolved, topology = context.engine, context.resolved, context.topology
    own = resolved.registry.services
    step = context.steps.step
    with step("images"):
        context.manifest.images = {
            **engine.images(["collector", *(role for role in resolved.scenario.path if role not in own)]),
            **engine.service_images(resolved),
        }
    with step("start"):
        certificates = certificates_for(resolved, topology)
        engine.start(Parts(resolved, topology, context.manifest.run, context.places, certificates), watch)
        context.manifest.nodes = dict(engine.machines(topology))
    with step("read back"):
        readback.read_back(engine, resolved, topology, context.manifest, context.places)
        context.save()
    if topology.moving:
        dns_names.read_back_names(context)
    if resolved.scenario.network:
        with step("links"):
            try:
                links.set_links(context)
            finally:
                context.save()


def await_clients(engine: Engine, instances: list[str], watch: Watch) -> None:
    """Wait until every instance has initialised its users and stands paused.

    Raises:
        LabError: an instance ended, or did not get there in time.
    """
    deadline = time.monotonic() + _READY_TIMEOUT_S
    waiting = list(instances)
    while True:
        ready = parallel.each(lambda one: _is_ready(engine, one), waiting)
        waiting = [instance for instance in waiting if not ready[instance]]
        if not waiting:
            return
        for instance in waiting:
            ended = watch.ended(instance)
            if ended:
                raise LabError(f"{ended} before its load:{engine.last_words(instance)}")
        if time.monotonic() > deadline:
            raise LabError(f"{', '.join(waiting)} did not initialise its users within {_READY_TIMEOUT_S} s")
        time.sleep(_POLL_S)


def _is_ready(engine: Engine, instance: str) -> bool:
    try:
        attributes = _attributes(protocol.request_from(engine, instance, _STATUS_URL))
    except EngineFailed:
        return False  # its API is not up yet, or it has ended, which the caller sees
    return attributes.get("status") == _PAUSED_BEFORE_RUN and attributes.get("paused") is True


def release_clients(engine: Engine, instances: list[str], generators: Sequence[str] = ()) -> None:
    """Start the load in all instances at once: let k6 go on, and start the containers of other generators."""
    parallel.each(engine.start_again, generators)
    body = json.dumps({"data": {"type": "status", "id": "default", "attributes": {"paused": False}}})
    answers = parallel.each(
        lambda one: protocol.request_from(engine, one, _STATUS_URL, method="PATCH", body=body), instances
    )
    for instance, answer in answers.items():
        if _attributes(answer).get("paused") is not False:
            raise LabError(f"{instance} did not start its load: {json.dumps(answer)[:200]}")


def _attributes(answer: Any) -> dict[str, Any]:  # noqa: ANN401 # JSON
    try:
        return dict(answer["data"]["attributes"])
    except (KeyError, TypeError):
        raise LabError(f"k6 did not report its status: {json.dumps(answer)[:200]}") from None


def record_clocks(context: RunContext) -> None:
    """Note what the clock of each other machine shows, with this one's before and after.

    A look that fails tells nothing: the analysis says what it lacks.
    """
    nodes = context.manifest.nodes
    first = {node: instance for instance, node in reversed(nodes.items())}
    found = parallel.each(
        lambda instance: machine.read_clock(instance, partial(context.engine.ask, instance)), first.values()
    )
    context.manifest.clocks += [each for of_node in found.values() for each in of_node]


def warm_up(context: RunContext) -> list[str]:
    """Let the servers that answer serve some requests of the load's kind, one at a time.

    A server may fail requests, and a run is there to find out why: its warm-up ends early then, and the run goes on.

    They come from inside each server's own namespace, over loopback: no capture and no client's counter has them. Each
    connection ends with RST and leaves no TIME_WAIT behind. The waiting room lets its first user in at once, so the one
    place that is taken there is not in the users' way.

    Returns:
        A line for each server that failed a request.

    Raises:
        LabError: a server did not come to its end in time.
    """
    engine, scenario, topology = context.engine, context.resolved.scenario, context.topology
    count, run_load = scenario.warmup.requests, scenario.knobs.load
    answering = topology.roles[topology.answering]
    server_url = f"{'https' if answering.tls else 'http'}://127.0.0.1:{answering.port}"

    def warm(server: str) -> str | None:
        try:
            serve_some(server)
        except EngineFailed as error:
            reason = error.what.splitlines()[-1].strip().removeprefix("collector: ")
            return f"warm-up: {server} failed a request, so it is less warm than the scenario says: {reason}"
        return None

    def serve_some(server: str) -> None:
        request: tuple[str, ...] = (f"{server_url}{run_load.path}",)
        if run_load.workload == "long_polling":
            place = protocol.request_from(engine, server, f"{server_url}/api/wait", method="POST")
            body = json.dumps({"token": place["token"]})
            request = ("--method", "POST", "--body", body, f"{server_url}/api/entry")
        timeout_s = 30 + count * _WARMUP_REQUEST_S
        engine.ask(server, "collector", "http", "--times", str(count), *request, timeout_s=timeout_s)

    return [line for line in parallel.each(warm, topology.instances[topology.answering]).values() if line]


def run_load(context: RunContext, watch: Watch, display: Display) -> str | None:
    """Let the clients go, act on the servers as the scenario says, and wait until all have come to their end.

    Returns:
        What spoils the run although it came to an end, or None.

    Raises:
        LabError: a server or a collector ended, or the disk is full: the rest would prove nothing.
    """
    with Actions(context, watch) as actions:
        fault = _load(context, watch, display, actions)
        return fault or actions.settle()


def _load(context: RunContext, watch: Watch, display: Display, actions: Actions) -> str | None:
    clients = context.topology.clients
    generators = context.topology.generators
    release_clients(context.engine, [one for one in clients if one not in generators], generators)
    # Of another generator only the lab knows that there is an end.
    margin_s = 0 if generators else _END_MARGIN_S
    limit_s = context.resolved.scenario.knobs.load.max_duration / 1000 + margin_s
    deadline = time.monotonic() + limit_s
    while any(watch.exit_code(client) is None for client in clients):
        _check(context, watch)
        actions.check()
        display.refresh()
        if time.monotonic() > deadline:
            context.engine.stop(clients)
            if generators:
                return None
            return f"k6 did not end within {limit_s:g} s and was stopped"
        time.sleep(_TICK_S)
    bad = [
        client for client in clients if not _ended_in_order(watch.exit_code(client), is_generator=client in generators)
    ]
    return f"{watch.ended(bad[0])}:{context.engine.last_words(bad[0])}" if bad else None


def _ended_in_order(code: int | None, *, is_generator: bool) -> bool:
    """Return whether a client ran its load; a generator other than k6 may count failed requests by its exit code."""
    if is_generator:
        return code is not None and code < _CANNOT_RUN
    return code in K6_EXITS_IN_ORDER


def drain(context: RunContext, watch: Watch, display: Display) -> None:
    """Go on watching the sockets after the load, for the scenario's window."""
    end = time.monotonic() + context.resolved.scenario.drain / 1000
    while (left_s := end - time.monotonic()) > 0:
        _check(context, watch)
        display.refresh()
        time.sleep(min(_TICK_S, left_s))


def await_samples(context: RunContext) -> None:
    """Wait until each sampler has taken a sample that began after the end of the last phase.

    The window's counters are read off the samples on either side of it. One that is taken amid the warm-up may have a
    connection as opened and not yet as accepted; and a server that is shut down before the last has no listener in it.
    A sampler that takes none within the bound is left behind; what it lacks is unknown then.
    """
    end_us = context.manifest.phases[-1].end_us or 0
    behind = [context.places.collector(instance, "samples.jsonl") for instance in context.topology.all]
    seen = any(file.exists() for file in behind)
    deadline = time.monotonic() + (_SAMPLE_MAX_S if seen else min(_SAMPLE_MAX_S, _UNSEEN_S))
    while (behind := [file for file in behind if last_tick_us(file) <= end_us]) and time.monotonic() < deadline:
        time.sleep(_SAMPLE_POLL_S)


def _refuse_without_engine(context: RunContext) -> None:
    """Raise that the engine ended, if it did: an engine that ends in order stops all containers first."""
    try:
        context.engine.versions()
    except LabError as error:
        raise LabError(f"the engine ended: {error.what.splitlines()[-1].strip()}", hint=error.hint) from None


def _check(context: RunContext, watch: Watch) -> None:
    watch.check()
    collectors = [collector_of(instance) for instance in context.topology.all]
    own = context.resolved.registry.services
    lasting = [name for name in context.topology.needed if not own[name].completes]
    for service in (*context.topology.servers, *lasting, *collectors):
        ended = watch.ended(service)
        if ended:
            _refuse_without_engine(context)
            raise LabError(f"{ended} during the run:{context.engine.last_words(service)}")
    if machine.disk_free_bytes(context.raw) < _DISK_FREE_MIN_BYTES:
        raise LabError(f"the disk is full: less than {_DISK_FREE_MIN_BYTES >> 20} MiB are left at {context.raw}")
