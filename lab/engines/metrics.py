"""Where the collectors of a run serve their current figures, if they do: lab.engines.protocol.Engine.metrics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lab.errors import Problem

if TYPE_CHECKING:
    from lab.scenarios.resolved import ResolvedScenario
    from lab.scenarios.topology import Topology

# No port of the lab's own roles, and below every range of ephemeral ports that a scenario sets.
DEFAULT_PORT = 9645
# Those of the roles' management; collector/internal/management has them too.
_MANAGEMENT = (6565, 8081)
_EPHEMERAL = "net.ipv4.ip_local_port_range"
_WAY_ON = "name another one by --metrics-port"


def metrics_environment(topology: Topology, run_id: str, instance: str, port: int | None) -> dict[str, str]:
    """Give what a collector's environment says of its metrics: nothing without a port."""
    if port is None:
        return {}
    labels = f"run={run_id} role={topology.role_of(instance)}"
    return {"CONNLAB_METRICS": f"0.0.0.0:{port}", "CONNLAB_METRICS_LABELS": labels}


def check_metrics_port(effective: ResolvedScenario, topology: Topology, port: int | None) -> Iterator[Problem]:
    """Give what stands on the port already, or would find one port fewer for it."""
    if port is None:
        return
    if port in _MANAGEMENT:
        yield Problem(f"--metrics-port {port} is the port of a role's management", way_on=_WAY_ON)
    clients = {topology.role_of(one) for one in topology.clients}
    for role in topology.instances:
        if role not in clients and topology.roles[role].port == port:
            yield Problem(f"--metrics-port {port} is the port on which {role} takes its traffic", way_on=_WAY_ON)
        low, _, high = effective.scenario.knobs.kernel.get(role, {}).get(_EPHEMERAL, "").partition(" ")
        if low.isdecimal() and high.isdecimal() and int(low) <= port <= int(high):
            what = f"--metrics-port {port} would take one of the ports that {role} connects from"
            yield Problem(what, effective.where_knob(f"kernel.{role}.{_EPHEMERAL}"), _WAY_ON)
