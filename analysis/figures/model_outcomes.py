"""What a run's settings make of the model, and the loads for which it does not hold.

Every function raises ModelNotApplicable where the model does not hold, with the reason.
"""

from typing import Literal

from analysis.diagnosis import syn_ladder
from analysis.diagnosis.model_settings import (
    BACKEND,
    ModelNotApplicable,
    Settings,
    accept_capacity,
    answering_role,
    listen_backlog,
    require,
)
from analysis.diagnosis.syn_ladder import Syn
from analysis.figures.queue_simulation import Capacity, Load, UsersOutcome, simulate
from formats.knob_types import DAY_MS
from formats.role import NO_LIMIT

# The simulation's time grows with the users; beyond this the analysis would wait seconds for it.
_USERS_MAX = 20_000
_RESPONSES_MAX = 1_000_000
# Threads of the server's pool that never serve a request.
_OF_POOL = ("backend.jetty_acceptors", "backend.jetty_selectors")


def syns_of_failed_dial(settings: Settings) -> tuple[Syn, ...]:
    """Return the SYNs of a user's dial that nothing answers, until its connect timeout."""
    return _certain_before(syn_ladder.ladder_of_users(settings), settings, "load.connect_timeout")


def syns_of_failed_try(settings: Settings) -> tuple[Syn, ...]:
    """Return the SYNs of a proxy's try that nothing answers, until its connect timeout."""
    manifest = settings.manifest
    name = next((name for name in manifest.path if manifest.kind_of(name) == "proxy"), None)
    if name is None:
        raise ModelNotApplicable("there is no proxy on the path")
    role = manifest.roles[name]
    if role.limits.connect_timeout is None:
        raise ModelNotApplicable(f"nothing declares how long {name} tries to connect")
    return _certain_before(syn_ladder.ladder_of_role(settings, name), settings, role.knob(role.limits.connect_timeout))


def _certain_before(syns: tuple[Syn, ...], settings: Settings, knob: str) -> tuple[Syn, ...]:
    """Return the SYNs of a ladder that leave before a connect timeout; all where it is 0: the kernel ends them."""
    connect_timeout_ms = settings.integer(knob)
    if not connect_timeout_ms:
        return syns
    require(
        syn_ladder.is_certain(syns, connect_timeout_ms),
        f"a SYN is due so shortly before {knob} ({connect_timeout_ms} ms) that the kernel's timer, which may be late,"
        " decides whether it is sent",
    )
    return syn_ladder.before(syns, connect_timeout_ms)


def users_served(settings: Settings) -> int:
    """Return the users who get a connection."""
    if settings.get("load.workload") == "long_polling":
        return min(settings.integer("load.users"), _long_polling_capacity(settings))
    if answering_role(settings) != BACKEND:
        return _all_fit(settings)
    return _certain(_outcome(settings).served)


def users_failed(settings: Settings) -> int:
    """Return the users who get none."""
    served = users_served(settings)
    return settings.integer("load.users") - served


def dropped_syns(settings: Settings) -> int:
    """Return the SYNs that meet a full accept queue."""
    if answering_role(settings) != BACKEND:
        return settings.integer("load.users") - _all_fit(settings)
    return _certain(_outcome(settings).dropped_syns)


def response_ms(settings: Settings) -> tuple[int, ...]:
    """Return the shortest time from start to answer of each call of each served user, ascending."""
    outcome = _outcome(settings)
    _certain(outcome.served)
    require(
        outcome.responses <= _RESPONSES_MAX,
        f"the model lists at most {_RESPONSES_MAX:,} answers, and load.calls asks for {outcome.responses:,}",
    )
    return outcome.response_ms


def _all_fit(settings: Settings) -> int:
    """Return the users, where a service of the scenario's own and its queue hold all of them at once."""
    _undisturbed(settings)
    server, users = answering_role(settings), settings.integer("load.users")
    require(settings.get("load.workload") == "users", "the model is of the workload users")
    require(settings.manifest.path[:2] == ["k6", server], f"the model is of users directly at {server}")
    require(
        users <= accept_capacity(settings),
        f"more users come than {server} and its queue hold, and nothing declares how long it keeps each of them",
    )
    return users


def _undisturbed(settings: Settings) -> None:
    acted = [each.instance for each in settings.manifest.actions]
    require(not acted, f"the model does not cover the lab's actions on {', '.join(acted)} during the load")


def _certain(figure: int | None) -> int:
    if figure is None:
        raise ModelNotApplicable(
            "it depends on which of two events comes first that are too close to tell: a SYN, the acceptor's turn, the"
            " end of a keep-alive; another load.arrival_gap may part them"
        )
    return figure


def _outcome(settings: Settings) -> UsersOutcome:
    """Return what the workload `users` leads to."""
    _undisturbed(settings)
    require(settings.get("load.workload") == "users", "the model is of the workload users")
    require(settings.get("load.path") == "/api/delay", "the model knows the time of /api/delay alone")
    users = settings.integer("load.users")
    require(users <= _USERS_MAX, f"the model is of at most {_USERS_MAX} users")
    _require_direct(settings)
    role = settings.manifest.roles[BACKEND]
    slots = settings.integer(role.knob(role.limits.connections)) if role.limits.connections else NO_LIMIT
    slots = users if slots == NO_LIMIT else slots
    _require_threads(settings, min(users, slots))
    _require_lasting_connections(settings)
    load = Load(
        users=users,
        arrival_gap_ms=settings.integer("load.arrival_gap"),
        calls=settings.integer("load.calls"),
        think_ms=settings.integer("load.think_time"),
        handler_ms=settings.integer("load.handler_delay"),
        connect_timeout_ms=settings.integer("load.connect_timeout"),
        ladder=syn_ladder.ladder_of_users(settings),
    )
    keep_alive_timeout_ms = _idle_ms(settings)
    outcome = simulate(Capacity(slots, listen_backlog(settings), keep_alive_timeout_ms), load)
    _require_patience(settings, load, outcome)
    return outcome


def _limit(settings: Settings, what: Literal["idle", "threads"]) -> str:
    """Return the knob that bounds the backend."""
    role = settings.manifest.roles[BACKEND]
    name: str | None = getattr(role.limits, what)
    if name is None:
        raise ModelNotApplicable(f"no knob bounds the {what} of {role.display_name}")
    return role.knob(name)


def _idle_ms(settings: Settings) -> int:
    """Return how long the backend keeps an idle connection; 0 is for ever, which no run outlasts."""
    return settings.integer(_limit(settings, "idle")) or DAY_MS


def _require_threads(settings: Settings, requests: int) -> None:
    """No request may wait for a thread; Jetty's acceptors and selectors, and its reserve, are of the same pool."""
    if settings.get("backend.virtual_threads") is True and settings.manifest.roles[BACKEND].limits.own_threads:
        return
    if settings.manifest.roles[BACKEND].limits.threads is None:
        require(
            settings.get("backend.netty_blocking_handler") is not True,
            "requests may wait for an event loop: backend.netty_blocking_handler is true",
        )
        return
    knob = _limit(settings, "threads")
    of_pool = [settings.integer(name) for name in _OF_POOL if settings.get(name) is not None]
    others = sum(of_pool) + (_reserved_max(settings.integer(knob)) if of_pool else 0)
    require(
        requests <= settings.integer(knob) - others,
        f"requests may wait for a thread: more connections than {knob}" + (" leaves for them" if others else ""),
    )


def _reserved_max(threads: int) -> int:
    """Return how many threads Jetty reserves for its selectors: an eighth, to the next power of two, or fewer."""
    return 1 << max(threads // 8 - 1, 0).bit_length()


def _require_direct(settings: Settings) -> None:
    require(settings.manifest.path == ["k6", "backend"], "the model is of users directly at the backend")
    require(len(settings.instances("backend")) == 1, "the model is of one backend")
    require(settings.get("load.keep_alive") is True, "the model is of users who keep their connections")


def _require_lasting_connections(settings: Settings) -> None:
    """Neither the server's bound of requests nor its idle timeout may close a connection between two calls."""
    calls, requests_max, knob = settings.integer("load.calls"), *_requests_max(settings)
    require(
        requests_max == NO_LIMIT or calls < requests_max,
        f"load.calls reaches {knob}, at which the server closes the connection",
    )
    idle = _limit(settings, "idle")
    require(
        calls == 1 or settings.integer("load.think_time") < _idle_ms(settings),
        f"load.think_time reaches {idle}, at which the server closes the connection",
    )


def _requests_max(settings: Settings) -> tuple[int, str]:
    """Return the requests that the server serves on one connection, and the knob that says so."""
    role = settings.manifest.roles[BACKEND]
    # Older runs do not declare it.
    knob = role.knob(role.limits.requests or "max_keep_alive_requests")
    return (NO_LIMIT if settings.get(knob) is None else settings.integer(knob)), knob


def _require_patience(settings: Settings, load: Load, outcome: UsersOutcome) -> None:
    """No timeout but that of the connect may end a request, and the workload must come to its own end."""
    timeout_ms = settings.integer("load.request_timeout")
    require(
        load.connect_timeout_ms < timeout_ms,
        "load.request_timeout ends requests before load.connect_timeout ends their dials",
    )
    require(
        outcome.response_ms_max < timeout_ms,
        f"load.request_timeout ({timeout_ms} ms) may end requests that wait {outcome.response_ms_max} ms to be served",
    )
    require(
        outcome.end_ms < settings.integer("load.max_duration"),
        f"load.max_duration may end the load, which lasts {outcome.end_ms} ms",
    )
    require(
        not outcome.contested,
        "places become free while users still send SYNs: the first connection ends after"
        f" {_limit(settings, 'idle')}, before the last SYN is sent, and chance decides which user gets its place",
    )
    require(
        load.calls == 1 or outcome.served == load.users,
        "users who fail dial again for their next call, which the model does not follow",
    )


def _long_polling_capacity(settings: Settings) -> int:
    """Return the accept capacity, if it has room for all users, or none loses a connection before the end."""
    _require_direct(settings)
    _undisturbed(settings)
    capacity_ = accept_capacity(settings)
    if settings.integer("load.users") <= capacity_:
        return capacity_
    load_ms = sum(settings.integer(f"load.{ramp}") for ramp in ("ramp_half", "ramp_full", "ramp_hold", "ramp_down"))
    polling_ms = settings.integer("backend.polling_period")
    rejoin = settings.get("load.rejoin") is True
    idle, (requests_max, requests) = _limit(settings, "idle"), _requests_max(settings)
    require(
        _idle_ms(settings) > (polling_ms if rejoin else load_ms),
        f"users who are silent for {idle} lose their connections to others",
    )
    require(
        requests_max == NO_LIMIT or (not rejoin and load_ms // polling_ms + 1 < requests_max),
        f"users who reach {requests} lose their connections to others",
    )
    return capacity_
