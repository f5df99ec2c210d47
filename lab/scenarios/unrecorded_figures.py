"""Figures that the program which makes the load can never give: named before the run, with what tells the same.

Without this, a prediction over them would be `unknown` after each run.
"""

from collections.abc import Iterator

from analysis.figures import Scope
from lab.scenarios import generators
from lab.scenarios.model import OwnLoad
from lab.scenarios.resolved import ResolvedScenario

# Figures of a client's own record, by what their names begin with, and what else tells it; the rest of a name follows.
_INSTEAD = (
    ("client.requests.total", "flows.{server}.requests.total"),
    ("client.requests.total", "access.{proxy}.requests"),
    ("client.requests.ok", "access.{proxy}.status.2xx"),
    ("client.requests.failed", "ledger.connections.{server}.failed"),
    ("client.requests.status.", "access.{proxy}.status.{rest}"),
    ("client.latency_ms.", "flows.{server}.request_ms.{rest}"),
    ("client.dials.failed", "ledger.connections.{server}.failed"),
    ("client.dials.", "flows.{server}.established"),
    ("ledger.requests.failed", "ledger.connections.{server}.failed"),
    ("ledger.cause.", "ledger.connections.{server}.cause.{rest}"),
    ("ledger.unexplained", "ledger.connections.{server}.unexplained"),
    ("flows.{server}.requests.", "client.requests.total"),
    ("flows.{server}.request_ms.", "client.latency_ms.{rest}"),
    ("flows.{server}.requests.", "access.{proxy}.requests"),
)
_BY_PACKETS = "flows.<server>.request"
# The ledger's own of requests; and what needs the dials, too.
_OF_REQUESTS = ("ledger.unexplained", "ledger.cause.", "ledger.requests.")
_OF_DIALS = "ledger.dials_without_port"
_OF_CONNECT_TIMEOUT = ("model.syn_ladder_ms", "model.syns_per_failed_dial")


def unrecorded(resolved: ResolvedScenario, scope: Scope, name: str) -> tuple[str, str | None] | None:
    """Return why a figure stays unknown whatever a run brings, and what to use; None where a run may tell it.

    `scope`: the names of the run, of which this is one.
    """
    why = _why(resolved, scope, name)
    if why is None:
        return None
    told = [f"use {one}" for one in _instead(resolved, name) if scope.has(one) and _why(resolved, scope, one) is None]
    load = resolved.scenario.own_load
    if load is not None and load.results is None and _needs_results(scope, name) and generators.name_of(load):
        told.append("name a file of its requests by load.results (docs/any-load.md)")
    return f"{name} would be unknown: {why}", " or ".join(told) or None


def _needs_results(scope: Scope, name: str) -> bool:
    found = scope.find(name)
    return found is not None and (found[0].source == "k6: requests.jsonl" or name.startswith(_OF_REQUESTS))


def _why(resolved: ResolvedScenario, scope: Scope, name: str) -> str | None:
    found, load = scope.find(name), resolved.scenario.own_load
    if found is None:
        return None
    figure, parameters = found
    if figure.pattern.startswith(_BY_PACKETS):
        return _not_by_packets(resolved, parameters["server"])
    if load is not None and "queue_simulation" in figure.source:
        return "the model is of the lab's own workloads"
    if load is not None and figure.source == "k6: events.jsonl":
        return "only the lab's workload long_polling records admissions"
    generator = generators.name_of(load)
    return None if load is None or generator is None else _why_of_generator(scope, name, generator, load)


def _why_of_generator(scope: Scope, name: str, generator: str, load: OwnLoad) -> str | None:
    source = found[0].source if (found := scope.find(name)) else ""
    if "dials.jsonl" in source or "summary.json" in source or name == _OF_DIALS:
        return f"only k6 records this, and {generator} makes the load"
    if name in _OF_CONNECT_TIMEOUT:
        return f"the lab does not know when {generator} gives up to connect"
    if load.results is None and _needs_results(scope, name):
        return f"{generator} leaves no record of its requests that the lab reads"
    return None


def _not_by_packets(resolved: ResolvedScenario, server: str) -> str | None:
    """Return why packets do not tell of requests to a server, as figures.exchanges says it after a run."""
    load, client, first = resolved.scenario.own_load, resolved.scenario.path[0], resolved.first_server
    if first is None or generators.name_of(load) is None or (load is not None and load.results is not None):
        return f"{client} records its requests itself"
    if server != first and server.rpartition("_")[0] != first:
        return f"packets tell requests apart between {client} and {first} alone"
    if resolved.roles[first].tls:
        return f"the connections to {first} are by TLS, and their packets do not tell of requests"
    if not resolved.roles[client].one_at_a_time:
        return f"{client} may send a request before the answer to the last, or not speak HTTP/1"
    return None


def _instead(resolved: ResolvedScenario, name: str) -> Iterator[str]:
    """Yield the figures that may tell what this one does."""
    proxy = next((role for role, one in resolved.roles.items() if one.kind == "proxy"), None)
    named = {"server": resolved.first_server, "proxy": proxy}
    for pattern, other in _INSTEAD:
        begins = pattern.format(**named)
        if name.startswith(begins):
            yield other.format(**named, rest=name.removeprefix(begins))
