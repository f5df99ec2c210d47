"""What an observation found, for the terminal."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from analysis.diagnosis.causes import cause_named
from analysis.formatting import format_count, format_ms
from analysis.verdicts import derived
from analysis.verdicts.connections_file import Connections
from formats import manifest
from lab import paths
from lab.errors import LabError

# An outcome whose name says too little.
_WORDS = {
    "earlier": "earlier (begun before the capture)",
    "one-sided": "one-sided (of the other side, the capture has no answer)",
}
# A capture at a client may have thousands of servers, and a host hundreds of listeners.
_SERVERS_MAX = 30


def read_connections(folder: Path) -> dict[str, Any]:
    """Return derived/connections.json of a run.

    Raises:
        LabError: it cannot be read.
    """
    try:
        found = derived.read(folder, Connections)
    except derived.DerivedError as error:
        raise LabError(str(error)) from None
    return found.model_dump(mode="json", by_alias=True)


def was_observed(folder: Path) -> bool:
    """Return whether a run is of a system that the lab only watched."""
    try:
        return manifest.load_manifest(folder).observed is not None
    except manifest.ManifestError:
        return False


def ended_early(folder: Path) -> bool:
    """Return whether a target of an observation ended while it was observed."""
    observed = manifest.load_manifest(folder).observed
    return observed is not None and any(each.ended for each in observed.targets)


def connection_lines(account: Mapping[str, Any], folder: Path) -> Iterator[str]:
    """Write an account for a reader."""
    for target in account["targets"]:
        yield from _target(target)
    for each in account["failed"]:
        yield from _failed(each)
    if account.get("inspection"):
        yield from _inspection(account["inspection"])
    for each in account["crossings"]:
        yield (
            f"From {each['peer']} to {each['target']}: {format_count(each['both'], 'connection')} seen at both ends,"
            f" {each['peer_only']:,} at the client's alone; {format_count(each['syns_lost_between'], 'SYN')} lost"
            " between."
        )
    if account["advice"]:
        yield ""
        yield from advice_lines(account)
    for lack in account["lacks"]:
        yield f"! {lack}"
    yield ""
    yield f"Report: {paths.shown(folder / 'report.html')}"


def advice_lines(account: Mapping[str, Any]) -> Iterator[str]:
    """Write what to change, for a reader."""
    if not account["advice"]:
        yield from _without_advice(account)
    for each in account["advice"]:
        yield f"What to change at {each['server']}"
        yield from (f"  {sentence}" for sentence in each["says"])
        if each["source"]:
            yield f"  Source: {each['source']}"


_OF_QUEUES = ("full-accept-queue", "accept-queue-overflows")


def _without_advice(account: Mapping[str, Any]) -> Iterator[str]:
    """Say why there is nothing to change: that no queue overflowed takes counters."""
    targets = [each for each in account["targets"] if not each["peer"]]
    counted = {each["name"]: each["kernel"]["TcpExt.ListenOverflows"] for each in targets}
    findings = (account.get("inspection") or {}).get("findings", [])
    if proved := [each["says"] for each in findings if each["name"] in _OF_QUEUES]:
        yield from proved
        yield "How long a queue would have been enough takes packets, and `nstat -az` before and after."
    elif not counted or None in counted.values():
        yield "Nothing here shows a full accept queue; whether one overflowed, `nstat -az` before and after would tell."
    elif any(counted.values()):
        for name, overflows in counted.items():
            if overflows:
                yield f"{name}: {format_count(overflows, 'overflow')}, and nothing proves of which listener."
    else:
        between = " between the first dump and the last" if any(each["kind"] == "files" for each in targets) else ""
        yield f"No accept queue overflowed{between}."


def _target(target: Mapping[str, Any]) -> Iterator[str]:
    program = f" ({target['program']})" if target["program"] else ""
    yield f"{target['name']}{program}{', a peer' if target['peer'] else ''}"
    listeners = target["listeners"]
    if target["kind"] == "files" and len(listeners) > _SERVERS_MAX:
        listeners = sorted(listeners, key=lambda each: -each["depth_max"])[:_SERVERS_MAX]
    for each in listeners:
        yield (
            f"  listens on {each['port']}: queue at most {each['depth_max']:,} of {each['limit']:,}, full"
            f" {each['full_percent']:g} % of the {'dumps' if target['kind'] == 'files' else 'time'}, {_drops(each)}"
        )
    if len(listeners) < len(target["listeners"]):
        yield f"  {len(target['listeners']) - len(listeners):,} listeners more are on the page"
    servers = target["servers"]
    if target["kind"] == "files":
        servers = sorted(servers, key=lambda each: -each["connections"])[:_SERVERS_MAX]
    for each in servers:
        yield f"  {each['server']}: {_connections(each['connections'], each['outcomes'])}"
        yield from _times(each)
        for cause, count in each["causes"].items():
            named = f" ({cause})" if cause_named(cause).label != cause else ""
            yield f"    {count:,}: {cause_named(cause).label}{named}"
    if target["kind"] == "files":
        if len(servers) < len(target["servers"]):
            yield f"  {len(target['servers']) - len(servers):,} servers more are on the page"
        if len(servers) > 1:
            outcomes = sum((Counter(each["outcomes"]) for each in target["servers"]), Counter[str]())
            yield f"  in all {_connections(outcomes.total(), outcomes)}"
        return
    cost = target["cost"]
    sampler = "unknown" if cost["sampler_percent"] is None else f"{cost['sampler_percent']:g} %"
    capture = "" if cost["capture_percent"] is None else f", the capture {cost['capture_percent']:g} %"
    yield f"  the sampler took {sampler} of a processor{capture}"


def _connections(count: int, outcomes: Mapping[str, int]) -> str:
    named = (f"{each:,} {_WORDS.get(name, name)}" for name, each in outcomes.items())
    return f"{format_count(count, 'connection')}: {', '.join(named)}"


def _times(server: Mapping[str, Any]) -> Iterator[str]:
    """Write how long the parts of a server's connections took, where the capture has their handshakes."""
    if not server["lasted_us"]["count"]:
        return
    parts = {
        "handshake_us": "handshake {}", "tls_us": "TLS {}", "first_byte_us": "first byte {} after the request",
        "lasted_us": "{} in all",
    }  # fmt: skip
    medians = ((says, server[key]["p50"]) for key, says in parts.items())
    # A server that speaks first answers nothing.
    took = [says.format(format_ms(us / 1000)) for says, us in medians if us is not None and us >= 0]
    yield f"    {', '.join(took)}{' (medians)' if server['lasted_us']['count'] > 1 else ''}"


def _drops(listener: Mapping[str, Any]) -> str:
    drops = "drops unknown" if listener["drops"] is None else format_count(listener["drops"], "drop")
    if listener["overflows"] is None:
        return drops
    return f"{drops}, {format_count(listener['overflows'], 'overflow')} of these proved"


def _inspection(found: Mapping[str, Any]) -> Iterator[str]:
    """Write what files from elsewhere prove."""
    if found["findings"]:
        yield ""
        yield "What the files prove"
        yield from (f"  {each['instance']}: {each['says']}" for each in found["findings"])
    elif any(each["kind"] == "dump" for each in found["files"]):
        yield ""
        yield "Nothing in the dumps shows a failure or a full queue."
    yield from _one_by_one(found["connections"])
    if found["stalls_of"] and found["stalls_examined"] < found["stalls_of"]:
        of = format_count(found["stalls_of"], "connection")
        yield f"  Looked at packet by packet: {found['stalls_examined']:,} of {of} with data."
    for each in found["losses"]:
        yield ""
        yield (
            f"From {each['client_end']} to {each['server_end']}: {format_count(each['both'], 'connection')} in both"
            f" captures, {format_count(each['packets'], 'packet')} sent and never seen at the other end"
        )
        for lost in each["named"]:
            packet = f"the {lost['sent_by']}'s packet {lost['number']}, {lost['what']}, at {lost['time']}"
            yield f"  {lost['connection']}: {packet}"
    for each in found["logs"]:
        yield from _log(each)
    if found["record_next"]:
        yield ""
        yield "What to record next time"
        yield from (f"  {each}" for each in found["record_next"])


def _one_by_one(connections: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Write some connections, each with what its packets show."""
    if not connections:
        return
    yield ""
    yield "Connections, one by one (of those alike, the ones that waited longest)"
    several = len({each["instance"] for each in connections}) > 1
    for each in connections:
        cause = f", {each['cause']}" if each["cause"] and each["cause"] != "unexplained" else ""
        of = f"{each['instance']}: " if several else ""
        if each["also"]:
            of = f"{each['instance']} and {each['also']}: "
        yield f"  {of}{each['client']} → {each['server']} ({each['outcome']}{cause}): {each['says']}"
        if each["more"]:
            yield f"    {each['more']:,} more like it"


def _log(log: Mapping[str, Any]) -> Iterator[str]:
    yield ""
    span = f", {log['first']} to {log['last']}" if log["first"] else ""
    span += f" in the zone of {log['zone_of']}" if log["zone_of"] else ""
    yield f"{log['file']} ({log['kind']}): {format_count(log['lines'], 'line')}{span}"
    yield from (f"  {count:,}: {failure}" for failure, count in log["failures"].items())
    for each in log["servers"]:
        packets = "" if each["connections"] is None else f"; by packets {each['connections']:,}"
        yield f"  at {each['server']}: {each['lines']:,} {each['failure']}{packets}"
    if log["joined"] is not None:
        yield f"  {log['joined']:,} lines have their client's connection in a capture"


def _failed(each: Mapping[str, Any]) -> Iterator[str]:
    yield ""
    yield f"Behind {format_count(each['overflows'], 'overflow')} of {each['server']}"
    if each["failed"] is not None:
        yield (
            f"  by packets: {format_count(each['failed'], 'connection')} failed: {each['never_answered']:,} got no"
            f" answer to any SYN, {each['never_accepted']:,} whose clients believed that they were connected"
        )
        yield (
            f"  {each['given_up']:,} more got a connection and gave up before the server answered;"
            f" {each['recovered']:,} got in on a later SYN"
        )
    if each["most"] is None:
        yield f"  by the estimator: unknown; {each['rests_on']}"
    else:
        bounds = f"{each['least']:,} to {each['most']:,}" if each["least"] != each["most"] else f"{each['most']:,}"
        yield f"  by the estimator: {bounds} failed if none got in on a later SYN, at most {each['most']:,}; it knows"
        yield f"  {each['rests_on']}"
