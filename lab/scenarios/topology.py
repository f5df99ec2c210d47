"""Which instances a run has, and what they are called."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Literal

from analysis.evidence import captures
from formats import role as role_file
from formats.role import Role
from lab.roles.declared_roles import ROLES
from lab.scenarios import services
from lab.scenarios.knobs import RoleName
from lab.scenarios.load_url import LoadUrl
from lab.scenarios.resolved import ResolvedScenario

# What a load of the user's own may have in braces: the URL of the path's first server, and its parts.
PLACES = ("target", "host", "port")


@dataclass(frozen=True)
class Topology:
    """The instances of each role on the path, in the order of the path.

    Attributes:
        second_names: by instance, the host name of its second address, where it has one.
        names: by role, the name that clients must ask for, where a configuration of the user's own has several servers.
        needed: services that are started beside the path, and not observed; what is needed first stands first.
        aliases: by role, further host names that a service of the user's own has.
        url: where the scenario lets its load go; None for where the first server listens.
        moving: the names that the lab may move, and to which instance each leads at first.
    """

    instances: dict[RoleName, list[str]]
    roles: Mapping[RoleName, Role]
    second_names: dict[str, str] = field(default_factory=dict)
    needed: tuple[str, ...] = ()
    names: Mapping[RoleName, str] = field(default_factory=dict)
    aliases: Mapping[RoleName, Sequence[str]] = field(default_factory=dict)
    url: LoadUrl | None = None
    moving: Mapping[str, str] = field(default_factory=dict)

    @property
    def all(self) -> list[str]:
        """Return every instance, such as `k6-1`, `nginx`, `backend-1`."""
        return [instance for instances in self.instances.values() for instance in instances]

    @property
    def servers(self) -> list[str]:
        """Return every instance that is not a client."""
        return [one for role, instances in self.instances.items() if not self._is_client(role) for one in instances]

    @property
    def clients(self) -> list[str]:
        """Return the instances that make the load."""
        return [one for role, instances in self.instances.items() if self._is_client(role) for one in instances]

    @property
    def answering(self) -> RoleName:
        """Return the role that answers the requests; behind it may stand a server of its own, such as a database."""
        return role_file.answering(list(self.instances), self.roles)

    @property
    def first(self) -> RoleName:
        """Return the role that clients come to."""
        return next(role for role in self.instances if not self._is_client(role))

    @property
    def target(self) -> str:
        """Return what `{target}` stands for in a load of the user's own: the scenario's URL, without a slash."""
        return self.targets[0] + (self.url.path if self.url else "")

    @property
    def targets(self) -> list[str]:
        """Return where clients send requests: every address of the first server's instances, without a slash."""
        if self.url is not None:
            return [self.url.origin]
        first = self.first
        hosts = [host for one in self.instances[first] for host in (one, self.second_names.get(one)) if host]
        if first in self.names:
            hosts = [self.names[first]]
        scheme = "https" if self.roles[first].tls else "http"
        return [f"{scheme}://{host}:{self.roles[first].port}" for host in hosts]

    @property
    def generators(self) -> list[str]:
        """Return the clients that are not k6: they begin their load when they are started."""
        return [one for one in self.clients if self.role_of(one) not in ROLES]

    def fill_in(self, text: str) -> str:
        """Return an argument or a variable of a load of the user's own with the path's first server in it."""
        host, _, port = self.targets[0].partition("://")[2].rpartition(":")
        if self.url is not None:
            host, port = self.url.host, str(self.url.port)
        for name, value in zip(PLACES, (self.target, host, port), strict=True):
            text = text.replace(f"{{{name}}}", value)
        return text

    def behind(self, role: RoleName) -> list[str]:
        """Return the addresses of the next role's instances on the path, as host:port; none behind the last one.

        Names that may move stand in their place.
        """
        following = self.following(role)
        if following is None:
            return []
        hosts = list(self.names_asked(role)) or self.instances[following]
        return [f"{host}:{self.roles[following].port}" for host in hosts]

    def names_asked(self, role: RoleName) -> dict[str, str]:
        """Return the names that may move of the role behind this one, and to which instance each leads at first."""
        following = self.following(role)
        behind = [] if following is None else self.instances[following]
        return {name: instance for name, instance in self.moving.items() if instance in behind}

    def following(self, role: RoleName) -> RoleName | None:
        """Return the role behind this one on the path; None behind the last one."""
        roles = list(self.instances)
        return next(iter(roles[roles.index(role) + 1 :]), None)

    def host_names(self, instance: str) -> list[str]:
        """Return the names by which others reach an instance; a server's role stands for all of its instances."""
        role = self.role_of(instance)
        if self._is_client(role):
            return [instance]
        further = [self.names[role]] if role in self.names else []
        return list(dict.fromkeys((instance, role, *further, *self.aliases.get(role, ()))))

    def port_of(self, instance: str) -> int:
        """Return the port on which an instance takes the traffic."""
        return self.roles[self.role_of(instance)].port

    def _is_client(self, role: RoleName) -> bool:
        return self.roles[role].kind == "client"

    def role_of(self, instance: str) -> RoleName:
        """Return the role that an instance plays."""
        return next(role for role, instances in self.instances.items() if instance in instances)


def topology_of(resolved: ResolvedScenario) -> Topology:
    """Return the instances that a configuration asks for."""
    instances: dict[RoleName, list[str]] = {}
    second_names: dict[str, str] = {}
    for role in resolved.scenario.path:
        count = _count(resolved, role, "instances")
        instances[role] = [role] if count is None else [f"{role}-{number}" for number in range(1, count + 1)]
        if (_count(resolved, role, "addresses") or 1) > 1:
            second_names |= {instance: f"{instance}-second" for instance in instances[role]}
    own = resolved.registry.services
    asked = [name for role in resolved.scenario.path if role in own for name in own[role].depends_on]
    led_to = [
        name
        for role, one in resolved.scenario.configurations.items()
        if role in instances
        for name in one.hosts.values()
        if name in own
    ]
    needed = services.needed_by(own, [*asked, *led_to])
    names = {role: entry.host for role, entry in resolved.entries.items() if entry.host is not None}
    url, first = resolved.url, resolved.first_server
    if url is not None and url.address is None and first is not None:
        names[first] = url.host
    beside = tuple(name for name in needed if name not in instances)
    aliases = {role: own[role].aliases for role in instances if role in own}
    moving = resolved.scenario.names
    return Topology(instances, resolved.roles, second_names, beside, names, aliases, url, moving)


def _count(resolved: ResolvedScenario, role: RoleName, what: Literal["instances", "addresses"]) -> int | None:
    """Return how many instances or addresses a role has; None if no knob counts them."""
    declared = resolved.roles[role]
    knob = declared.counting(what)
    return None if knob is None else resolved.number(declared.knob(knob))


def collector_of(instance: str) -> str:
    """Return the name of the service that holds an instance's namespaces."""
    return f"collector-{instance}"


def segments(count: int) -> list[tuple[str, str]]:
    """Share one test among `count` instances of k6: for each its segment and the sequence of all bounds."""
    bounds = [str(Fraction(index, count)) for index in range(count + 1)]
    return [(f"{low}:{high}", ",".join(bounds)) for low, high in pairwise(bounds)]


def capture_mode(resolved: ResolvedScenario, role: RoleName, *, apart: bool = False) -> str:
    """Return what the collectors beside a role capture; with `apart`, instances may be on several machines."""
    capture = resolved.scenario.knobs.capture
    acted = {one.instance for one in resolved.scenario.actions if one.do == "filter"}
    topology, path = topology_of(resolved), list(resolved.scenario.path)
    also = [name for name, each in topology.instances.items() if topology.needed or acted.intersection(each)]
    if role not in captures.expected(path, capture.mode, capture.client, apart=apart, also=also):
        return "off"
    return capture.client if resolved.roles[role].kind == "client" else capture.mode


COLLECTOR_MB = 39

# The connections that the load may hold at once, and the knob that says so.
Users = tuple[int, str]


def connections_of_load(resolved: ResolvedScenario) -> Users:
    """Return the connections that the load may hold at once, and the knob that says so."""
    load = resolved.scenario.knobs.load
    if load.workload == "spike":
        return load.max_users, "load.max_users"
    if load.workload == "slow_clients":
        return load.users + load.slow_users, "load.users"
    if load.workload == "half_open":
        return load.users + load.half_open, "load.users"
    return (1, "load.workload") if load.workload in ("sequential", "script") else (load.users, "load.users")


def memory_mb(resolved: ResolvedScenario, topology: Topology, name: RoleName, connections: int) -> int:
    """Return what all instances of a role need for the load's connections, which they share; MiB."""
    memory, instances = topology.roles[name].memory, len(topology.instances[name])
    if memory.heap:
        return instances * (memory.base_mb + resolved.number(topology.roles[name].knob(memory.heap)))
    return instances * memory.base_mb + (connections * memory.connection_kb >> 10)
