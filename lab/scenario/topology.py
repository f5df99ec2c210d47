"""Which instances a run has, and what they are called."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Literal

from lab.roles.declaration import ROLES
from lab.scenario.effective import Effective
from lab.scenario.knobs import RoleName

TRAFFIC_PORT = 8080


@dataclass(frozen=True)
class Topology:
    """The instances of each role on the path, in the order of the path.

    Attributes:
        second_names: by instance, the host name of its second address, where it has one.
    """

    instances: dict[RoleName, list[str]]
    second_names: dict[str, str] = field(default_factory=dict)

    @property
    def all(self) -> list[str]:
        """Every instance, such as `k6-1`, `nginx`, `backend-1`."""
        return [instance for instances in self.instances.values() for instance in instances]

    @property
    def servers(self) -> list[str]:
        """Every instance that is no client."""
        return [one for role, instances in self.instances.items() if not _is_client(role) for one in instances]

    @property
    def clients(self) -> list[str]:
        """The instances that make the load."""
        return [one for role, instances in self.instances.items() if _is_client(role) for one in instances]

    @property
    def targets(self) -> list[str]:
        """Where the clients send their requests: every address of the first server's instances; no slash at the end."""
        first = next(instances for role, instances in self.instances.items() if not _is_client(role))
        hosts = (host for instance in first for host in (instance, self.second_names.get(instance)) if host)
        return [f"http://{host}:{TRAFFIC_PORT}" for host in hosts]

    def behind(self, role: RoleName) -> list[str]:
        """Give the instances of the next role on the path; none behind the last one."""
        roles = list(self.instances)
        return [instance for name in roles[roles.index(role) + 1 :][:1] for instance in self.instances[name]]

    def role_of(self, instance: str) -> RoleName:
        """Give the role that an instance plays."""
        return next(role for role, instances in self.instances.items() if instance in instances)


def topology_of(effective: Effective) -> Topology:
    """Work out the instances that a configuration asks for."""
    instances: dict[RoleName, list[str]] = {}
    second_names: dict[str, str] = {}
    for role in effective.scenario.path:
        count = _count(effective, role, "instances")
        instances[role] = [role] if count is None else [f"{role}-{number}" for number in range(1, count + 1)]
        if (_count(effective, role, "addresses") or 1) > 1:
            second_names |= {instance: f"{instance}-second" for instance in instances[role]}
    return Topology(instances, second_names)


def _count(effective: Effective, role: RoleName, what: Literal["instances", "addresses"]) -> int | None:
    """Give how many instances or addresses a role has; None if no knob counts them."""
    knob = ROLES[role].counting(what)
    return None if knob is None else effective.number(ROLES[role].knob(knob))


def _is_client(role: RoleName) -> bool:
    return ROLES[role].kind == "client"


def collector_of(instance: str) -> str:
    """Name the service that holds an instance's namespaces."""
    return f"collector-{instance}"


def segments(count: int) -> list[tuple[str, str]]:
    """Share one test among `count` instances of k6: for each its segment and the sequence of all bounds."""
    bounds = [str(Fraction(index, count)) for index in range(count + 1)]
    return [(f"{low}:{high}", ",".join(bounds)) for low, high in pairwise(bounds)]
