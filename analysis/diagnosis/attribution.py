"""Gives each failed or slow request its cause: the table `attributed` has the evidence for it, or what is missing.

The table `waits` says where the time went of each request that was slow, or ended without an answer. Each part is
what the evidence proves, 0 where it proves none; the parts need not add up to the whole.
"""

from collections.abc import Mapping, Sequence

import duckdb

from analysis.database import composed, create, make, sql
from analysis.diagnosis.causes import CAUSES, UNEXPLAINED, Cause
from analysis.diagnosis.health import Evidence, Health, limits
from analysis.diagnosis.joins import Hop, Joined
from analysis.diagnosis.joins.exchanges import silent_servers
from analysis.diagnosis.joins.requests import CLOCK_SLACK_US, NGINX_TURN_US, SYN_TIMEOUT_US
from analysis.evidence import captures
from analysis.evidence.rawrun import RawRun
from formats.knob_types import format_duration
from formats.manifest import Manifest

TABLES = ("waits", "attributed", "endings")

_ANY = (*CAUSES, UNEXPLAINED)


def attribute(joined: Joined, raw: RawRun, health: Health, start_us: int) -> None:
    """Make the tables `waits`, `known`, `decided`, `attributed` and `endings`.

    Args:
        joined: the run.
        raw: its files, read.
        health: that of its instruments.
        start_us: when the measurement began; evidence tells times from there.
    """
    manifest, apart_us = raw.manifest, raw.clocks.apart_us
    proxied = len(manifest.request_path) > 2  # noqa: PLR2004  client and server
    captured = [hop for hop in joined.hops if _is_captured(hop, health)]
    joined.need("cases", "exchanges", "data_waits")
    database = joined.database
    database.execute(composed(__name__, "macros_of_evidence", start_us=str(start_us)))
    known_us = apart_us or 0
    unseen_syns = _with_unseen_syns(database, _syns_again(raw, captured))
    _build_waits(database, manifest, known_us, unseen_syns, proxied=proxied)
    constants = {
        "bound_us": None if manifest.slow_ms is None else 1000 * manifest.slow_ms,
        "idle_percent_min": limits.HOST_IDLE_PERCENT_MIN,
        "captured": any(hop in captured for hop in joined.hops[:1]),
        # Those of the proxies and services behind the client's.
        "captured_behind": all(hop in captured for hop in joined.hops[1:]),
        "whole_until_us": _whole_until_us(raw),
        "proxied": proxied,
        "relayed": any(role.relays for role in manifest.roles.values()),
        "keep_alive_us": _keep_alive_us(manifest),
        "slack_us": CLOCK_SLACK_US,
        "ending_us": _ENDING_US,
        "apart_us": _UNBOUNDED_US if apart_us is None else apart_us,
    }
    # An error log of seconds is by the second of its own machine.
    seconds_us = {"turn_us": NGINX_TURN_US, "apart_us": known_us and known_us + 1_000_000}
    make(database, ["errors", "rules", "port_shortages", "acted"], {sql(__name__, "beside"): seconds_us})
    _insert_timers(database, manifest)
    database.execute(sql(__name__, "known"), constants)
    doubted = "NULL::VARCHAR" if apart_us == 0 else f"if(apart_us > {_APART}, cause, NULL)"
    database.execute(composed(__name__, "decided", cause=_CAUSE, doubted=doubted), {"unexplained": UNEXPLAINED.name})
    found = {cause for (cause,) in database.execute("SELECT DISTINCT cause FROM decided").fetchall()}
    # DuckDB takes longer to parse the evidence texts of all causes than to write those of the causes that occur.
    says = [f"WHEN '{cause.name}' THEN {cause.says}" for cause in _ANY if cause.name in found]
    evidence = f"CASE cause {' '.join(says)} END" if says else "NULL"
    database.execute(composed(__name__, "attributed", evidence=evidence))
    make(database, ["actions"], {sql(__name__, "endings"): {}})


def count_causes(joined: Joined) -> dict[str, dict[str, int]]:
    """Return how many requests each cause has by its name: of those that `failed`, were `slow`, and in `total`."""
    return joined.row(sql(__name__, "causes"))


def _is_captured(hop: Hop, health: Health) -> bool:
    """Return whether there is a sound capture of a hop's connections, so that what is not in it was not there."""
    return bool(hop.observers) and not any(health.spoilt(Evidence.PACKETS, f"capture/{each}") for each in hop.observers)


def _syns_again(raw: RawRun, captured: Sequence[Hop]) -> dict[str, int]:
    """Return how many SYNs each kernel sent again while it was sampled, of those whose connections are captured."""
    counters = {one: samples.counters.get("TcpExt.TCPSynRetrans") for one, samples in raw.samples.items()}
    senders = {one for hop in captured for one in raw.manifest.of_role(hop.client)}
    return {one: found.values[-1] - found.values[0] for one, found in counters.items() if found and one in senders}


def _whole_until_us(raw: RawRun) -> int | None:
    """Return until when every capture of the run holds all packets; None: to its end.

    What came of a request after that may be missing.
    """
    ends_us = [captures.whole_until_us(one, raw.reductions[instance]) for instance, one in raw.captures.items()]
    return min((end_us for end_us in ends_us if end_us is not None), default=None)


def _with_loops(manifest: Manifest) -> list[str]:
    """Return the servers whose requests wait for the event loop of their connection, by their declarations."""
    names = [name for name, role in manifest.roles.items() if role.kind == "server" and role.limits.event_loops]
    return [instance for name in names for instance in manifest.of_role(name)]


def _keep_alive_us(manifest: Manifest) -> int | None:
    """Return how long the server keeps an idle connection, less what its clock, of milliseconds, may differ by."""
    # What was observed where it ran has no path.
    role = manifest.roles.get(manifest.origin) if manifest.origin else None
    idle_ms = manifest.integer_of(role.knob(role.limits.idle)) if role is not None and role.limits.idle else None
    # A server reads its clock at each end of an idle time, a little before or after the packets leave.
    return 1000 * idle_ms - CLOCK_SLACK_US if idle_ms else None


def _insert_timers(database: duckdb.DuckDBPyConnection, manifest: Manifest) -> None:
    """Make the table `timers`: how long each proxy waits for a connection, and bears a server's silence."""
    create(database, "timers", {"instance": "VARCHAR", "connect_timer": "VARCHAR", "answer_timer": "VARCHAR"})
    for name, role in manifest.roles.items():
        if role.kind == "proxy":
            bounds = (role.limits.connect_timeout, role.limits.answer_timeout)
            timers = [_timer(manifest, role.knob(bound)) if bound else None for bound in bounds]
            for instance in manifest.of_role(name):
                database.execute("INSERT INTO timers VALUES (?, ?, ?)", [instance, *timers])


def _timer(manifest: Manifest, name: str) -> str | None:
    """Return a knob that is a time, its value and its line in the user's configuration; None if there is no bound."""
    knob = manifest.knobs.get(name)
    if knob is None or not isinstance(knob.value, int) or not knob.value:
        return None
    place = f", {', '.join(knob.where)}" if knob.where else ""
    return f"{name} ({format_duration(knob.value)}{place})"


def _when(cause: Cause) -> str:
    return cause.when if cause.seen else f"NOT torn AND ({cause.when})"


# A process that is not listed any more may still close its files.
_ENDING_US = 50_000

# More than a run lasts.
_UNBOUNDED_US = 1 << 50

_CAUSE = f"""CASE {" ".join(f"WHEN {_when(cause)} THEN '{cause.name}'" for cause in _ANY)} END"""
_APART = "CASE cause {} END".format(
    " ".join(f"WHEN '{cause.name}' THEN {cause.apart}" for cause in _ANY if cause.apart is not None)
)


# So long after its request's end a client may take to end the connection.
_GONE_US = 1_000_000

# So long a server may take until a burst of requests has all its threads.
_SETTLING_US = 100_000


def _with_unseen_syns(database: duckdb.DuckDBPyConnection, syns_again: Mapping[str, int]) -> list[str]:
    """Return the instances whose kernels sent SYNs that no capture has: they got lost before they came to a server."""
    captured = dict(
        database.execute(
            "SELECT from_instance, sum(syn_count - 1)::BIGINT FROM connections WHERE syn_count > 1 GROUP BY ALL"
        ).fetchall()
    )
    return [one for one, sent in syns_again.items() if sent > captured.get(one, 0)]


def _build_waits(
    database: duckdb.DuckDBPyConnection, manifest: Manifest, apart_us: int, unseen_syns: list[str], *, proxied: bool
) -> None:
    """Make the table `waits`; `unseen_syns`: the instances whose kernels sent SYNs that no capture has."""
    loops = _with_loops(manifest)
    database.execute(sql(__name__, "scraped"), {"gap_us": 1000 * limits.SECONDLY_GAP_MS, "loops": loops})
    database.execute(sql(__name__, "queued_ticks"))
    database.execute(sql(__name__, "idle_spans"))
    if proxied:
        database.execute(sql(__name__, "served_over_a_proxy"))
    else:
        database.execute(sql(__name__, "served_directly"), {"apart_us": apart_us, "gone_us": _GONE_US})
    make(database, ["actions"], {sql(__name__, "acted"): {}})
    database.execute(
        sql(__name__, "waits"),
        {
            "silent": silent_servers(manifest),
            "loops": loops,
            "settling_us": _SETTLING_US,
            "unseen_syns": unseen_syns,
            "syn_timeout_us": SYN_TIMEOUT_US,
        },
    )
