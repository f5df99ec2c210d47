"""What the settings say must happen: the model, fed from the manifest."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from analysis.database import sql
from analysis.diagnosis import syn_ladder
from analysis.diagnosis.health import CLIENT, Evidence
from analysis.diagnosis.model_settings import ModelNotApplicable, Settings, accept_capacity, listen_backlog
from analysis.expressions.values import Kind, Unknown, Value, unknown
from analysis.figures import model_outcomes as outcomes
from analysis.figures.declaration import Compute, Figure
from analysis.figures.run import Run
from formats.manifest import PORT_RANGE, port_count

_TLS_1_3 = "TLSv1.3"


def _of_settings(compute: Callable[[Settings], Value]) -> Compute:
    """Return a figure of the settings alone."""

    def of_run(run: Run, _found: Mapping[str, str]) -> Value:
        return run.raw.window if isinstance(run.raw.window, Unknown) else _compute(run, compute)

    return of_run


def _of_load(compute: Callable[[Settings], Value]) -> Compute:
    """Return a figure of what the load must lead to; it says nothing of a run that did not put that load on."""

    def of_run(run: Run, _found: Mapping[str, str]) -> Value:
        return run.resting_on(run.clients, {Evidence.LOAD: ""}, lambda _: _compute(run, compute))

    return of_run


def _compute(run: Run, compute: Callable[[Settings], Value]) -> Value:
    try:
        return compute(Settings(run.raw.manifest))
    except ModelNotApplicable as undefined:
        return unknown(f"the model gives none: {undefined}")


def _syn_ladder_ms(settings: Settings) -> tuple[int, ...]:
    return tuple(syn.earliest_ms for syn in outcomes.syns_of_failed_dial(settings))


def _failed_dials_syns(edge: str, *kinds: str) -> Compute:
    """Return the SYNs of all dials that ended in one of these ways, by how long each lasted."""

    def of_run(run: Run, _found: Mapping[str, str]) -> Value:
        def of_dials(settings: Settings) -> Value:
            due_us = [1000 * int(getattr(syn, edge)) for syn in syn_ladder.ladder_of_users(settings)]
            asked = {"instances": run.clients, "kinds": list(kinds), "due_us": due_us}
            return int(run.raw.records.row(sql(__name__, "syns_of_dials"), **asked)["syns"])

        return run.resting_on(run.clients, {Evidence.DIALS: CLIENT}, lambda _: _compute(run, of_dials))

    return of_run


def _round_trips_to_connect(settings: Settings) -> int:
    """Return the round trips before a request leaves on a new connection to the first server."""
    manifest = settings.manifest
    first = next((name for name in manifest.request_path if manifest.kind_of(name) != "client"), None)
    if first is None:
        raise ModelNotApplicable("the run has no server")
    role = manifest.roles[first]
    if not role.tls:
        return 1
    newest = settings.get(role.knob(role.listener.newest)) if role.listener.newest else None
    if newest not in (_TLS_1_3, "TLSv1.2"):
        raise ModelNotApplicable(f"the newest TLS version of {first} is not known")
    return 2 if newest == _TLS_1_3 else 3


def _of_role(name: str, read: Callable[[Settings, str], int | None], before: int | None = None) -> Compute:
    """Return a number that all instances of a role have in common; `before`: what a kernel without it does."""

    def of_run(run: Run, found: Mapping[str, str]) -> Value:
        def of_role(settings: Settings) -> Value:
            values = {read(settings, each) for each in run.instances(found["role"])}
            if values == {None} and before is not None:
                return before
            if len(values) != 1 or None in values:
                raise ModelNotApplicable(f"the manifest has no one {name} of {found['role']}")
            return next(each for each in values if each is not None)

        return run.raw.window if isinstance(run.raw.window, Unknown) else _compute(run, of_role)

    return of_run


def _sysctl(name: str, before: int | None = None) -> Compute:
    return _of_role(name, lambda settings, instance: settings.sysctl(instance, name), before)


# What becomes of a dial that nothing answers; one that is held half open on purpose may be such a one.
_UNANSWERED = ("timeout", "canceled")

FIGURES: tuple[Figure, ...] = (
    Figure(
        "model.accept_capacity",
        "Connections that all of the last servers hold at once: each its limit of connections (backend.max_connections)"
        " + model.listen_backlog + 1.",
        _of_settings(accept_capacity),
        "analysis.diagnosis.model_settings",
        unit="connections",
    ),
    Figure(
        "model.ports.<role>",
        "Local ports that an instance of the role has for connections to one server, including those in TIME_WAIT: the"
        " size of its net.ipv4.ip_local_port_range.",
        _of_role(PORT_RANGE, lambda settings, instance: port_count(settings.manifest.sysctl(instance, PORT_RANGE))),
        "analysis.diagnosis.joins.connections",
        unit="ports",
    ),
    Figure(
        "model.time_wait_limit.<role>",
        "Sockets that an instance of the role may have in TIME_WAIT: its net.ipv4.tcp_max_tw_buckets.",
        _sysctl("net.ipv4.tcp_max_tw_buckets"),
        "the manifest",
        unit="sockets",
    ),
    Figure(
        "model.time_wait_reuse_ms.<role>",
        "How long a connection of the role must be in TIME_WAIT before tcp_tw_reuse gives its port to another"
        " connection to the same server: net.ipv4.tcp_tw_reuse_delay; one second on kernels before 6.14.",
        _sysctl("net.ipv4.tcp_tw_reuse_delay", before=1000),
        "the manifest",
        unit="ms",
    ),
    Figure(
        "model.listen_backlog",
        "The limit of the last server's accept queue, min(backlog, net.core.somaxconn), where the backlog is"
        " backend.accept_count. A service without such a knob has the kernel's limit, as read back. The queue holds one"
        " more.",
        _of_settings(listen_backlog),
        "analysis.diagnosis.model_settings",
        unit="connections",
    ),
    Figure(
        "model.round_trips_to_connect",
        "Round trips before a request can leave on a new connection to the first server: one for TCP's handshake; one"
        " more for a whole handshake by TLS 1.3, two by an older version. A kept connection needs none.",
        _of_settings(_round_trips_to_connect),
        "the manifest",
        unit="round trips",
    ),
    Figure(
        "model.syn_ladder_ms",
        "When a user's unanswered dial sends SYNs, from its start to load.connect_timeout.",
        _of_settings(_syn_ladder_ms),
        "analysis.diagnosis.syn_ladder",
        kind=Kind.LIST,
        unit="ms",
    ),
    Figure(
        "model.syns_per_failed_dial",
        "The number of these SYNs.",
        _of_settings(lambda settings: len(_syn_ladder_ms(settings))),
        "analysis.diagnosis.syn_ladder",
        unit="SYNs",
    ),
    Figure(
        "model.syns_per_failed_try",
        "How many SYNs a proxy's unanswered try sends, from its start to nginx.proxy_connect_timeout or"
        " gateway.dial_timeout.",
        _of_settings(lambda settings: len(outcomes.syns_of_failed_try(settings))),
        "analysis.diagnosis.syn_ladder",
        unit="SYNs",
    ),
    Figure(
        "model.failed_dials_syns.min",
        "The SYNs that unanswered dials sent, computed from how long each lasted: the lower bound, because the"
        " kernel's timers may be late.",
        _failed_dials_syns("latest_ms", *_UNANSWERED),
        "analysis.diagnosis.syn_ladder; k6: dials.jsonl",
        unit="SYNs",
    ),
    Figure(
        "model.failed_dials_syns.max",
        "The same: the upper bound.",
        _failed_dials_syns("earliest_ms", *_UNANSWERED, "half-open"),
        "analysis.diagnosis.syn_ladder; k6: dials.jsonl",
        unit="SYNs",
    ),
    Figure(
        "model.users_served",
        "Users who get a connection. For the workload users; for long_polling if users keep their connections.",
        _of_load(outcomes.users_served),
        "analysis.figures.queue_simulation",
        unit="users",
    ),
    Figure(
        "model.users_failed",
        "Users who get no connection. For the same workloads.",
        _of_load(outcomes.users_failed),
        "analysis.figures.queue_simulation",
        unit="users",
    ),
    Figure(
        "model.listen_drops",
        "SYNs that meet a full accept queue. For the workload users.",
        _of_load(outcomes.dropped_syns),
        "analysis.figures.queue_simulation",
        unit="SYNs",
    ),
    Figure(
        "model.response_ms.list",
        "For each call of each served user: the shortest time from its start, dialling included, to its answer. Each"
        " keep-alive timeout that it waits for may end 2 s later. For the workload users.",
        _of_load(outcomes.response_ms),
        "analysis.figures.queue_simulation",
        kind=Kind.LIST,
        unit="ms",
    ),
)
