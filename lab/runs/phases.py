"""The phases of a run: start and read back, hold k6 at the start line, warm up, load with its actions, drain."""

import json
import math
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Self

from analysis.diagnosis.health.limits import K6_EXITS_IN_ORDER
from formats.manifest import BESIDE_SERVERS, ActionRecord
from lab import parallel
from lab.engines import protocol
from lab.engines.protocol import Engine, Parts, Watch
from lab.errors import EngineFailed, LabError
from lab.runs import filters, links, machine, names, readback
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
# Of an action: until the server is ready again, until the engine told of its end, until its thread has ended.
_READY_S = 90
_EVENT_S = 5
_ABORT_S = 30
_END_SPARE_S = 5


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
        names.read_back_names(context)
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


def warm_up(context: RunContext) -> None:
    """Let the servers that answer serve some requests of the load's kind, one at a time.

    They come from inside each server's own namespace, over loopback: no capture and no client's counter has them. Each
    connection ends with RST and leaves no TIME_WAIT behind. The waiting room lets its first user in at once, so the one
    place that is taken there is not in the users' way.

    Raises:
        LabError: a request failed.
    """
    engine, scenario, topology = context.engine, context.resolved.scenario, context.topology
    count, run_load = scenario.warmup.requests, scenario.knobs.load
    answering = topology.roles[topology.answering]
    server_url = f"{'https' if answering.tls else 'http'}://127.0.0.1:{answering.port}"

    def warm(server: str) -> str:
        request: tuple[str, ...] = (f"{server_url}{run_load.path}",)
        if run_load.workload == "long_polling":
            place = protocol.request_from(engine, server, f"{server_url}/api/wait", method="POST")
            body = json.dumps({"token": place["token"]})
            request = ("--method", "POST", "--body", body, f"{server_url}/api/entry")
        timeout_s = 30 + count * _WARMUP_REQUEST_S
        return engine.ask(server, "collector", "http", "--times", str(count), *request, timeout_s=timeout_s)

    parallel.each(warm, topology.instances[topology.answering])


class Actions:
    """The actions of a run: each is done on a thread of its own, and writes down when it really was.

    As a context it sees to it that nothing goes on, and no server stays paused, when the measurement breaks off.
    """

    def __init__(self, context: RunContext, watch: Watch) -> None:
        measure = context.manifest.phases[-1]
        begun_ago_s = time.time() - measure.start_us / 1e6
        self._zero = time.monotonic() - begun_ago_s
        self._engine = context.engine
        self._watch = watch
        self._broken_off = threading.Event()
        self._errors: list[LabError] = []
        self._records = context.manifest.actions
        self._threads = [
            threading.Thread(target=self._act, args=(record,), name=f"action-{number}", daemon=True)
            for number, record in enumerate(self._records, start=1)
        ]
        self._roles = {one: context.topology.roles[context.topology.role_of(one)] for one in context.topology.all}
        self._links = partial(links.change_link, context)
        self._names = partial(names.move_name, context)
        self._filters = partial(filters.set_filter, context)

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._broken_off.set()
        for thread in self._threads:
            thread.join(_ABORT_S)

    def check(self) -> None:
        """Raise LabError if an action failed."""
        if self._errors:
            raise self._errors[0]

    def settle(self) -> str | None:
        """Wait, after the load, for actions that are under way; return a message about one that never began.

        Raises:
            LabError: an action failed.
        """
        due_s = time.monotonic() - self._zero
        # One whose time has come may wait for what came before on the same server.
        missed = [one for one in self._records if one.start_us is None and one.at_ms / 1000 > due_s]
        for record, thread in zip(self._records, self._threads, strict=True):
            if record not in missed:
                thread.join()
        self.check()
        return f"the load had ended before it was time to {_shown(missed[0])}" if missed else None

    def _act(self, record: ActionRecord) -> None:
        if self._broken_off.wait(max(0.0, self._zero + record.at_ms / 1000 - time.monotonic())):
            return
        self._await_earlier(record)
        record.start_us = _now_us()
        try:
            self._deeds[record.do](record)
        except LabError as error:
            self._errors.append(LabError(f"the lab could not {_shown(record)}: {error}"))
        else:
            record.end_us = _now_us()

    @property
    def _deeds(self) -> dict[str, Callable[[ActionRecord], None]]:
        return {
            "pause": self._pause,
            "restart": self._restart,
            "stop": self._stop,
            "drain": self._stop,
            "start": self._start,
            "reload": self._reload,
            "cpu": self._limit_cpus,
            "link": partial(self._change_and_back, self._links),
            "dns": self._names,
            "filter": partial(self._change_and_back, self._filters),
        }

    def _await_earlier(self, record: ActionRecord) -> None:
        """Wait for what came before on the same server: an orderly end may take longer than its grace."""
        for other, thread in zip(self._records, self._threads, strict=True):
            if other.instance == record.instance and other.at_ms < record.at_ms and other.do not in BESIDE_SERVERS:
                thread.join()

    def _pause(self, record: ActionRecord) -> None:
        self._engine.pause(record.instance)
        self._wait(record)
        self._engine.resume(record.instance)

    def _restart(self, record: ActionRecord) -> None:
        self._stop(record)
        if not self._wait(record):
            self._start(record)

    def _start(self, record: ActionRecord) -> None:
        self._watch.expect(record.instance, end=False)
        self._engine.start_again(record.instance)
        protocol.await_ready(self._engine, record.instance, _READY_S)

    def _reload(self, record: ActionRecord) -> None:
        reload = self._roles[record.instance].reload
        if reload is None:
            raise LabError("its role does not declare how it is reloaded")
        # The old processes answer until the new ones do, so there is nothing to wait for.
        self._engine.signal(record.instance, reload.signal)

    def _limit_cpus(self, record: ActionRecord) -> None:
        before = self._engine.limit_cpus(record.instance, record.cpus)
        self._wait(record)
        after = self._engine.limit_cpus(record.instance, None)
        if before is not None and after is not None:
            record.throttled_periods = after.throttled_periods - before.throttled_periods
            record.throttled_us = after.throttled_us - before.throttled_us

    def _change_and_back(self, change: Callable[..., None], record: ActionRecord) -> None:
        change(record)
        self._wait(record)
        change(record, back=True)

    def _stop(self, record: ActionRecord) -> None:
        self._watch.expect(record.instance, end=True)
        if record.grace_ms is None:
            self._engine.stop([record.instance])
        else:
            # A program with a grace of its own cuts its requests off when that is over, and needs a moment more to end.
            spare_s = _END_SPARE_S if self._roles[record.instance].grace else 0
            self._engine.stop([record.instance], math.ceil(record.grace_ms / 1000) + spare_s)
        record.down_us = _now_us()
        record.exit_code = self._exit_code(record.instance)

    def _exit_code(self, instance: str) -> int:
        """Return what the engine told of the end; its word may come a moment after the stop."""
        deadline = time.monotonic() + _EVENT_S
        while (code := self._watch.expected_exit_code(instance)) is None:
            if time.monotonic() > deadline:
                raise LabError(f"the engine did not report its end within {_EVENT_S} s")
            time.sleep(0.01)
        return code

    def _wait(self, record: ActionRecord) -> bool:
        """Wait for as long as the action lasts; True if the measurement broke off."""
        return self._broken_off.wait((record.for_ms or 0) / 1000)


def _shown(record: ActionRecord) -> str:
    return f"{record.words} ({record.at_ms / 1000:g} s after the start)"


def _now_us() -> int:
    return time.time_ns() // 1000


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
