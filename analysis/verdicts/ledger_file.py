"""derived/ledger.json: the account of a run; from the same raw files always the same bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from analysis import figures
from analysis.database import sql
from analysis.diagnosis import attribution, joins
from analysis.diagnosis.causes import CAUSES, UNEXPLAINED
from analysis.diagnosis.causes.answering import PROXY_FULL
from analysis.diagnosis.health import Evidence
from analysis.diagnosis.identities import IdentityEntry
from analysis.diagnosis.joins import Hop, Joined
from analysis.diagnosis.shutdowns import Ending, find_endings
from analysis.expressions.values import Unknown, is_number
from analysis.figures import Run, catalogue, client, ledger
from analysis.formatting import format_count
from analysis.output import DerivedFile, Written
from analysis.verdicts.connections_file import Outcome

# What the ledger rests on. A load that was less than asked for is a load all the same.
_EVIDENCE = frozenset(Evidence) - {Evidence.LOAD, Evidence.EVENTS, Evidence.SOCKETS, Evidence.PROCESSES}

# Examples of what nothing explains; requests.parquet has all.
_EXAMPLES_MAX = 20
# A script that gives no names has one for each URL.
_NAMES_MAX = 100


class Requests(Written):
    """The requests that k6 recorded."""

    total: int
    ok: Annotated[int, Field(description="Answered with a status from 200 to 399")]
    failed: int
    slow: Annotated[int, Field(description="Those of the ok that were answered later than the scenario's bound")]


class NamedRequests(Written):
    """The requests of one name and group, and what became of them."""

    name: Annotated[str, Field(description="A script's tags.name, else the URL; a workload's own name for them")]
    group: Annotated[str, Field(description="A script's group() around them, as ::outer::inner; empty outside groups")]
    total: int
    failed: int
    slow: int
    median_ms: Annotated[float | None, Field(description="Of those that were answered; null where none was")]
    p95_ms: float | None
    causes: Annotated[dict[str, int], Field(description="Cause → those that failed or were slow")]


class UnexplainedRequest(Written):
    """A request whose cause nothing proves."""

    request: Annotated[str, Field(description="As k6-1/17: the instance, and the id in its requests.jsonl")]
    outcome: Literal["failed", "slow"]
    why: Annotated[str, Field(description="What is missing for a cause")]


class DroppedSyns(Written):
    """SYNs that reached the server's capture and that nothing answered; null where no capture tells."""

    recovered: Annotated[
        int | None, Field(description="A later SYN of the same connection was answered: latency, no error")
    ]
    lost: Annotated[int | None, Field(description="None was: the connection failed")]


class HopConnections(Written):
    """What became of a hop's connections; docs/observe.md says what each outcome means."""

    total: int
    failed: int
    outcomes: dict[Outcome, int]
    causes: Annotated[
        dict[str, int], Field(description="Cause → connections that failed; unexplained where nothing proves one")
    ]
    delayed: Annotated[
        dict[str, int],
        Field(default_factory=dict, description="Cause → connections that were made late, and did not fail"),
    ]
    requests: Annotated[
        int | None, Field(description="Requests that they carried, by the packets, where no client records any")
    ] = None


class HeldPlaces(Written):
    """Who held a proxy's connections when it first had none left for a request."""

    instance: str
    time_us: int
    places: Annotated[int | None, Field(description="How many it can have, to both sides; null where that is unknown")]
    sessions: Annotated[int, Field(description="Of clients, with a WebSocket session")]
    requests: Annotated[int, Field(description="Of clients, with a request under way")]
    idle: Annotated[int, Field(description="Of clients, with neither")]
    servers: Annotated[int, Field(description="Its own, to servers")]
    out_of_files: Annotated[bool, Field(description="Whether a process of it could open no more files, by its log")] = (
        False
    )

    @property
    def sentences(self) -> str:
        """What the fields say, in sentences."""
        held = self.sessions + self.requests + self.idle + self.servers
        of = f"; it has {self.places:,}, some of them for its own use" if self.places else ""
        text = (
            f"When {self.instance} first had no connection left, it held {held:,}: of clients, {self.sessions:,} with a"
            f" WebSocket session, {self.requests:,} with a request and {self.idle:,} idle; {self.servers:,} to"
            f" servers{of}."
        )
        if self.sessions and self.places:
            text += f" A session holds two for as long as it lasts, so at most {self.places // 2:,} fit."
        if self.out_of_files:
            text += " By its log, a process of it had as many files open as it may."
        return text


class HeldConnections(Written):
    """Who had the connections that a server had accepted, when most others waited in its accept queue."""

    instance: str
    time_us: int
    waiting: Annotated[int, Field(description="Connections in the queue at that reading")]
    held: Annotated[int, Field(description="Those that the server had accepted, and not closed")]
    silent: Annotated[int, Field(description="Of these, those whose client had sent nothing yet")]
    idle: Annotated[int, Field(description="Of these, those with an answer, and no data after it")]
    others: Annotated[int, Field(description="Of these, those of clients that are not on the path")]
    process: Annotated[
        str | None,
        Field(description="A process that had as many files open as it may, so that it could accept no more"),
    ] = None
    files: Annotated[int | None, Field(description="So many: its limit of open files")] = None

    @property
    def sentences(self) -> str:
        """What the fields say, in sentences."""
        of_others = f", {self.others:,} of them of clients that are not on the path" if self.others else ""
        text = (
            f"When most connections waited in the accept queue of {self.instance}, {self.waiting:,}, it held"
            f" {self.held:,} that it had accepted{of_others}: {self.silent:,} whose client had sent nothing yet,"
            f" {self.idle:,} idle after an answer, {self.held - self.silent - self.idle:,} with a request."
        )
        if self.silent:
            text += " A silent client holds its place until the server gives up to wait for its request."
        if self.process is not None:
            text += (
                f" Its process {self.process} had {self.files:,} files open, as many as it may: it could accept no"
                " more."
            )
        return text


class TurnedAway(Written):
    """The connections that a server closed as they came, because it had no room for them."""

    role: str
    instance: str
    connections: int
    held: Annotated[int, Field(description="The fewest others that it held when it closed one so")]
    taken: Annotated[int | None, Field(description="As many as it takes, by packets; null where these do not tell")]
    process: Annotated[str | None, Field(description="A process that had as many files open as it may; null for none")]
    files: Annotated[int | None, Field(description="So many: its limit of open files")]

    @property
    def sentences(self) -> str:
        """What the fields say, in sentences."""
        text = (
            f"{self.instance} closed {format_count(self.connections, 'connection')} as they came, while it held"
            f" {format_count(self.held, 'other')}{' or more' if self.taken is None else ', as many as it ever takes'}."
        )
        if self.process is not None:
            text += f" Its process {self.process} had {self.files:,} files open, as many as it may."
        return text


class Streams(Written):
    """The connections of clients that carry several requests at once, by HTTP/2 and gRPC."""

    connections: int
    requests: int
    requests_max: Annotated[int, Field(description="The most that one of them carried")]
    at_once_max: Annotated[int, Field(description="The most that one of them carried at once")]
    sent_again: Annotated[int, Field(description="Requests that the client sent again by itself")]
    goaways: Annotated[int, Field(description="Connections whose GOAWAY made it do so")]

    @property
    def sentences(self) -> str:
        """What the fields say, in sentences."""
        text = (
            f"{format_count(self.connections, 'connection')} carried {format_count(self.requests, 'request')} as"
            f" streams of HTTP/2: one carried {self.requests_max:,} at the most, and {self.at_once_max:,} at once."
        )
        if self.sent_again:
            text += f" Clients sent {format_count(self.sent_again, 'request')} again by themselves"
            text += f", after the GOAWAY of {format_count(self.goaways, 'connection')}." if self.goaways else "."
        return text


class HopEntry(Written):
    """One hop of the path."""

    from_: Annotated[str, Field(alias="from", description="The role that connects")]
    to: Annotated[str, Field(description="The role that it connects to")]
    observers: Annotated[list[str], Field(description="The instances whose captures count its connections")]
    dropped_syns: DroppedSyns
    dropped_later: Annotated[
        int | None,
        Field(description="Packets after the SYN, last ACKs and data, that met a full accept queue, at the least"),
    ]
    in_vain: Annotated[
        int | None,
        Field(description="Connections that the server took up or queued for a client that had asked, and left"),
    ] = None
    resent: Annotated[
        int | None,
        Field(description="Requests that met a kept connection as the server closed it, sent again without an error"),
    ] = None
    near_races: Annotated[
        int | None,
        Field(description="Answered requests that came to a kept connection within 50 ms of its end, or later"),
    ] = None
    kept_ms: Annotated[
        tuple[float, float] | None,
        Field(description="How long the server kept idle connections, as measured from its closes: nine in ten"),
    ] = None
    connections: Annotated[
        HopConnections | None, Field(description="Those that began in the window; null where no capture has them")
    ] = None
    identities: list[IdentityEntry]


class Ledger(DerivedFile):
    """The account of one run."""

    file = Path("derived") / "ledger.json"

    contract: Annotated[Literal["connlab.ledger/1"], Field(alias="schema")]
    scenario: str
    run: str
    lacks: Annotated[
        list[str], Field(description="What the evidence lacks; what rests on it is unknown or unexplained")
    ]
    by_connection: Annotated[
        bool, Field(description="Whether the load has no record of requests, so that the hops' connections are all")
    ] = False
    requests: Annotated[
        Requests | None, Field(description="null where the run did not come so far, or k6 left no record of them")
    ]
    unexplained: Annotated[
        int | None, Field(description="Failed and slow requests whose cause nothing proves; null as requests")
    ]
    unexplained_requests: Annotated[
        list[UnexplainedRequest], Field(description=f"The first {_EXAMPLES_MAX} of them; requests.parquet has all")
    ]
    causes: Annotated[
        dict[str, int], Field(description="Cause → failed and slow requests, for each that occurred; docs/causes.md")
    ]
    failed_causes: Annotated[
        dict[str, int],
        Field(
            description=f"Cause → those of them that failed, for each of which some did; {UNEXPLAINED.name} is one here"
        ),
    ]
    names: Annotated[
        list[NamedRequests],
        Field(description=f"By name and group, the most failed and slow first; {_NAMES_MAX} at most"),
    ]
    places: Annotated[
        list[HeldPlaces], Field(description="One for each proxy that had no connection left for a request")
    ] = Field(default_factory=list)
    holders: Annotated[
        list[HeldConnections],
        Field(description="One for each server in whose accept queue requests waited, or found it full"),
    ] = Field(default_factory=list)
    turned_away: Annotated[
        list[TurnedAway], Field(description="One for each server that closed connections as they came")
    ] = Field(default_factory=list)
    streams: Annotated[Streams | None, Field(description="null where no request was sent by HTTP/2 or gRPC")] = None
    endings: Annotated[
        list[Ending], Field(description="One for each drain, stop, restart and reload that the lab began")
    ] = Field(default_factory=list)
    hops: list[HopEntry]


def build_ledger(run: Run) -> Ledger:
    """Return the account of a run; it never raises for what the run's files hold or lack."""
    manifest, joined = run.raw.manifest, run.joined
    account = Ledger(
        contract="connlab.ledger/1",
        scenario=manifest.scenario,
        run=manifest.run,
        lacks=_lacks(run),
        by_connection=bool(run.clients) and not run.raw.clients and not run.raw.with_results,
        requests=None,
        unexplained=None,
        unexplained_requests=[],
        causes={},
        failed_causes={},
        names=[],
        hops=[_hop(run, hop, identities) for hop, identities in catalogue.balance_hops(run).items()],
    )
    if isinstance(joined, Unknown) or not _recorded(run):
        return account
    causes = attribution.count_causes(joined)
    return account.model_copy(
        update={
            "requests": _requests(joined),
            "unexplained": causes["total"].get(UNEXPLAINED.name, 0),
            "unexplained_requests": _unexplained(joined),
            "causes": {cause.name: causes["total"][cause.name] for cause in CAUSES if cause.name in causes["total"]},
            "failed_causes": causes["failed"],
            "names": _names(joined),
            "streams": _streams(run, joined),
            "places": _places(run, joined) if PROXY_FULL in causes["total"] else [],
            "holders": _holders(joined, [cause.name for cause in CAUSES if cause.accept_queue]),
            "turned_away": [TurnedAway(**row) for row in joined.rows(sql(__name__, "servers_without_room"))],
            "endings": find_endings(joined, manifest),
        }
    )


def _streams(run: Run, joined: Joined) -> Streams | None:
    row = run.raw.records.row(sql(client.__name__, "streams_of_clients"))
    if not row["connections"]:
        return None
    again = joined.row(sql(client.__name__, "sent_again"))
    return Streams(**row, sent_again=again["requests"], goaways=again["goaways"])


def _recorded(run: Run) -> bool:
    """Return whether each client left anything of its requests; only k6's last line tells that there were none."""
    logs = list(run.raw.records.requests.values())
    return bool(logs) and all(log.count > 0 or log.announced is not None for log in logs)


def _lacks(run: Run) -> list[str]:
    found = [window.why] if isinstance(window := run.raw.window, Unknown) else []
    if isinstance(run.joined, Unknown):
        return found
    found += [f"no packet was captured from {hop}" for hop in run.joined.hops if not hop.observers]
    found += [f"{each.instrument}: {each.message}" for each in run.health.problems if each.spoils & _EVIDENCE]
    return list(dict.fromkeys(found))


def _requests(joined: Joined) -> Requests:
    counts = joins.count_outcomes(joined)
    ok = counts["ok"] + counts["slow"]
    return Requests(total=ok + counts["failed"], ok=ok, failed=counts["failed"], slow=counts["slow"])


def _places(run: Run, joined: Joined) -> list[HeldPlaces]:
    return [
        HeldPlaces(**row, places=_places_of(run, row["instance"]))
        for row in joined.rows(sql(__name__, "held_places"), cause=PROXY_FULL)
    ]


# A reading and packets so near to each other may have either order.
_NEAR_US = 10_000


def _holders(joined: Joined, causes: list[str]) -> list[HeldConnections]:
    rows = joined.rows(sql(__name__, "held_by_servers"), causes=causes, near_us=_NEAR_US)
    return [HeldConnections(**row) for row in rows]


def _places_of(run: Run, proxy: str) -> int | None:
    """Return how many connections a proxy can have over all of its processes."""
    manifest = run.raw.manifest
    name = next((role for role, instances in manifest.instances.items() if proxy in instances), None)
    role = manifest.roles.get(name or "")
    if role is None or role.limits.process_connections is None:
        return None
    each, processes = (
        manifest.knobs[role.knob(limit)].value if limit and role.knob(limit) in manifest.knobs else None
        for limit in (role.limits.process_connections, role.limits.processes)
    )
    count = manifest.host.cpus if processes == "auto" else int(str(processes)) if str(processes).isdecimal() else None
    return each * count if isinstance(each, int) and count is not None else None


def _names(joined: Joined) -> list[NamedRequests]:
    return [
        NamedRequests(**row | {"causes": dict(sorted((row["causes"] or {}).items()))})
        for row in joined.rows(sql(__name__, "ledger_names"), most=_NAMES_MAX)
    ]


def _unexplained(joined: Joined) -> list[UnexplainedRequest]:
    rows = joined.rows(sql(__name__, "unexplained_requests"), cause=UNEXPLAINED.name, most=_EXAMPLES_MAX)
    return [UnexplainedRequest(**row) for row in rows]


def _hop(run: Run, hop: Hop, identities: list[IdentityEntry]) -> HopEntry:
    return HopEntry(
        from_=hop.client,
        to=hop.server,
        observers=list(hop.observers),
        dropped_syns=DroppedSyns(
            recovered=_figure(run, f"flows.{hop.server}.syn_recovered"),
            lost=_figure(run, f"flows.{hop.server}.syn_failed"),
        ),
        dropped_later=_figure(run, f"flows.{hop.server}.ack_dropped.min"),
        in_vain=_figure(run, f"flows.{hop.server}.in_vain"),
        resent=_figure(run, f"flows.{hop.server}.resent"),
        near_races=_figure(run, f"flows.{hop.server}.near_races"),
        kept_ms=_kept_ms(run, hop),
        connections=_connections(run, hop),
        identities=identities,
    )


def _connections(run: Run, hop: Hop) -> HopConnections | None:
    found = ledger.count_connections(run, hop.server)
    if isinstance(found, Unknown):
        return None
    return HopConnections(**found, requests=_figure(run, f"flows.{hop.server}.requests.total"))


def _kept_ms(run: Run, hop: Hop) -> tuple[float, float] | None:
    low, high = (figures.value(run, f"flows.{hop.server}.kept_ms.{end}") for end in ("low", "high"))
    return (float(low), float(high)) if is_number(low) and is_number(high) else None


def _figure(run: Run, name: str) -> int | None:
    value = figures.value(run, name)
    return int(value) if is_number(value) else None
