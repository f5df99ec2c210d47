"""What may be asked of servers that run on a cluster already, and what the cluster says of them."""

from collections.abc import Iterator

from lab.errors import Problem
from lab.scenarios.overrides import Override
from lab.scenarios.resolved import ResolvedScenario
from lab.scenarios.services import Service
from lab.scenarios.topology import topology_of

_KEY = "services"


def running_roles(resolved: ResolvedScenario) -> dict[str, Service]:
    """Return the roles of the path that run on the cluster already."""
    own = resolved.registry.services
    return {role: own[role] for role in resolved.scenario.path if role in own and own[role].cluster_service}


def running_problems(resolved: ResolvedScenario) -> Iterator[Problem]:
    """Yield what is asked of servers that run already and that the lab leaves as they are; the path is sound."""
    running, path, topology = running_roles(resolved), resolved.scenario.path, topology_of(resolved)
    for role, service in running.items():
        named = service.cluster_service
        for behind in path[path.index(role) + 1 :]:
            what = f"on the path {behind} comes after {role}, and the lab does not tell {named} whom to call"
            yield Problem(what, resolved.where("path"), f"leave {behind} out: what stands behind {named} is its own")
        as_they_are = f"{named} runs already, and the lab leaves it as it is"
        for sysctl in resolved.scenario.knobs.kernel.get(role, {}):
            yield Problem(as_they_are, resolved.where_knob(f"kernel.{role}.{sysctl}"), "leave it out")
        for to in resolved.scenario.network.get(role, {}):
            hint = f"set the link of the other direction: network: {{{to}: {{{role}: …}}}}"
            yield Problem(as_they_are, resolved.where("network", role, to), hint)
        for index, action in enumerate(resolved.scenario.actions):
            if action.instance in topology.instances[role]:
                yield Problem(as_they_are, resolved.where("actions", index, "instance"), "act on another server")


def as_found(resolved: ResolvedScenario, role: str, *, port: int | None, instances: int) -> list[Override]:
    """Return what the cluster has of a role's port and number of pods, where the scenario does not say it."""
    known, named = resolved.document.lines, resolved.registry.services[role].cluster_service
    found = {"port": port, "instances": instances}
    return [
        Override(f"{role}.{key}", value, f"{named} on the cluster", place=(_KEY, role, key))
        for key, value in found.items()
        if value is not None and (_KEY, role, key) not in known
    ]
