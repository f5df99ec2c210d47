"""What must hold between the parts of a scenario, beyond each value's own type and range."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from analysis.formatting import format_ms
from formats import role as role_file
from formats.role import KINDS, Role
from lab.errors import Problem
from lab.roles.declared_roles import ROLES
from lab.scenarios import generators, network, overrides, own_configuration, own_script, sysctls
from lab.scenarios.action_checks import action_problems
from lab.scenarios.dns_names import name_problems, resolver_problems
from lab.scenarios.forecast import load_ms, user_ms
from lab.scenarios.generator_checks import generator_problems
from lab.scenarios.knobs import CATALOGUE, format_knob
from lab.scenarios.load_url import PLAIN_WORKLOADS, LoadUrl
from lab.scenarios.predictions import prediction_problems
from lab.scenarios.resolved import HAS_IPV6, ResolvedScenario
from lab.scenarios.running_checks import running_problems
from lab.scenarios.services import needed_by
from lab.scenarios.topology import topology_of

_DELAY = "/api/delay"
# The lines that k6's requests have, less one (k6/lib/slow.js).
_HEADER_INTERVALS = {"GET": 4, "POST": 6}
# Tomcat's maxHeaderCount.
_HEADERS_MAX = 100
_SHARED = "give each instance a user, or lower load.instances"
# Of the lab's own servers, these listen on one socket for both families.
_TAKE_IPV6 = ("gateway", "backend")


def problems_of(resolved: ResolvedScenario) -> Iterator[Problem]:
    """Yield everything about the scenario that cannot be run or would silently do nothing."""
    yield from overrides.preset_problems(resolved.scenario, resolved.document)
    of_path = list(path_problems(resolved))
    yield from of_path
    yield from generator_problems(resolved)
    yield from _roles(resolved)
    yield from own_script.script_problems(resolved)
    yield from own_configuration.configuration_problems(resolved)
    yield from _workload(resolved)
    if resolved.scenario.own_load is None:
        yield from _target(resolved)
    yield from _services(resolved)
    yield from _tls(resolved)
    yield from _http2(resolved)
    yield from _load_problems(resolved)
    yield from _bounds(resolved)
    yield from _between_knobs(resolved)
    yield from _sysctls(resolved)
    yield from _links(resolved)
    if not of_path:
        yield from running_problems(resolved)
        yield from name_problems(resolved, topology_of(resolved))
        yield from resolver_problems(resolved, topology_of(resolved))
        yield from action_problems(resolved)
        yield from prediction_problems(resolved)


def path_problems(resolved: ResolvedScenario) -> Iterator[Problem]:
    """Yield what is wrong with the path."""
    path, roles = resolved.scenario.path, resolved.registry.roles
    where = resolved.where("path")
    shown = f"[{', '.join(path)}]"
    in_order = sorted(path, key=lambda role: KINDS.index(roles[role].kind))
    # A service of the scenario's own may call any server; one of the lab's calls none.
    ends = next((place for place, role in enumerate(path) if _calls_nobody(resolved, role)), len(path))
    if roles[path[0]].kind != "client":
        client = next(name for name, role in roles.items() if role.kind == "client")
        hint = f"write [{', '.join([client, *(role for role in in_order if role != client)])}]"
        yield Problem(f"the path {shown} does not begin with {client}, the client", where, hint)
    if len(set(path)) < len(path):
        yield Problem(f"the path {shown} names a role twice", where, "name each role once")
    elif any(roles[role].kind == "client" for role in path[1:]) or any(
        roles[role].kind == "proxy" for role in path[ends:]
    ):
        yield Problem(
            f"the roles of the path {shown} are not in the order {', '.join(KINDS)}",
            where,
            f"write [{', '.join(in_order)}]",
        )


def _calls_nobody(resolved: ResolvedScenario, role: str) -> bool:
    return resolved.registry.roles[role].kind == "server" and role not in resolved.registry.services


def _roles(resolved: ResolvedScenario) -> Iterator[Problem]:
    path = resolved.scenario.path
    for knob in resolved.asked():
        parts = knob.split(".")
        role = parts[1] if parts[0] == "kernel" else parts[0]
        if role in resolved.registry.roles and role not in path:
            what = f"{knob} is set, but {role} is not on the path [{', '.join(path)}]"
            yield Problem(what, resolved.where_knob(knob), f"leave it out, or put {role} on the path")
        elif chooses := resolved.other_variant(knob):
            what = f"{knob} is set, but {chooses} is {resolved.values[chooses]}, which has no such setting"
            yield Problem(what, resolved.where_knob(knob), f"leave it out, or set {chooses}")


def _workload(resolved: ResolvedScenario) -> Iterator[Problem]:
    workload = resolved.scenario.knobs.load.workload
    generator = generators.name_of(resolved.scenario.own_load)
    for knob in resolved.asked():
        if generator is not None and resolved.left_to_load(knob):
            what = f"{knob} is set, but the load is made by {generator}, which does not read it"
            yield Problem(what, resolved.where_knob(knob), "leave it out, and set it in the generator's arguments")
            continue
        readers = CATALOGUE[knob].workloads if knob in CATALOGUE else None
        if readers and workload not in readers:
            what = f"{knob} is set, but the workload '{workload}' does not read it"
            hint = f"leave it out; only {' and '.join(readers)} {'read' if len(readers) > 1 else 'reads'} it"
            if resolved.scenario.own_load is not None:
                what = f"{knob} is set, but the options of the scenario's own script decide that"
                hint = f"leave it out, and set it in {resolved.scenario.own_load.script}"
            yield Problem(what, resolved.where_knob(knob), hint)


def _target(resolved: ResolvedScenario) -> Iterator[Problem]:
    load = resolved.scenario.knobs.load
    last = role_file.answering(resolved.scenario.path, resolved.roles)
    if role_file.passes_on(resolved.roles[last]):
        page = resolved.roles[last].page
        if last in resolved.scenario.configurations:
            return
        if page is None:
            what = f"{resolved.roles[last].display_name} has no page of its own to answer with"
            yield Problem(what, resolved.where("path"), "put backend on the path")
        elif load.workload == "long_polling":
            yield _needs_backend(resolved)
        elif load.path != page:
            what = f"without a backend, {last} has only its static page {page}, but load.path is {load.path}"
            yield Problem(
                what, resolved.where_knob("load.path"), f"set load.path to {page}, or put backend on the path"
            )
    elif last != "backend":
        yield from _target_of_service(resolved, last)
    if load.path != _DELAY:
        for knob in ("load.method", "load.handler_delay", "load.response_bytes"):
            if resolved.source(knob) != "default":
                yield Problem(
                    f"{knob} is set, but only {_DELAY} reads it, and load.path is {load.path}",
                    resolved.where_knob(knob),
                    f"leave it out, or set load.path to {_DELAY}",
                )


def _needs_backend(resolved: ResolvedScenario) -> Problem:
    what = "the workload long_polling needs the backend's waiting room"
    return Problem(what, resolved.where("path"), "put backend on the path")


def _target_of_service(resolved: ResolvedScenario, last: str) -> Iterator[Problem]:
    """Check what a service of the scenario's own is asked for: the workloads are written for the backend."""
    if resolved.scenario.knobs.load.workload == "long_polling":
        yield _needs_backend(resolved)
    if resolved.source("load.path") == "default" and resolved.scenario.own_load is None and resolved.url is None:
        what = f"load.path has its default {_DELAY}, which only the lab's own backend answers, and not {last}"
        yield Problem(what, resolved.where("path"), "set load.path, such as /")


def _services(resolved: ResolvedScenario) -> Iterator[Problem]:
    own, path = resolved.registry.services, resolved.scenario.path
    for server, behind in pairwise(path[1:]):
        if _calls_nobody(resolved, server):
            what = f"on the path {behind} comes after {server}, but {server} connects to no other server"
            yield Problem(what, resolved.where("path"), f"leave {behind} out")
    led_to = topology_of(resolved).needed if not list(path_problems(resolved)) else ()
    for name in dict.fromkeys([*led_to, *needed_by(own, [role for role in path if role in own])]):
        for needed in own[name].depends_on:
            if needed in resolved.registry.roles and needed not in own and needed not in path:
                what = f"{name} depends on {needed}, one of the lab's own roles, and it is not on the path"
                where = resolved.where("services", name, "depends_on")
                yield Problem(what, where, f"put {needed} on the path, or leave it out")
        if name not in path and isinstance(own[name].ready, str):
            what = f"{name} is not on the path, so it has no collector that could ask for {own[name].ready}"
            hint = "give a command that runs in its container, such as [pg_isready]"
            yield Problem(what, resolved.where("services", name, "ready"), hint)


def _tls(resolved: ResolvedScenario) -> Iterator[Problem]:
    load = resolved.scenario.knobs.load
    for role in resolved.roles.values():
        listener = role.listener
        if listener.oldest and listener.newest:
            oldest, newest = role.knob(listener.oldest), role.knob(listener.newest)
            if str(resolved.values[oldest]) > str(resolved.values[newest]):
                what = f"{oldest} ({resolved.values[oldest]}) is newer than {newest} ({resolved.values[newest]})"
                yield Problem(what, _first_asked(resolved, oldest, newest), "set both to the same version")
    first = next((role for role in resolved.roles.values() if role.kind != "client"), None)
    secured = first is not None and first.tls
    if first is not None and first.tls and load.workload in PLAIN_WORKLOADS:
        what = f"the workload {load.workload} speaks plain HTTP only, and {first.display_name} takes TLS"
        yield Problem(what, resolved.where_knob("load.workload"), "choose another workload, or leave TLS out")
    if load.tls_resumption and not secured and resolved.scenario.own_load is None:
        what = "load.tls_resumption is set, but the clients' connections have no TLS"
        yield Problem(what, resolved.where_knob("load.tls_resumption"), "set tls of the role behind k6")


def _http2(resolved: ResolvedScenario) -> Iterator[Problem]:
    """Check that a role that speaks HTTP/2 has a server that takes it."""
    servers = [role for role in resolved.roles.values() if role.kind != "client"]
    if servers and not servers[0].tls and (taken := servers[0].listener.http2):
        knob = servers[0].knob(taken)
        if resolved.values[knob]:
            what = f"{knob} is set, but the clients' connections have no TLS, and k6 speaks HTTP/2 over TLS alone"
            yield Problem(what, resolved.where_knob(knob), f"set {servers[0].knob(str(servers[0].listener.tls))}, too")
    for proxy, server in pairwise(servers):
        if not proxy.servers_http2 or not resolved.values[proxy.knob(proxy.servers_http2)]:
            continue
        if server.listener.http2 and not resolved.values[server.knob(server.listener.http2)]:
            knob, wanted = proxy.knob(proxy.servers_http2), server.knob(server.listener.http2)
            what = f"{knob} is set, and {server.display_name} does not take HTTP/2"
            yield Problem(what, resolved.where_knob(knob), f"set {wanted}, too")


def _load_problems(resolved: ResolvedScenario) -> Iterator[Problem]:
    """Yield what is wrong with where the load is to go; a user's configuration says itself where it listens."""
    url, first, load = resolved.url, resolved.first_server, resolved.scenario.load
    if load is None or first is None:
        return
    role = resolved.roles[first]
    configured = resolved.scenario.configurations.get(first)
    if role.ipv6 and configured is None and first in ROLES and first not in _TAKE_IPV6:
        where = resolved.where("load", "ip_family" if load.ip_family else "url")
        what = f"the lab's own {role.display_name} listens on IPv4 alone"
        yield Problem(what, where, f"give {first} a configuration of your own that listens on [::]")
    if url is None:
        return
    if url.path and resolved.source("load.path") == "scenario":
        what = f"load.path is {resolved.values['load.path']}, and load.url has a path, too"
        yield Problem(what, resolved.where_knob("load.path"), "leave one of the two out")
    if configured is not None and configured.port not in (None, url.port):
        what = f"load.url leads to port {url.port}, and {first}.port is {configured.port}"
        yield Problem(what, resolved.where(first, "port"), "leave one of the two out")
    if configured is None and (url.port, url.tls) != (role.port, role.tls):
        what = f"load.url leads to {_listening(url.port, tls=url.tls)}, and {first} listens on"
        hint = f"write http{'s' if role.tls else ''}://{url.quoted_host}:{role.port}{url.path}/"
        yield Problem(f"{what} {_listening(role.port, tls=role.tls)}", resolved.where("load", "url"), hint)
    yield from _address_problems(resolved, url, role) if url.address else _host_name_problems(resolved, url, first)


def _listening(port: int, *, tls: bool) -> str:
    return f"port {port}{' with TLS' if tls else ''}"


def _address_problems(resolved: ResolvedScenario, url: LoadUrl, role: Role) -> Iterator[Problem]:
    asked = resolved.scenario.load.ip_family if resolved.scenario.load else None
    if asked not in (None, url.family):
        what = f"load.ip_family is {asked}, and load.url has an address of the other family"
        yield Problem(what, resolved.where("load", "ip_family"), "leave one of the two out")
    count = role.counting("instances")
    if count and resolved.number(role.knob(count)) > 1:
        what = f"load.url has one address, and {role.group} has several instances"
        yield Problem(what, resolved.where("load", "url"), f"write a name, or set {role.knob(count)} to 1")
    if url.family == "ipv6" and not HAS_IPV6:
        what = "load.url has an IPv6 address, and this machine's kernel has no IPv6"
        yield Problem(what, resolved.where("load", "url"), "write a name")


def _host_name_problems(resolved: ResolvedScenario, url: LoadUrl, first: str) -> Iterator[Problem]:
    topology = topology_of(resolved)
    others = [one for role, instances in topology.instances.items() if role != first for one in instances]
    taken = {name: one for one in others for name in topology.host_names(one)} | {one: one for one in topology.needed}
    if other := taken.get(url.host):
        what = f"load.url leads to {url.host}, which is {other}'s name, and clients come to {first}"
        yield Problem(what, resolved.where("load", "url"), "give the name that users ask for")


def _bounds(resolved: ResolvedScenario) -> Iterator[Problem]:
    for role in resolved.registry.roles.values():
        for name, limit in role.ordered_knobs():
            value, most = resolved.number(name), resolved.number(limit)
            if value > most:
                what = f"{name} ({value}) exceeds {limit} ({most})"
                yield Problem(what, _first_asked(resolved, limit, name), f"lower {name}, or raise {limit}")


def _between_knobs(resolved: ResolvedScenario) -> Iterator[Problem]:
    knobs, at = resolved.scenario.knobs, resolved.where_knob
    load, backend = knobs.load, knobs.backend
    if load.workload == "long_polling" and backend.token_timeout <= backend.polling_period:
        what = f"backend.token_timeout ({_shown(resolved, 'backend.token_timeout')}) must exceed backend.polling_period"
        yield Problem(
            f"{what} ({_shown(resolved, 'backend.polling_period')}), or the backend abandons every waiting user",
            _first_asked(resolved, "backend.polling_period", "backend.token_timeout"),
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
        yield Problem(what, _first_asked(resolved, "load.instances", "load.users"), _SHARED)
    if load.workload == "spike" and load.max_users < load.instances:
        what = f"load.max_users ({load.max_users}) cannot be shared by {load.instances} instances of k6"
        yield Problem(what, _first_asked(resolved, "load.instances", "load.max_users"), _SHARED)
    if load.workload == "slow_clients":
        yield from _headers(resolved)
    yield from _durations(resolved)


def _headers(resolved: ResolvedScenario) -> Iterator[Problem]:
    load = resolved.scenario.knobs.load
    shown = _shown(resolved, "load.header_duration")
    intervals = _HEADER_INTERVALS[load.method]
    if load.header_duration < intervals * load.header_interval:
        what = f"a header has at least {intervals + 1} lines; at one line every"
        yield Problem(
            f"{what} {_shown(resolved, 'load.header_interval')} it takes longer than load.header_duration ({shown})",
            _first_asked(resolved, "load.header_interval", "load.header_duration"),
            "shorten load.header_interval, or raise load.header_duration",
        )
    # But for the request line and the empty one.
    headers = load.header_duration // load.header_interval - 1
    if headers > _HEADERS_MAX:
        what = f"at one line every {_shown(resolved, 'load.header_interval')}, a load.header_duration of {shown} makes"
        yield Problem(
            f"{what} {headers:,} headers, and Tomcat refuses a request with more than {_HEADERS_MAX}",
            _first_asked(resolved, "load.header_interval", "load.header_duration"),
            "raise load.header_interval, or shorten load.header_duration",
        )
    if load.request_timeout <= load.header_duration:
        what = f"load.request_timeout ({_shown(resolved, 'load.request_timeout')}) ends a slow client's request before"
        yield Problem(
            f"{what} its header is sent, which takes load.header_duration ({shown})",
            _first_asked(resolved, "load.header_duration", "load.request_timeout"),
            "raise load.request_timeout",
        )


def _durations(resolved: ResolvedScenario) -> Iterator[Problem]:
    load = resolved.scenario.knobs.load
    needed_ms = load_ms(load, user_ms(load))
    if needed_ms >= load.max_duration:
        what = f"the load itself takes {format_ms(needed_ms)}, and load.max_duration ends it"
        yield Problem(
            f"{what} after {format_ms(load.max_duration)}",
            resolved.where_knob("load.max_duration"),
            "raise load.max_duration",
        )
    if load.workload == "long_polling" and needed_ms == 0:
        what = "all four times of long_polling, load.ramp_half to load.ramp_down, are 0"
        yield Problem(what, resolved.where_knob("load.ramp_full"), "set load.ramp_full, such as 5s")


def _sysctls(resolved: ResolvedScenario) -> Iterator[Problem]:
    for role, names in resolved.scenario.knobs.kernel.items():
        for name, value in names.items():
            fault = sysctls.find_fault(name, value)
            if fault:
                yield Problem(fault[0], resolved.where_knob(f"kernel.{role}.{name}"), fault[1])


def _links(resolved: ResolvedScenario) -> Iterator[Problem]:
    if resolved.scenario.network and resolved.ip_family == "ipv6":
        what = "clients come over IPv6, and links are those of IPv4"
        yield Problem(what, resolved.where("network"), "write load: {ip_family: ipv4}, or leave network out")
    for found in network.link_problems(list(resolved.scenario.path), resolved.scenario.network):
        place = str(found.where)
        where = resolved.where_knob(place) if network.is_network_knob(place) else resolved.where(*place.split("."))
        yield replace(found, where=where)


def _first_asked(resolved: ResolvedScenario, *knobs: str) -> str:
    """Cite the knob that someone set: of two that disagree, the default is not to blame."""
    return resolved.where_knob(next((knob for knob in knobs if resolved.source(knob) != "default"), knobs[0]))


def _shown(resolved: ResolvedScenario, knob: str) -> str:
    return format_knob(knob, resolved.values[knob], resolved.registry.knobs)
