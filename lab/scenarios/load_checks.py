"""Why the load cannot go where `load.url` and `load.ip_family` say."""

from collections.abc import Iterator

from formats.role import Role
from lab.errors import Problem
from lab.roles.declared_roles import ROLES
from lab.scenarios.load_url import LoadUrl
from lab.scenarios.resolved import HAS_IPV6, ResolvedScenario
from lab.scenarios.topology import topology_of

# Of the lab's own servers, these listen on one socket for both families.
_TAKE_IPV6 = ("gateway", "backend")


def load_problems(resolved: ResolvedScenario) -> Iterator[Problem]:
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
    yield from _address_problems(resolved, url, role) if url.address else _name_problems(resolved, url, first)


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


def _name_problems(resolved: ResolvedScenario, url: LoadUrl, first: str) -> Iterator[Problem]:
    topology = topology_of(resolved)
    others = [one for role, instances in topology.instances.items() if role != first for one in instances]
    taken = {name: one for one in others for name in topology.host_names(one)} | {one: one for one in topology.needed}
    if other := taken.get(url.host):
        what = f"load.url leads to {url.host}, which is {other}'s name, and clients come to {first}"
        yield Problem(what, resolved.where("load", "url"), "give the name that users ask for")
