"""What must hold between the parts of a scenario, beyond each value's own type and range."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from analysis.formatting import spoken
from formats import role as role_file
from formats.role import KINDS
from lab.errors import Problem
from lab.scenario import own_configuration, own_script, presets, sysctls, templates
from lab.scenario.action_checks import action_problems
from lab.scenario.catalogue import CATALOGUE, show_value
from lab.scenario.effective import Effective
from lab.scenario.load import own_ms, takes_ms
from lab.scenario.prediction_checks import prediction_problems
from lab.scenario.services import needed_by

_DELAY = "/api/delay"
# The lines that k6's requests have, less one (k6/lib/slow.js).
_HEADER_INTERVALS = {"GET": 4, "POST": 6}
# Tomcat's maxHeaderCount.
_HEADERS_MAX = 100
_SHARED = "give each instance a user, or lower load.instances"


def problems_of(effective: Effective) -> Iterator[Problem]:
    """Give everything about the scenario that cannot be run or would silently do nothing."""
    yield from presets.problems(effective.scenario, effective.document)
    path_problems = list(_path(effective))
    yield from path_problems
    yield from _roles(effective)
    yield from own_script.problems(effective)
    yield from own_configuration.problems(effective)
    yield from _workload(effective)
    if effective.scenario.load is None:
        yield from _target(effective)
    yield from _services(effective)
    yield from _bounds(effective)
    yield from _between_knobs(effective)
    yield from _sysctls(effective)
    if not path_problems:
        yield from action_problems(effective)
        yield from prediction_problems(effective)
        yield from templates.problems(effective)


def _path(effective: Effective) -> Iterator[Problem]:
    path, roles = effective.scenario.path, effective.world.roles
    where = effective.where("path")
    shown = f"[{', '.join(path)}]"
    in_order = sorted(path, key=lambda role: KINDS.index(roles[role].kind))
    if roles[path[0]].kind != "client":
        client = next(name for name, role in roles.items() if role.kind == "client")
        way_on = f"write [{', '.join([client, *(role for role in in_order if role != client)])}]"
        yield Problem(f"the path {shown} does not begin with {client}, the client", where, way_on)
    if len(set(path)) < len(path):
        yield Problem(f"the path {shown} names a role twice", where, "name each role once")
    elif in_order != path:
        yield Problem(
            f"the roles of the path {shown} are not in the order {', '.join(KINDS)}",
            where,
            f"write [{', '.join(in_order)}]",
        )
    elif [roles[role].kind for role in path].count("proxy") > 1:
        what = f"the path {shown} has two proxies, but the lab can follow requests through one only"
        yield Problem(what, where, "leave one of the two out")


def _roles(effective: Effective) -> Iterator[Problem]:
    path = effective.scenario.path
    for knob in effective.asked():
        parts = knob.split(".")
        role = parts[1] if parts[0] == "kernel" else parts[0]
        if role in effective.world.roles and role not in path:
            what = f"{knob} is set, but {role} is not on the path [{', '.join(path)}]"
            yield Problem(what, effective.where_knob(knob), f"leave it out, or put {role} on the path")


def _workload(effective: Effective) -> Iterator[Problem]:
    workload = effective.scenario.knobs.load.workload
    for knob in effective.asked():
        readers = CATALOGUE[knob].workloads if knob in CATALOGUE else None
        if readers and workload not in readers:
            what = f"{knob} is set, but the workload '{workload}' does not read it"
            way_on = f"leave it out; only {' and '.join(readers)} {'read' if len(readers) > 1 else 'reads'} it"
            if effective.scenario.load is not None:
                what = f"{knob} is set, but the options of the scenario's own script decide that"
                way_on = f"leave it out, and set it in {effective.scenario.load.script}"
            yield Problem(what, effective.where_knob(knob), way_on)


def _target(effective: Effective) -> Iterator[Problem]:
    load = effective.scenario.knobs.load
    last = role_file.request_path(effective.scenario.path, lambda role: effective.roles[role].kind)[-1]
    if effective.roles[last].kind == "proxy":
        page = effective.roles[last].page
        if last in effective.scenario.configurations:
            return
        if page is None:
            what = f"{effective.roles[last].called} has no page of its own to answer with"
            yield Problem(what, effective.where("path"), "put backend on the path")
        elif load.workload == "long_polling":
            yield Problem(
                "the workload long_polling needs the backend's waiting room",
                effective.where("path"),
                "put backend on the path",
            )
        elif load.path != page:
            what = f"without a backend, {last} has only its static page {page}, but load.path is {load.path}"
            yield Problem(
                what, effective.where_knob("load.path"), f"set load.path to {page}, or put backend on the path"
            )
    elif last != "backend":
        yield from _target_of_service(effective, last)
    if load.path != _DELAY:
        for knob in ("load.method", "load.handler_delay", "load.response_bytes"):
            if effective.source(knob) != "default":
                yield Problem(
                    f"{knob} is set, but only {_DELAY} reads it, and load.path is {load.path}",
                    effective.where_knob(knob),
                    f"leave it out, or set load.path to {_DELAY}",
                )


def _target_of_service(effective: Effective, last: str) -> Iterator[Problem]:
    """Check what a service of the scenario's own is asked for: the workloads are written for the backend."""
    if effective.scenario.knobs.load.workload == "long_polling":
        yield Problem(
            "the workload long_polling needs the backend's waiting room",
            effective.where("path"),
            "put backend on the path",
        )
    if effective.source("load.path") == "default" and effective.scenario.load is None:
        what = f"load.path has its default {_DELAY}, which only the lab's own backend answers, and not {last}"
        yield Problem(what, effective.where("path"), "set load.path, such as /")
    if effective.roles[last].tls and effective.scenario.warmup.requests:
        what = f"the warm-up speaks plain HTTP only, and {last} takes TLS"
        yield Problem(what, effective.where("warmup"), "leave warmup out")


def _services(effective: Effective) -> Iterator[Problem]:
    own, path = effective.world.services, effective.scenario.path
    servers = [role for role in path if effective.roles[role].kind == "server"]
    for server, behind in pairwise(servers):
        if server not in own:
            what = f"on the path {behind} comes after {server}, but {server} connects to no other server"
            yield Problem(what, effective.where("path"), f"leave {behind} out")
        elif behind not in own[server].needs:
            what = f"on the path {behind} comes after {server}, but {server} does not name it in 'needs'"
            yield Problem(what, effective.where("path"), f"write needs: [{behind}] in {server}, or leave {behind} out")
    for name in needed_by(own, [role for role in path if role in own]):
        if name not in path and isinstance(own[name].ready, str):
            what = f"{name} is not on the path, so it has no collector that could ask for {own[name].ready}"
            way_on = "give a command that runs in its container, such as [pg_isready]"
            yield Problem(what, effective.where("services", name, "ready"), way_on)


def _bounds(effective: Effective) -> Iterator[Problem]:
    for role in effective.world.roles.values():
        for name, limit in role.ordered_knobs():
            value, most = effective.number(name), effective.number(limit)
            if value > most:
                what = f"{name} ({value}) exceeds {limit} ({most})"
                yield Problem(what, _first_asked(effective, limit, name), f"lower {name}, or raise {limit}")


def _between_knobs(effective: Effective) -> Iterator[Problem]:
    knobs, at = effective.scenario.knobs, effective.where_knob
    load, backend = knobs.load, knobs.backend
    if load.workload == "long_polling" and backend.token_timeout <= backend.polling_period:
        what = (
            f"backend.token_timeout ({_shown(effective, 'backend.token_timeout')}) must exceed backend.polling_period"
        )
        yield Problem(
            f"{what} ({_shown(effective, 'backend.polling_period')}), or the backend abandons every waiting user",
            _first_asked(effective, "backend.polling_period", "backend.token_timeout"),
        )
    if load.workload == "long_polling" and backend.instances > 1:
        what = (
            f"each of the {backend.instances} backends has its own waiting room, which does not know users of another"
        )
        yield Problem(what, at("backend.instances"), "set backend.instances to 1")
    if load.workload == "sequential" and load.instances > 1:
        what = "the workload 'sequential' has one user, so it runs in one instance of k6"
        yield Problem(what, at("load.instances"), "set load.instances to 1")
    if load.workload == "long_polling" and load.users == 1:
        what = "the workload long_polling starts its users in two halves, so it needs two users or more"
        yield Problem(what, at("load.users"), "set load.users to 2 or more")
    if load.workload not in ("spike", "sequential", "script") and load.users < load.instances:
        what = f"{load.users} users cannot be shared by {load.instances} instances of k6"
        yield Problem(what, _first_asked(effective, "load.instances", "load.users"), _SHARED)
    if load.workload == "spike" and load.max_users < load.instances:
        what = f"load.max_users ({load.max_users}) cannot be shared by {load.instances} instances of k6"
        yield Problem(what, _first_asked(effective, "load.instances", "load.max_users"), _SHARED)
    if load.workload == "slow_clients":
        yield from _headers(effective)
    yield from _durations(effective)


def _headers(effective: Effective) -> Iterator[Problem]:
    load = effective.scenario.knobs.load
    shown = _shown(effective, "load.header_duration")
    intervals = _HEADER_INTERVALS[load.method]
    if load.header_duration < intervals * load.header_interval:
        what = f"a header has at least {intervals + 1} lines; at one line every"
        yield Problem(
            f"{what} {_shown(effective, 'load.header_interval')} it takes longer than load.header_duration ({shown})",
            _first_asked(effective, "load.header_interval", "load.header_duration"),
            "shorten load.header_interval, or raise load.header_duration",
        )
    # But for the request line and the empty one.
    headers = load.header_duration // load.header_interval - 1
    if headers > _HEADERS_MAX:
        what = f"at one line every {_shown(effective, 'load.header_interval')}, a load.header_duration of {shown} makes"
        yield Problem(
            f"{what} {headers:,} headers, and Tomcat refuses a request with more than {_HEADERS_MAX}",
            _first_asked(effective, "load.header_interval", "load.header_duration"),
            "raise load.header_interval, or shorten load.header_duration",
        )
    if load.request_timeout <= load.header_duration:
        what = f"load.request_timeout ({_shown(effective, 'load.request_timeout')}) ends a slow client's request before"
        yield Problem(
            f"{what} its header is sent, which takes load.header_duration ({shown})",
            _first_asked(effective, "load.header_duration", "load.request_timeout"),
            "raise load.request_timeout",
        )


def _durations(effective: Effective) -> Iterator[Problem]:
    load = effective.scenario.knobs.load
    needed_ms = takes_ms(load, own_ms(load))
    if needed_ms >= load.max_duration:
        what = f"the load itself takes {spoken(needed_ms)}, and load.max_duration ends it"
        yield Problem(
            f"{what} after {spoken(load.max_duration)}",
            effective.where_knob("load.max_duration"),
            "raise load.max_duration",
        )
    if load.workload == "long_polling" and needed_ms == 0:
        what = "all four times of long_polling, load.ramp_half to load.ramp_down, are 0"
        yield Problem(what, effective.where_knob("load.ramp_full"), "set load.ramp_full, such as 5s")


def _sysctls(effective: Effective) -> Iterator[Problem]:
    for role, names in effective.scenario.knobs.kernel.items():
        for name, value in names.items():
            fault = sysctls.fault(name, value)
            if fault:
                yield Problem(fault[0], effective.where_knob(f"kernel.{role}.{name}"), fault[1])


def _first_asked(effective: Effective, *knobs: str) -> str:
    """Cite the knob that someone set: of two that disagree, the default is not to blame."""
    return effective.where_knob(next((knob for knob in knobs if effective.source(knob) != "default"), knobs[0]))


def _shown(effective: Effective, knob: str) -> str:
    return show_value(knob, effective.values[knob])
