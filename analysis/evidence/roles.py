"""What the analysis reads of a role's declaration; schemas/role.schema.json describes all of it.

A manifest carries the declarations of its run. Those of earlier versions have none: `EARLIER` are the roles they had.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, field_validator, model_validator

from formats.field_types import Named, Port

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence


# Where every server of the lab itself takes its traffic.
TRAFFIC_PORT = 8080


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)


class Knob(_Part):
    """One of a role's knobs.

    Attributes:
        counts: what of the topology it counts.
        shown: its words beside the role in a report's path.
        doc: what it does.
        fixed: whether the program has it built in.
    """

    doc: str = ""
    fixed: bool = False
    counts: Literal["instances", "addresses"] | None = None
    shown: str | None = None


class Limits(_Part):
    """Which knobs bound what a program holds; by their names within the role."""

    backlog: str | None = None
    connections: str | None = None
    threads: str | None = None
    connect_timeout: str | None = None
    pool: str | None = None
    process_connections: str | None = None
    processes: str | None = None
    idle: str | None = None
    server_connections: str | None = None
    server_pool: str | None = None
    no_pool: str | None = None
    server_idle: str | None = None
    answer_timeout: str | None = None
    queue_timeout: str | None = None
    failures: str | None = None
    left_out: str | None = None
    next_server: str | None = None
    own_threads: str | None = None


class Value(_Part):
    """A number on a page: where it stands, what it counts, and how a report shows it."""

    at: str
    grows: bool = False
    says: str | None = None
    shown: str | None = None
    limit: str | None = None
    limit_shown: str | None = None
    log: str | None = None
    own: bool = False


class Page(_Part):
    """A page that the collector read once a second."""

    format: Literal["json", "text", "csv"]
    called: str | None = None
    values: dict[str, Value] = {}

    @model_validator(mode="after")
    def _has_patterns(self) -> Page:
        for name, value in self.values.items() if self.format == "text" else ():
            try:
                groups = re.compile(value.at).groups
            except re.error as error:
                raise ValueError(f"'{name}' has no regular expression: {error}") from None
            if groups < 1:
                raise ValueError(f"the regular expression of '{name}' has no group")
        return self


class Role(_Part):
    """One role.

    Attributes:
        kind: client, proxy or server.
        port: where it takes its traffic; management ports are apart.
        group: the first part of its knobs' names.
        called: its name in the midst of a sentence.
        scrape: the pages that the collector read, by their files' names.
        processes: the names of its processes; empty: all but the instruments'.
        logs: its log files, each with its format; analysis.evidence.logs has the formats.
        limits: which knobs bound what it holds.
        knobs: by their names within the group.
    """

    kind: Literal["client", "proxy", "server"]
    group: Named
    called: str | None = None
    port: Port = TRAFFIC_PORT
    scrape: dict[Named, Page] = {}
    processes: list[str] = []
    logs: dict[Named, str] = {}
    limits: Limits = Limits()
    knobs: dict[str, Knob] = {}

    @field_validator("scrape", mode="before")
    @classmethod
    def _of_an_earlier_version(cls, pages: Any) -> Any:  # noqa: ANN401  JSON
        """Pages that were declared by their addresses alone: those that are known."""
        if not isinstance(pages, dict):
            return pages
        known = {name: _PAGES.get(name) if isinstance(page, str) else page for name, page in pages.items()}
        return {name: page for name, page in known.items() if page is not None}

    def knob(self, name: str) -> str:
        """The full name of one of its knobs."""
        return f"{self.group}.{name}"

    def bounds(self) -> dict[str, str]:
        """The full names of the knobs that bound it, by what they bound, without those that its program has fixed."""
        return {
            what: self.knob(name)
            for what, name in self.limits.model_dump(exclude_none=True).items()
            if name not in self.knobs or not self.knobs[name].fixed
        }

    def counting(self, what: Literal["instances", "addresses"]) -> str | None:
        """The knob that counts its instances, or its addresses; None where it has one of them."""
        return next((name for name, knob in self.knobs.items() if knob.counts == what), None)


def _knobs(**shown: str | None) -> dict[str, Knob]:
    return {name: Knob(counts="instances" if name == "instances" else None, shown=text) for name, text in shown.items()}


_PAGES = {
    "tomcat": Page(
        format="json",
        values={
            "connections": Value(
                at="connections.current",
                says="connections that Tomcat held",
                shown="connections",
                limit="max_connections",
                limit_shown="max-connections",
            ),
            "connections_max": Value(at="settings.maxConnections"),
            "connections_kept": Value(
                at="connections.keepAlive", says="idle connections that Tomcat kept", shown="connections kept, idle"
            ),
            "threads": Value(at="threads.current", says="threads of Tomcat's pool", shown="threads"),
            "threads_busy": Value(
                at="threads.busy",
                says="threads of Tomcat's pool at work",
                shown="threads at work",
                limit="threads_max",
                limit_shown="threads at most",
            ),
            "threads_max": Value(at="settings.maxThreads"),
            "waiting": Value(
                at="waitingRoom.waiting", says="users in the waiting room", shown="users in the waiting room"
            ),
            "requests": Value(at="requests.count", grows=True, says="requests that Tomcat served"),
            "processing_ms": Value(at="requests.processingMs", grows=True),
            "errors": Value(at="requests.errors", grows=True, says="requests that Tomcat counted as errors"),
            "issued": Value(at="waitingRoom.issued", grows=True, says="tokens that the waiting room issued"),
            "admitted": Value(at="waitingRoom.admitted", grows=True, says="users that the waiting room admitted"),
            "abandoned": Value(at="waitingRoom.abandoned", grows=True, says="tokens that the waiting room gave up"),
        },
    ),
    "stub_status": Page(
        format="text",
        called="nginx",
        values={
            "active": Value(at=r"Active connections: (\d+)", says="connections that nginx held", shown="connections"),
            "reading": Value(at=r"Reading: (\d+)", says="requests that nginx read", shown="reading a request"),
            "writing": Value(at=r"Writing: (\d+)", says="requests that nginx answered", shown="answering"),
            "waiting": Value(at=r"Waiting: (\d+)", says="idle connections", shown="connections kept, idle"),
            "requests": Value(
                at=r"requests\s+\d+ \d+ (\d+)\s",
                grows=True,
                says="requests that nginx began",
                log="access.jsonl",
                own=True,
            ),
        },
    ),
    "gateway": Page(
        format="json",
        values={
            "connections.open": Value(
                at="connections.open", says="connections to the backends", shown="connections to the backends"
            ),
            "connections.idle": Value(
                at="connections.idle",
                says="idle connections in the pool",
                shown="of these idle, in its pool",
                limit="max_idle_conns",
                limit_shown="idle at most",
            ),
            "requests.in_flight": Value(
                at="requests.inFlight", says="requests at the gateway", shown="requests in flight"
            ),
            "requests.waiting": Value(
                at="requests.waiting",
                says="requests waiting for a connection to a backend",
                shown="of these waiting for a connection",
            ),
        },
    ),
}
_NGINX_LOGS = {"access.jsonl": "nginx-access", "error.log": "nginx-errors"}

EARLIER: Mapping[str, Role] = {
    "k6": Role(
        kind="client",
        group="load",
        called="the client",
        limits=Limits(connect_timeout="connect_timeout"),
        knobs=_knobs(
            instances=None,
            users="users",
            rate_per_second="requests begun a second",
            connect_timeout="connect time-out",
            request_timeout="request time-out",
        ),
    ),
    "nginx": Role(
        kind="proxy",
        group="nginx",
        called="nginx",
        scrape={"stub_status": _PAGES["stub_status"]},
        logs=_NGINX_LOGS,
        limits=Limits(
            backlog="listen_backlog",
            process_connections="worker_connections",
            processes="worker_processes",
            connect_timeout="proxy_connect_timeout",
            pool="upstream_keepalive",
            server_idle="upstream_keepalive_timeout",
            answer_timeout="proxy_read_timeout",
            failures="max_fails",
            left_out="fail_timeout",
            next_server="proxy_next_upstream",
            idle="keepalive_timeout",
        ),
        knobs=_knobs(
            worker_processes="workers",
            worker_connections="connections of each worker",
            listen_backlog="accept queue",
            upstream_keepalive="kept to backends",
        ),
    ),
    "gateway": Role(
        kind="proxy",
        group="gateway",
        scrape={"gateway": _PAGES["gateway"]},
        logs={**_NGINX_LOGS, "dials.jsonl": "dials"},
        limits=Limits(
            connect_timeout="dial_timeout",
            pool="max_idle_conns",
            server_pool="max_idle_conns_per_host",
            no_pool="disable_keep_alives",
            server_connections="max_conns_per_host",
            server_idle="idle_conn_timeout",
            answer_timeout="response_header_timeout",
            idle="server_idle_timeout",
        ),
        knobs=_knobs(
            max_idle_conns="idle connections kept",
            max_idle_conns_per_host="of these for a backend",
            max_conns_per_host="connections to a backend",
        ),
    ),
    "backend": Role(
        kind="server",
        group="backend",
        scrape={"tomcat": _PAGES["tomcat"]},
        limits=Limits(
            backlog="accept_count",
            connections="max_connections",
            threads="threads_max",
            own_threads="virtual_threads",
            idle="keep_alive_timeout",
        ),
        knobs=_knobs(
            instances=None,
            max_connections="connections at once",
            accept_count="accept queue",
            threads_max="threads",
            keep_alive_timeout="idle connections kept",
        ),
    ),
}


def of_manifest(content: Mapping[str, Any]) -> dict[str, Role]:
    """The declarations in a manifest, as JSON; for one of an earlier version those it would have had."""
    declared = content.get("roles")
    if declared is None:
        return earlier(content.get("path", []))
    return {name: _completed(name, Role.model_validate(each)) for name, each in declared.items()}


def _completed(name: str, role: Role) -> Role:
    """A role with the limits that an earlier version did not declare, where it has their knobs."""
    if name not in EARLIER:
        return role
    known = EARLIER[name].limits.model_dump(exclude_none=True)
    had = {what: knob for what, knob in known.items() if knob in role.knobs}
    return role.model_copy(update={"limits": Limits(**had | role.limits.model_dump(exclude_none=True))})


def request_path(path: Sequence[str], kind_of: Callable[[str], str | None]) -> list[str]:
    """The roles of a path that carry requests: from the client to its first server, which answers them.

    What stands behind that is a server of its own, such as a database: its connections carry no request of a client.

    Args:
        path: the roles.
        kind_of: gives the kind of each.
    """
    ends = (place for place, role in enumerate(path, start=1) if kind_of(role) == "server")
    return list(path[: next(ends, None)])


def earlier(path: Iterable[str]) -> dict[str, Role]:
    """The declarations of a path's roles, for a run whose manifest has none."""
    return {name: EARLIER[name] for name in path if name in EARLIER}
