"""What proxies say of their requests and their connections to the servers: logs, and the gateway's record of dials."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from analysis.database import sql
from analysis.diagnosis.health import Evidence
from analysis.diagnosis.joins import Joined, Row
from analysis.evidence.window import Window
from analysis.expressions.values import Value, unknown
from analysis.figures.declaration import Compute, Figure, of_joined
from analysis.figures.run import Run, status_bounds

_ACCESS = {Evidence.ACCESS: "access", Evidence.TIMES: ""}
_ERRORS = {Evidence.ERRORS: "errors", Evidence.TIMES: ""}

# Any number that a log may have.
_STATUS_MAX = 1 << 62

_figure = partial(Figure, source="the proxy: access.jsonl")


def _lines(run: Run, found: Mapping[str, str]) -> Value:
    """Return how many requests ended at the proxies in the window, of those with a status where the name has one."""
    low, high = status_bounds(found["status"]) if "status" in found else (0, _STATUS_MAX)
    records = run.raw.records

    def count(window: Window) -> Value:
        asked = {**window.edges, "low": low, "high": high}
        row = records.row(sql(__name__, "access_lines"), **asked)
        return (
            unknown("the proxy's log has whole seconds, and the window does not")
            if row["coarse"]
            else int(row["count"])
        )

    return run.resting_on(list(records.access), _ACCESS, count)


def _in_window(query: str, column: str, evidence: dict[Evidence, str] = _ACCESS) -> Compute:
    """Return a count of the window: a column of a query, whose further parameters are those of the figure's name."""

    @of_joined
    def compute(run: Run, joined: Joined, found: Mapping[str, str]) -> Value:
        def count(window: Window) -> Value:
            named = {name: value for name, value in found.items() if name != "proxy"}
            return int(joined.row(sql(__name__, query), **window.edges, **named)[column])

        return run.resting_on(list(run.raw.records.access), evidence, count)

    return compute


_TRIES = {
    "total": "Servers that the proxy tried for its requests.",
    "connected": "Tries that had a connection, new or kept.",
    "connect_timeout": "Tries that timed out before they were connected.",
    "connect_failed": "Tries that failed before they were connected.",
    "aborted": (
        "Tries that ended before they were connected: the client left, or the proxy tried again and told no more."
    ),
    "retried": "Failed tries, after which the proxy tried again.",
}


_GATEWAY = "gateway"
_gateway_figure = partial(Figure, of_role=_GATEWAY)
_DIALS_FILE = "gateway: dials.jsonl"
_DIALS = {Evidence.DIALS: "dials", Evidence.TIMES: ""}

# Figure, a column of at_gateway.sql → its meaning.
_GATEWAY_COUNTS = {
    "connections.opened": "Connections to the backends that were opened.",
    "connections.closed": "Connections to the backends that were closed, by either side.",
    "connections.closed_by_peer": (
        "Those where the gateway read the backend's close before its own; the capture shows which side was first."
    ),
    "dials.total": "Attempts to connect to a backend.",
    "dials.failed": "Attempts that failed.",
}


def _at_gateway(evidence: dict[Evidence, str], value: Callable[[Row, Mapping[str, str]], int]) -> Compute:
    """Return a value of what the gateway did in the window, the row of at_gateway.sql."""

    @of_joined
    def compute(run: Run, joined: Joined, found: Mapping[str, str]) -> Value:
        def in_window(window: Window) -> Value:
            return value(joined.row(sql(__name__, "at_gateway"), role=_GATEWAY, **window.edges), found)

        return run.resting_on(run.instances(_GATEWAY), evidence, in_window)

    return compute


def _gateway_count(name: str, evidence: dict[Evidence, str] = _DIALS) -> Compute:
    return _at_gateway(evidence, lambda row, _: int(row[name.replace(".", "_")]))


FIGURES: tuple[Figure, ...] = (
    _figure("access.<proxy>.requests", "Requests that ended at the proxy in the window.", _lines),
    _figure(
        "access.<proxy>.status.<status>",
        "Requests that the proxy answered with this status, or with one of this class.",
        _lines,
    ),
    _figure(
        "access.haproxy.unsent",
        "Requests that HAProxy logged with an error (5xx) and 0 bytes: it sent no answer, closed the connection or"
        " refused the stream, and the client may have sent the request again.",
        _in_window("at_proxies", "unsent"),
        of_role="haproxy",
    ),
    *(
        _figure(f"access.<proxy>.tries.{name}", meaning, _in_window("at_proxies", f"tries_{name}"))
        for name, meaning in _TRIES.items()
    ),
    *(
        _figure(
            f"access.nginx.connection.{name}",
            f"Requests that nginx answered with `Connection: {header}`: it {then} the client's connection after them.",
            _in_window("at_proxies", f"connection_{name}"),
            of_role="nginx",
        )
        for name, header, then in (("close", "close", "closes"), ("keep_alive", "keep-alive", "keeps"))
    ),
    *(
        _figure(f"access.<proxy>.tls.{name}", meaning, _in_window("at_proxies", f"tls_{name}"))
        for name, meaning in (
            ("connections", "Connections of clients by TLS whose first request ended at the proxy in the window."),
            ("resumed", "Those of them that resumed an earlier session, without a signature of the proxy's."),
        )
    ),
    Figure(
        "access.<proxy>.errors.<code>",
        "Lines of the error log with this system error number, such as 111 for a refused connection.",
        _in_window("errors_with", "count", _ERRORS),
        "the proxy: error.log",
    ),
    *(
        _gateway_figure(f"gateway.{name}", meaning, _gateway_count(name), _DIALS_FILE)
        for name, meaning in _GATEWAY_COUNTS.items()
    ),
    _gateway_figure(
        "gateway.dials.failed_<kind>",
        "Attempts that failed for this reason, as `client.dials.failed_<kind>`.",
        _at_gateway(_DIALS, lambda row, found: row["kinds"].get(found["kind"].replace("_", "-"), 0)),
        _DIALS_FILE,
    ),
    _gateway_figure(
        "gateway.connections.reused",
        "Uses of a connection from the pool; one request may have several.",
        _gateway_count("connections.reused", _ACCESS),
        "gateway: access.jsonl",
    ),
)
