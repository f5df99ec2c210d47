"""Which instances a run has, and what they are called."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise

from lab.scenario.effective import Effective
from lab.scenario.knobs import RoleName

PROJECT = "connlab"
RUN_LABEL = "connlab.run"
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
        return [instance for role, instances in self.instances.items() if role != "k6" for instance in instances]

    @property
    def clients(self) -> list[str]:
        """The instances of k6."""
        return self.instances["k6"]

    @property
    def targets(self) -> list[str]:
        """Where the clients send their requests: every address of the first server's instances; no slash at the end."""
        first = next(instances for role, instances in self.instances.items() if role != "k6")
        hosts = (host for instance in first for host in (instance, self.second_names.get(instance)) if host)
        return [f"http://{host}:{TRAFFIC_PORT}" for host in hosts]

    def role_of(self, instance: str) -> RoleName:
        """Give the role that an instance plays."""
        return next(role for role, instances in self.instances.items() if instance in instances)


def topology_of(effective: Effective) -> Topology:
    """Work out the instances that a configuration asks for."""
    knobs = effective.scenario.knobs
    counts = {"k6": knobs.load.instances, "backend": knobs.backend.instances}
    instances: dict[RoleName, list[str]] = {
        role: [f"{role}-{number}" for number in range(1, counts[role] + 1)] if role in counts else [role]
        for role in effective.scenario.path
    }
    two_addresses = "nginx" in instances and knobs.nginx.addresses > 1
    return Topology(instances, {"nginx": "nginx-second"} if two_addresses else {})


def collector_of(instance: str) -> str:
    """Name the service that holds an instance's namespaces."""
    return f"collector-{instance}"


def container_of(service: str) -> str:
    """Name a service's container; `docker exec` finds it so without asking Compose."""
    return f"{PROJECT}-{service}"


def segments(count: int) -> list[tuple[str, str]]:
    """Share one test among `count` instances of k6: for each its segment and the sequence of all bounds."""
    bounds = [str(Fraction(index, count)) for index in range(count + 1)]
    return [(f"{low}:{high}", ",".join(bounds)) for low, high in pairwise(bounds)]
