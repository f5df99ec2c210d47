"""Which instances a run has, and what they are called."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from lab.effective import Effective
from lab.knobs import Role

PROJECT = "connlab"
RUN_LABEL = "connlab.run"
TRAFFIC_PORT = 8080


@dataclass(frozen=True)
class Topology:
    """The instances of each role on the path, in the order of the path."""

    instances: dict[Role, list[str]]

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
        """Where the clients send their requests: every instance of the first server; no slash at the end."""
        first = next(instances for role, instances in self.instances.items() if role != "k6")
        return [f"http://{instance}:{TRAFFIC_PORT}" for instance in first]

    def role_of(self, instance: str) -> Role:
        """Give the role that an instance plays."""
        return next(role for role, instances in self.instances.items() if instance in instances)


def topology_of(effective: Effective) -> Topology:
    """Work out the instances that a configuration asks for."""
    knobs = effective.scenario.knobs
    counts = {"k6": knobs.load.instances, "backend": knobs.backend.instances}
    return Topology(
        {
            role: [f"{role}-{number}" for number in range(1, counts[role] + 1)] if role in counts else [role]
            for role in effective.scenario.path
        }
    )


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
