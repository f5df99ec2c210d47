"""What the analysis reads of a role's declaration; schemas/role.schema.json describes all of it.

A manifest carries the declarations of its run. Those of earlier versions have none: `EARLIER` are the roles they had.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)


class Knob(_Part):
    """One of a role's knobs: what of the topology it counts, and its words beside the role in a report's path."""

    counts: Literal["instances", "addresses"] | None = None
    shown: str | None = None


class Limits(_Part):
    """Which knobs bound what a program holds; by their names within the role."""

    connect_timeout: str | None = None
    pool: str | None = None


class Role(_Part):
    """One role.

    Attributes:
        kind: client, proxy or server.
        group: the first part of its knobs' names.
        scrape: the pages that the collector read.
        logs: its log files, each with its format; analysis.evidence.logs has the formats.
        limits: which knobs bound what it holds.
        knobs: by their names within the group.
    """

    kind: Literal["client", "proxy", "server"]
    group: str
    scrape: dict[str, str] = {}
    logs: dict[str, str] = {}
    limits: Limits = Limits()
    knobs: dict[str, Knob] = {}

    def knob(self, name: str) -> str:
        """The full name of one of its knobs."""
        return f"{self.group}.{name}"

    def counting(self, what: Literal["instances", "addresses"]) -> str | None:
        """The knob that counts its instances, or its addresses; None where it has one of them."""
        return next((name for name, knob in self.knobs.items() if knob.counts == what), None)


def _knobs(**shown: str | None) -> dict[str, Knob]:
    return {name: Knob(counts="instances" if name == "instances" else None, shown=text) for name, text in shown.items()}


_NGINX_LOGS = {"access.jsonl": "nginx-access", "error.log": "nginx-errors"}

EARLIER: Mapping[str, Role] = {
    "k6": Role(
        kind="client",
        group="load",
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
        scrape={"stub_status": ""},
        logs=_NGINX_LOGS,
        limits=Limits(connect_timeout="proxy_connect_timeout", pool="upstream_keepalive"),
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
        scrape={"gateway": ""},
        logs={**_NGINX_LOGS, "dials.jsonl": "dials"},
        limits=Limits(connect_timeout="dial_timeout", pool="max_idle_conns"),
        knobs=_knobs(
            max_idle_conns="idle connections kept",
            max_idle_conns_per_host="of these for a backend",
            max_conns_per_host="connections to a backend",
        ),
    ),
    "backend": Role(
        kind="server",
        group="backend",
        scrape={"tomcat": ""},
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
    return {name: Role.model_validate(each) for name, each in declared.items()}


def earlier(path: Iterable[str]) -> dict[str, Role]:
    """The declarations of a path's roles, for a run whose manifest has none."""
    return {name: EARLIER[name] for name in path if name in EARLIER}
