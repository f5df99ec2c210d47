"""How a question about a figure is put."""

from __future__ import annotations

from collections.abc import Mapping

from analysis.figures import declaration, programs
from analysis.figures.catalogue import find
from analysis.figures.declaration import Figure
from lab.roles.declared_roles import ROLES

_STATISTICS = {
    "min": "the shortest",
    "max": "the longest",
    "mean": "the mean",
    "p50": "the median",
    "p90": "the 90th percentile",
    "p95": "the 95th percentile",
    "p99": "the 99th percentile",
}

# By the figure's pattern. One that is not here is asked for by its meaning.
QUESTIONS: Mapping[str, str] = {
    "client.requests.total": "How many requests are made?",
    "client.requests.ok": "How many requests are answered well?",
    "client.requests.failed": "How many requests fail?",
    "client.requests.status.<status>": "How many requests are answered with {status}?",
    "client.requests.error.<code>": "How many requests end with k6's error {code}?",
    "client.latency_ms.<statistic>": "What is {statistic} of the times to an answer, connecting included?",
    "client.users.total": "How many users are there?",
    "client.users.served": "How many users get all of their answers?",
    "client.users.failed": "How many users see a failure?",
    "client.dials.total": "How many connections do the clients try to open?",
    "client.dials.ok": "How many connections do the clients open?",
    "client.dials.failed": "How many of the clients' attempts to connect fail?",
    "client.dials.failed_<kind>": "How many of the clients' attempts to connect fail with “{kind}”?",
    "client.dial_ms.<statistic>": "What is {statistic} of the times to connect?",
    "client.dial_ms.failed.<statistic>": "What is {statistic} of the times until connecting fails?",
    "kernel.<role>.<Counter>": "By how much does {Counter} grow in the kernel of {role}?",
    "listen.<role>.depth.max": "How many connections lie in the accept queue of {role} at the most?",
    "listen.<role>.drops": "How many SYNs does the listening socket of {role} drop?",
    "sockets.<role>.time_wait.max": "How many sockets of {role} are in TIME_WAIT at the most?",
    "sockets.<role>.time_wait.end": "How many sockets of {role} are in TIME_WAIT in the end?",
    "sockets.<role>.<state>.max": "How many sockets of {role} are in {state} at the most?",
    "sockets.<role>.<state>.end": "How many sockets of {role} are in {state} in the end?",
    "tomcat.<backend>.connections.max": "How many connections does Tomcat hold at the most?",
    "tomcat.<backend>.threads_busy.max": "How many of Tomcat's threads are at work at the most?",
    "tomcat.<backend>.requests": "How many requests does Tomcat serve?",
    "access.<proxy>.requests": "How many requests does {proxy} log?",
    "access.<proxy>.status.<status>": "How many requests does {proxy} answer with {status}?",
    "access.<proxy>.tries.total": "How many times does {proxy} try a backend?",
    "gateway.connections.opened": "How many connections to the backends does the gateway open?",
    "gateway.connections.closed": "How many of the gateway's connections to the backends are closed?",
    "gateway.connections.reused": "How many times does the gateway use a connection of its pool again?",
    "gateway.dials.failed": "How many of the gateway's attempts to connect to a backend fail?",
    "flows.<server>.total": "How many connections to {server} begin, by the capture?",
    "flows.<server>.established": "How many connections to {server} come about, by the capture?",
    "flows.<server>.unanswered": "How many connections to {server} get no answer to any SYN?",
    "flows.<server>.syns": "How many SYNs reach {server}?",
    "flows.<server>.closed_by_client": "How many connections to {server} does the client close first?",
    "flows.<server>.closed_by_server": "How many connections does {server} close first?",
    "flows.<server>.port_reuses": "How many connections to {server} use a port again that one before had?",
}


def declared(figure: str) -> tuple[Figure, dict[str, str]] | None:
    """Give the figure that a name is of, with its parameters: also one that a role's page tells."""
    return find(figure) or declaration.find_figure(programs.page_figures(ROLES), figure)


def question(figure: str) -> tuple[str, str]:
    """Give the question about a figure, and its unit.

    Args:
        figure: its name, of those that there are.
    """
    found = declared(figure)
    if found is None:
        raise ValueError(figure)
    of, parameters = found
    text = QUESTIONS.get(of.pattern, f"{figure}: {of.meaning}")
    return text.format(**{name: _spoken(name, value) for name, value in parameters.items()}), of.unit


def meaning(figure: str) -> str:
    """Give what a figure means, with its source, for a learner who asks back."""
    found = declared(figure)
    return f"{figure}: {found[0].meaning} ({found[0].source})" if found else figure


def _spoken(parameter: str, value: str) -> str:
    if parameter in ("role", "server", "backend", "proxy"):
        return ROLES[value].called if value in ROLES else value.replace("_", "-")
    if parameter == "statistic":
        return _STATISTICS.get(value, value)
    if parameter == "kind":
        return value.replace("_", "-")
    return value.upper() if parameter == "state" else value
