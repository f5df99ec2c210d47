"""The part of connections.json that only files from elsewhere have: what they prove, and what to record next time."""

import math
from collections.abc import Iterator, Sequence
from typing import Annotated, Final

from pydantic import Field

from analysis.database import Row, sql
from analysis.diagnosis.observed import Observation, counters, path_losses, server_closes, stalls
from analysis.diagnosis.observed.counters import Finding as Found
from analysis.diagnosis.observed.path_losses import Losses
from analysis.diagnosis.observed.stalls import Stall
from analysis.evidence import given_logs
from analysis.evidence.flows import captured_servers
from analysis.evidence.given_logs import GivenLog
from analysis.evidence.logs import lines_of
from analysis.figures import Run
from analysis.formatting import format_count, format_moment, format_number
from analysis.output import Written
from analysis.verdicts.record_next import what_to_record
from formats.manifest import EvidenceFile, Observed
from formats.safe_files import open_regular

# The most connections that are listed one by one, and the most of one server and outcome among them.
_TOLD_MAX: Final = 20
_ALIKE_MAX: Final = 3
# Shorter waits are not reported.
_LONG_US: Final = 500_000
_SERVERS_MAX: Final = 50
# The most SYNs of a connection whose times are listed, and the fewest that Linux sends before it gives up.
_SYNS_MAX: Final = 16
_LINUX_SYNS: Final = 6
# How many servers of a capture are named where it has none of the one that was asked for.
_NAMED_MAX: Final = 5


class GivenFile(Written):
    """A file, and what it was taken for."""

    name: str
    kind: str
    instance: str


class Finding(Written):
    """One thing that the files prove."""

    instance: str
    name: str
    says: str
    counters: Annotated[dict[str, int | float], Field(description="What it rests on")]


class ReportedConnection(Written):
    """One connection, with what its packets show."""

    instance: str
    also: Annotated[str | None, Field(description="The other end, whose capture shows the same")]
    client: str
    server: str
    outcome: str
    cause: str | None
    says: str
    more: Annotated[int, Field(description="How many connections are alike and not listed; at the last one of these")]


class AtServer(Written):
    """What a proxy's log tells of one server, and what the packets do."""

    server: str
    failure: str
    lines: int
    connections: Annotated[int | None, Field(description="With the same outcome in the captures; null where unknown")]


class Log(Written):
    """A proxy's log."""

    file: str
    kind: str
    lines: int
    unread: Annotated[int, Field(description="Lines of another form")]
    zone_of: Annotated[str | None, Field(description="The log whose zone its times are taken for; null: its own")]
    first: str | None
    last: str | None
    failures: dict[str, int]
    servers: list[AtServer]
    joined: Annotated[
        int | None, Field(description="Lines whose client's connection is in a capture; null where no line names it")
    ]


class Inspection(Written):
    """What files from elsewhere prove."""

    files: list[GivenFile]
    findings: list[Finding]
    connections: Annotated[
        list[ReportedConnection], Field(description="Some that failed or stood still, by their packets")
    ]
    stalls_examined: Annotated[int | None, Field(description="Connections looked at packet by packet; null: none")]
    stalls_of: Annotated[int | None, Field(description="Of so many that carried data")]
    losses: list[Losses]
    logs: list[Log]
    record_next: Annotated[list[str], Field(description="What would tell what these files do not")]


def build_inspection(run: Run, seen: Observation | None, observed: Observed) -> Inspection:
    """Return what files from elsewhere prove."""
    files = [GivenFile(name=each.name, kind=each.kind, instance=each.instance) for each in observed.files]
    logs = [_log(run, seen, each, observed) for each in observed.files if each.file is not None]
    findings = [*_findings(run, seen, observed), *_of_logs(observed, logs)]
    told, examined, of = _connections(run, seen) if seen is not None else ([], None, None)
    return Inspection(
        files=files,
        findings=findings,
        connections=told,
        stalls_examined=examined,
        stalls_of=of,
        losses=list(_losses(run, seen, observed)) if seen is not None else [],
        logs=logs,
        record_next=list(dict.fromkeys(what_to_record(run, seen, observed, {each.name for each in findings}))),
    )


def _findings(run: Run, seen: Observation | None, observed: Observed) -> Iterator[Finding]:
    for target in observed.targets:
        dumps = [each for each in observed.files if each.instance == target.instance and each.kind == "dump"]
        found = counters.find(
            run.raw.samples[target.instance],
            run.raw.manifest.sysctls.get(target.instance, {}),
            anew=any(each.anew for each in dumps),
            idle_percent=next((float(each.idle_percent) for each in dumps if each.idle_percent is not None), None),
            no_address=sum(each.no_address for each in dumps),
        )
        yield from (_finding(target.instance, each) for each in [*found, *_unlimited(dumps)])
        reduction = run.raw.reductions.get(target.instance)
        if reduction is not None and (seen is None or not _has_connections(seen, target.instance)):
            of = f" to {observed.server}" if observed.server else ""
            says = f"The capture has {format_count(reduction.packets or 0, 'packet')}, and no TCP connection{of}."
            if observed.server and (servers := captured_servers(reduction, _NAMED_MAX)):
                says += f" It has connections to {', '.join(servers)}."
            yield _finding(target.instance, Found("no-tcp", says))
        if seen is not None:
            samples = run.raw.samples[target.instance]
            ended = server_closes.find_endings(seen, target.instance, samples)
            yield from (_finding(target.instance, each) for each in [*_of_packets(seen, target.instance), *ended])


def _finding(instance: str, found: Found) -> Finding:
    return Finding(instance=instance, name=found.name, says=found.says, counters=dict(found.counters))


def _unlimited(dumps: list[EvidenceFile]) -> Iterator[Found]:
    for address, depth in {key: depth for each in dumps for key, depth in each.unlimited.items() if depth}.items():
        says = f"{depth:,} connections waited in the accept queue of {address}."
        says += " netstat does not tell its limit; `ss -ltn` does."
        yield Found("queue-of-unknown-limit", says, {"Recv-Q": depth})


def _has_connections(seen: Observation, instance: str) -> bool:
    return bool(seen.rows("SELECT 1 FROM flows WHERE observer = $o LIMIT 1", o=instance))


def _of_packets(seen: Observation, instance: str) -> Iterator[Found]:
    if stalls.has_twice(seen, instance):
        says = "The capture has most packets twice, as one of all interfaces of a host with a bridge or VLANs."
        says += " Copies of SYNs are left out; numbers of packets, of retransmissions and of bytes are too high."
        yield Found("doubled", says)
    for row in seen.rows(sql(__name__, "scans"), observer=instance):
        says = (
            f"{row['client']} scanned {row['server']}: {row['syns']:,} SYNs to {row['ports']:,} ports,"
            f" {row['refused']:,} refused, {row['synacks']:,} SYN-ACKs never completed. That is no full queue."
        )
        yield Found("scan", says, {name: row[name] for name in ("syns", "ports", "refused", "synacks")})
    one_sided = seen.row(sql(__name__, "one_sided"), observer=instance)
    if one_sided["connections"]:
        says = f"Of {format_count(one_sided['connections'], 'connection')}, the capture has one side's packets alone, "
        says += (
            f"{one_sided['of_client']:,} of these the client's: what the other side sent is not known. Capture where"
        )
        says += " both directions pass."
        yield Found("one-sided", says, one_sided)
    for row in seen.rows(sql(__name__, "open_questions"), observer=instance):
        count, server = format_count(row["connections"], "connection"), row["server"]
        if row["outcome"] == "never-accepted":
            says = f"{count} to {server} completed the handshake, and the server never had them."
        elif row["direction"] == "in":
            says = f"{count} to {server} got no answer to any SYN, though they came to this host: "
            says += "its kernel dropped them, or a filter did; `nstat -az` before and after would tell which."
        else:
            says = f"{count} to {server} got no answer to any SYN: dropped at the server or on the way;"
            says += " `nstat -az` there, before and after, would tell which."
        yield Found("unexplained", says, {"connections": row["connections"], "syns": row["syns"]})


def _connections(run: Run, seen: Observation) -> tuple[list[ReportedConnection], int | None, int | None]:
    found: list[tuple[tuple[int, int], ReportedConnection]] = []
    examined, of = 0, 0
    captured = [each for each, reduction in run.raw.reductions.items() if reduction.rows is not None]
    for instance in captured:
        stalled: dict[int, Stall] = {}
        looked = there = 0
        if not stalls.has_twice(seen, instance):
            stalled, looked, there = stalls.find_stalls(run.raw, seen, instance)
        examined, of = examined + looked, of + there
        ids = sorted(stalled)[:10_000]
        alerts = ["; ".join(stalled[each].alerts) for each in ids]
        asked = {"stalled": ids, "alerts": alerts, "long_us": _LONG_US, "alike": _ALIKE_MAX}
        rows = seen.rows(sql(__name__, "told"), observer=instance, **asked)
        for row in rows:
            parts = list(_parts(row, stalled.get(row["id"])))
            if not parts:
                continue
            told = ReportedConnection(
                instance=instance,
                also=None,
                client=row["client"],
                server=row["server"],
                outcome=row["outcome"],
                cause=row["cause"],
                says="; ".join(parts) + ".",
                more=row["more"],
            )
            found.append(((row["rank"], -max(row["longest_us"] or 0, _still_us(stalled.get(row["id"])))), told))
    found.sort(key=lambda each: each[0])
    told_of = _of_both_ends([told for _, told in found])[:_TOLD_MAX]
    return told_of, *((examined, of) if captured else (None, None))


def _of_both_ends(told: list[ReportedConnection]) -> list[ReportedConnection]:
    """Return connections once each, where the captures of both ends show the same: as the one that proves a cause."""
    found: dict[tuple[str, ...], ReportedConnection] = {}
    for each in told:
        key = (each.client, each.server, each.outcome, each.says)
        other = found.get(key)
        if other is None:
            found[key] = each
        elif other.instance != each.instance:
            best = each if each.cause is not None and other.cause is None else other
            also = other.instance if best is each else each.instance
            found[key] = best.model_copy(update={"also": also, "more": min(other.more, each.more)})
    return list(found.values())


def _still_us(stall: Stall | None) -> int:
    if stall is None:
        return 0
    return max([0, *(each.most_us for each in stall.resent), *(each.longest_us for each in stall.zero_windows)])


def _parts(row: Row, stall: Stall | None) -> Iterator[str]:
    """Yield what a connection's packets show, in the order in which it happened."""
    yield from _opening(row)
    yield from _waits(row)
    if stall is not None:
        yield from _stalls(stall)
    if row["outcome"] in _ENDS:
        yield _ENDS[row["outcome"]].format(row["closed_by"])


_ENDS: Final = {
    "half-open": "the client never completed the handshake",
    "reset": "a RST of the {} ended it",
    "closed-unanswered": "the server closed it without an answer",
    "given-up": "the client left before the server answered",
    "never-accepted": "the client completed the handshake, and the server's kernel dropped it",
}


def _opening(row: Row) -> Iterator[str]:
    syns = format_count(row["syn_count"], "SYN")
    lasted = f" within {_seconds(row['last_time_us'] - row['first_time_us'])}" if row["syn_count"] > 1 else ""
    if row["outcome"] == "refused":
        yield f"{syns} and {format_count(row['server_rst_count'], 'RST')}{lasted}: the server's host refused it"
    elif row["outcome"] in ("never-answered", "undecided"):
        yield f"{syns}{lasted}{_ladder(row['syn_times_us'])}, and no answer"
    elif row["syns_lost"]:
        after = f" after {_seconds(row['answered_us'] - row['first_time_us'])}" if row["answered_us"] else ""
        yield f"{format_count(row['syns_lost'], 'SYN')} got no answer, a later one did{after}"
    if row["synack_count"] > 1:
        yield f"the server sent its SYN-ACK {row['synack_count']:,} times"


def _ladder(times_us: Sequence[int]) -> str:
    """Return when a client sent its SYNs and, if Linux sent them, when connect() of one that sends no more ends.

    Linux waits twice as long after each SYN, from 1 s on, and ends after the last wait.
    """
    after_s = [(each - times_us[0]) / 1e6 for each in times_us[:_SYNS_MAX]]
    if len(times_us) < 3:  # noqa: PLR2004  two times are a span
        return ""
    more = ", …" if len(times_us) > len(after_s) else ""
    listed = f", at {', '.join(format_number(round(each, 1)) for each in after_s)}{more} s"
    pause_s, before_s = after_s[-1] - after_s[-2], after_s[-2] - after_s[-3]
    if more or len(times_us) < _LINUX_SYNS or not 1.8 < pause_s / max(before_s, 0.001) < 2.2:  # noqa: PLR2004  twice
        return listed
    ends_s = after_s[-1] + 2 * 2 ** round(math.log2(pause_s))
    return f"{listed} (if Linux sent these and sends no more, its connect() fails with ETIMEDOUT at {ends_s:.0f} s)"


# Whom a TLS handshake waited for, by the packets.
_TLS_WAITS: Final = {
    "server_hello_us": "TLS: the server's ServerHello came {} after the ClientHello",
    "client_reply_us": "TLS: the client's reply came {} after the ServerHello",
    "tls_end_us": "TLS: the server ended the handshake {} after the client's reply",
}


def _waits(row: Row) -> Iterator[str]:
    if row["handshake_us"] is not None and row["handshake_us"] >= _LONG_US and not row["syns_lost"]:
        slow_us = (row["answered_us"] or row["first_time_us"]) - row["first_time_us"]
        yield f"the SYN-ACK came after {_seconds(slow_us)}: the way, or the server's kernel"
    if row["first_data_us"] is not None and row["first_data_us"] >= _LONG_US:
        who = "the client sent nothing" if row["client_begins"] else "the server sent nothing"
        yield f"connected, {who} for {_seconds(row['first_data_us'])}"
    if row["server_hello_us"] is None and row["first_byte_us"] is not None and row["first_byte_us"] >= _LONG_US:
        yield f"the server's first data came {_seconds(row['first_byte_us'])} after the request"
    for name, says in _TLS_WAITS.items():
        if row[name] is not None and row[name] >= _LONG_US:
            yield says.format(_seconds(row[name]))


def _stalls(stall: Stall) -> Iterator[str]:
    for resent in stall.resent:
        span = _seconds(resent.most_us)
        if resent.least_us != resent.most_us:
            span = f"{_seconds(resent.least_us)} to {span}"
        yield f"the {resent.by} sent data again {format_count(resent.count, 'time')}, {span} after the first time"
    for each in stall.zero_windows:
        lasted = _seconds(each.longest_us)
        how = f"to the capture's end ({lasted})" if each.for_ever else f"for {lasted}"
        yield f"the {each.by}'s receive window was 0 {how}"
    yield from stall.alerts


def _seconds(microseconds: int) -> str:
    ms = microseconds / 1000
    return f"{format_number(round(ms, 1))} ms" if ms < 1000 else f"{format_number(ms / 1000)} s"  # noqa: PLR2004  a second


def _losses(run: Run, seen: Observation, observed: Observed) -> Iterator[Losses]:
    own = run.raw.manifest.addresses
    captured = [each.instance for each in observed.targets if each.instance in run.raw.captures]
    for client_end in captured:
        for server_end in captured:
            if client_end == server_end or not own.get(server_end):
                continue
            ends = {"client_end": client_end, "server_end": server_end}
            if not seen.row(sql(__name__, "is_on_the_way"), **ends)["towards"]:
                continue
            found = path_losses.find_losses(run.raw, seen, client_end, server_end)
            if found is not None:
                yield found


def _of_logs(observed: Observed, logs: list[Log]) -> Iterator[Finding]:
    """Yield what failures in logs say of a setting."""
    instances = {each.name: each.instance for each in observed.files}
    for log in logs:
        for failure, count in log.failures.items():
            if says := given_logs.SETTINGS.get(failure):
                text = f"{log.file} has {format_count(count, 'time')} '{failure}': {says}"
                yield _finding(instances[log.file], Found("limit-in-log", text, {"lines": count}))


def _read_log(run: Run, file: EvidenceFile) -> GivenLog:
    try:
        with open_regular(run.raw.places.role(file.instance, file.file or "")) as opened:
            return given_logs.read_log(file.kind, (line for _, line in lines_of(opened)))
    except OSError:
        return GivenLog()


def _log(run: Run, seen: Observation | None, file: EvidenceFile, observed: Observed) -> Log:
    found, zone_of = _read_log(run, file), None
    if file.kind == "nginx-error" and found.first_us is not None:
        # It has no zone; the access log of the same host has one.
        beside = [one for one in observed.files if one.kind == "nginx-access" and one.instance == file.instance]
        zones = {zone: one.name for one in beside if (zone := _read_log(run, one).zone_s) is not None}
        if len(zones) == 1 and (zone := next(iter(zones))):
            zone_of = zones[zone]
            found.first_us, found.last_us = (us and us - 1_000_000 * zone for us in (found.first_us, found.last_us))
    joined = None
    if found.clients and seen is not None:
        clients = [f"{address}:{port}" for address, port, _ in found.clients]
        joined = seen.execute(sql(__name__, "logged"), clients=clients).fetchall()[0][0]
    return Log(
        file=file.name,
        kind=file.kind,
        lines=found.lines,
        unread=found.unread,
        zone_of=zone_of,
        first=format_moment(found.first_us),
        last=format_moment(found.last_us),
        failures=dict(found.failures.most_common()),
        servers=[
            AtServer(server=server, failure=failure, lines=lines, connections=_by_packets(seen, failure, server))
            for (failure, server), lines in found.servers.most_common(_SERVERS_MAX)
        ],
        joined=joined,
    )


def _by_packets(seen: Observation | None, failure: str, server: str) -> int | None:
    """Return how many connections to a server ended so by packets; None where the log does not tell its address."""
    outcomes = given_logs.BY_PACKETS.get(failure)
    if seen is None or outcomes is None:
        return None
    row = seen.row(sql(__name__, "ended_as_logged"), server=server, outcomes=list(outcomes))
    return int(row["alike"]) if row["known"] else None
