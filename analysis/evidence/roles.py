"""What the analysis reads of a role's declaration, which a manifest carries; schemas/role.schema.json has all of it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, model_validator

from formats.field_types import Named, Port

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


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


def of_manifest(content: Mapping[str, Any]) -> dict[str, Role]:
    """Return the declarations in a manifest, as JSON, by the roles' names."""
    return {name: Role.model_validate(each) for name, each in content.get("roles", {}).items()}


def request_path(path: Sequence[str], kind_of: Callable[[str], str | None]) -> list[str]:
    """The roles of a path that carry requests: from the client to its first server, which answers them.

    What stands behind that is a server of its own, such as a database: its connections carry no request of a client.

    Args:
        path: the roles.
        kind_of: gives the kind of each.
    """
    ends = (place for place, role in enumerate(path, start=1) if kind_of(role) == "server")
    return list(path[: next(ends, None)])
