"""The hosts that files of evidence are of: each has a capture, dumps and logs, and addresses by its connections."""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from analysis.database import literal, over_files
from analysis.evidence import flows
from analysis.evidence.flows import FlowsError, Reduction
from lab import paths
from lab.errors import BadInput, LabError, Problem
from lab.observe.inspect.dumps import Snapshot
from lab.observe.inspect.files import Given, read_unpacked, slug

# A host of several addresses has each of them in many connections, with several peers.
_ADDRESSES_MAX = 3
_CONNECTIONS_MIN = 10
# One end is nearer if its packets come so many times as soon.
_CLEARLY = 3


@dataclass(frozen=True, slots=True)
class Vantage:
    """What the connections of a capture say of its place.

    Attributes:
        own: the addresses of its host; none where nothing tells, as at a switch.
        handshakes_only: whether it was made of SYN, FIN and RST alone.
        pair: client and server, where it has no others.
        answer_us: how long the SYN-ACK took at the least, where it has one pair alone.
    """

    own: tuple[str, ...] = ()
    handshakes_only: bool = False
    pair: tuple[str, str] | None = None
    answer_us: float | None = None


_NOWHERE = Vantage()


@dataclass
class Host:
    """One host: its capture, dumps and logs."""

    instance: str
    captures: list[Given] = field(default_factory=list)
    dumps: list[Given] = field(default_factory=list)
    logs: list[Given] = field(default_factory=list)
    reduction: Reduction | None = None
    vantage: Vantage = _NOWHERE

    @property
    def files(self) -> list[Given]:
        """Return all of its files."""
        return [*self.captures, *self.dumps, *self.logs]

    @property
    def snapshots(self) -> list[Snapshot]:
        """Return what its dumps tell, in the order in which they were given."""
        return [each for one in self.dumps for each in one.snapshots]

    @property
    def tcpdump(self) -> tuple[int, int, int] | None:
        """Return what tcpdump printed when it ended its capture: that of a capture has as many packets as it has."""
        packets = self.reduction.packets if self.reduction else None
        return next((each.tcpdump for each in self.dumps if each.tcpdump and each.tcpdump[0] == packets), None)

    @property
    def sockets(self) -> set[str]:
        """Return the addresses that its dumps have as its own."""
        found = {local for each in self.snapshots for _state, local, *_rest in each.states}
        found |= {one.address for each in self.snapshots for one in each.listeners}
        return {each for each in found if each not in ("*", "0.0.0.0", "::", "127.0.0.1", "::1")}  # noqa: S104  no bind


def group_files(given: Sequence[Given]) -> list[Host]:
    """Put the files of each host together: a capture with those that go on from it, and what lies in its folder."""
    hosts: list[Host] = []
    for one in (each for each in given if each.kind == "capture"):
        before = next((each for each in hosts if _goes_on(each.captures[-1], one)), None)
        if before is not None:
            before.captures.append(one)
        else:
            stem = one.group or one.path.name.removesuffix(".gz").rpartition(".")[0] or one.path.name
            hosts.append(Host(slug(stem, [each.instance for each in hosts]), [one]))
    for one in (each for each in given if each.kind != "capture"):
        near = [each for each in hosts if one.group and each.files[0].group == one.group]
        host = near[0] if near else next((each for each in hosts if not each.captures and not one.group), None)
        if host is None:
            name = one.group or (one.path.stem if one.kind == "dump" else one.path.name)
            host = Host(slug(name, [each.instance for each in hosts]))
            hosts.append(host)
        (host.dumps if one.kind == "dump" else host.logs).append(one)
    return hosts


# tcpdump -C adds a number behind the name; dumpcap, and tcpdump with -w x_%Y…, put one or a time before the ending.
_PART = re.compile(r"(?P<stem>.*?)(?:_(?P<before>\d{1,5})_\d{14})?(?P<ending>\.[a-z]+)?(?P<behind>\d{1,5})?(?:\.gz)?")


def _goes_on(last: Given, one: Given) -> bool:
    """Return whether a capture is the next file of a rotated one, by its name."""
    a, b = _PART.fullmatch(last.path.name), _PART.fullmatch(one.path.name)
    if a is None or b is None or last.path.parent != one.path.parent:
        return False
    if a.group("stem", "ending") != b.group("stem", "ending") or not (b["before"] or b["behind"]):
        return False
    numbers = [int(each["before"] or each["behind"] or 0) for each in (a, b)]
    return numbers[1] == numbers[0] + 1


def reduce_captures(hosts: Iterable[Host], scratch: Path, server: str | None) -> None:
    """Copy each host's capture into a folder of its own, and reduce it once: it must be one."""
    problems = []
    if any(host.captures for host in hosts):
        try:
            flows.require()
        except FlowsError as error:
            raise LabError(str(error)) from None
    for host in (each for each in hosts if each.captures):
        folder = scratch / host.instance
        folder.mkdir()
        try:
            _copy(host.captures, folder / "capture.pcap")
        except OSError as error:
            raise LabError(f"{paths.shown(host.captures[0].path)}: {error.strerror}") from None
        found = flows.reduce_capture(folder, folder / "flows.parquet")
        if found.rows is None:
            why = "; ".join(map(flows.unnamed, found.losses)) or "nothing could be read"
            problems.append(Problem(why, paths.shown(host.captures[0].path)))
            continue
        host.reduction = found
        host.vantage = _find_vantage(found.rows, (), server)
    if problems:
        raise BadInput(problems)
    captured = [each for each in hosts if each.captures]
    for host, vantage in zip(captured, _compare_vantages([each.vantage for each in captured]), strict=True):
        host.vantage = vantage


_PCAP_HEADER = 24


def _copy(parts: Sequence[Given], target: Path) -> None:
    """Copy a capture, with those that go on from it: sections of pcapng, or records below one header of pcap."""
    with target.open("xb") as out:
        first = b""
        for number, part in enumerate(parts):
            begun = False
            for block in read_unpacked(part.path):
                if not begun and number and not block.startswith(b"\x0a\x0d\x0d\x0a"):
                    if block[:_PCAP_HEADER] != first:
                        what = "does not go on from the file before it: its format or link type differs"
                        raise BadInput(Problem(what, paths.shown(part.path), "name captures of several places apart"))
                    block = block[_PCAP_HEADER:]  # noqa: PLW2901  its own header is the first file's
                if not begun and not number:
                    first = block[:_PCAP_HEADER]
                begun = True
                out.write(block)


def join_dumps(hosts: list[Host]) -> list[Host]:
    """Give dumps and logs that lie with no capture to the host that they are of."""
    captured = [each for each in hosts if each.captures]
    found = list(captured)
    for loose in (each for each in hosts if not each.captures):
        same = [each for each in captured if loose.sockets & set(each.vantage.own)]
        servers = [each for each in captured if serves(each)]
        host = next(iter([*same, *servers, *captured[:1]]), None)
        if host is None or (loose.files[0].group and not same):
            found.append(loose)
            continue
        host.dumps += loose.dumps
        host.logs += loose.logs
    for host in found:
        if host.reduction and host.reduction.rows and host.dumps:
            host.vantage = _told_by_dumps(host, host.reduction.rows)
    return found


def _told_by_dumps(host: Host, rows: Path) -> Vantage:
    """Return where a capture was made whose host has dumps, too: counters beside a capture are of the server."""
    found = _find_vantage(rows, host.sockets, None) if host.sockets else host.vantage
    if found.own or found.pair is None:
        return found if found.own else host.vantage
    return replace(found, own=(found.pair[1],))


def serves(host: Host) -> bool:
    """Return whether connections came to a host, by its capture."""
    if host.reduction is None or host.reduction.rows is None:
        return False
    with over_files() as database:
        query = "SELECT DISTINCT server_address FROM read_parquet($path, hive_partitioning = false)"
        rows = database.execute(query, {"path": literal(host.reduction.rows)}).fetchall()
    return any(address in host.vantage.own for (address,) in rows)


def order_hosts(hosts: list[Host]) -> list[Host]:
    """Put servers first: all times are put on the clock of the first host."""
    return sorted(hosts, key=lambda each: not serves(each))


# All packets of a connection are SYN, FIN or RST, and some connection closed: then the capture kept no others.
_HANDSHAKES = """
SELECT count(*) FILTER (client_fin_time_us IS NOT NULL AND answered) > 0
       AND bool_and(client_payload_bytes = 0 AND server_payload_bytes = 0
                    AND client_packets <= syn_count + client_rst_count + if(client_fin_time_us IS NULL, 0, 2)
                    AND server_packets <= synack_count + server_rst_count + if(server_fin_time_us IS NULL, 0, 2))
  FROM read_parquet($path, hive_partitioning = false)
"""
_ENDS = """
SELECT client_address, server_address, count(*),
       median(synack_times_us[1] - syn_times_us[1]) FILTER (syn_count = 1 AND answered),
       median(handshake_ack_time_us - synack_times_us[1]) FILTER (synack_count = 1 AND established)
  FROM read_parquet($path, hive_partitioning = false) WHERE NOT client_inferred GROUP BY ALL ORDER BY ALL
"""


def _find_vantage(rows: Path, sockets: Collection[str], server: str | None) -> Vantage:
    """Return where a capture was made.

    Args:
        rows: its connections, as `flows` wrote them.
        sockets: addresses that dumps of the same host have as its own.
        server: the address of the server that the user named, None if none was named.
    """
    path = {"path": literal(rows)}
    with over_files() as database:
        (only,) = database.execute(_HANDSHAKES, path).fetchone() or (False,)
        pairs = database.execute(_ENDS, path).fetchall()
    alone = len(pairs) == 1
    answer_us = pairs[0][3] if alone else None
    return Vantage(_own(pairs, sockets, server), bool(only), pairs[0][:2] if alone else None, answer_us)


_Pair = tuple[str, str, int, float | None, float | None]


def _own(pairs: list[_Pair], sockets: Collection[str], server: str | None) -> tuple[str, ...]:
    seen = {address for client, to, *_ in pairs for address in (client, to)}
    if known := seen & set(sockets):
        return tuple(sorted(known))
    if not pairs:
        return (server,) if server is not None else ()
    common = set.intersection(*({client, to} for client, to, *_ in pairs))
    if len(common) == 1:
        return tuple(common)
    if len(common) > 1:
        return _near(pairs, server)
    return _cover(pairs)


def _near(pairs: list[_Pair], server: str | None) -> tuple[str, ...]:
    """Return the end of a single pair of hosts that is clearly nearer: its answers come at once."""
    client, to, _, answer_us, ack_us = pairs[0]
    if answer_us is not None and ack_us is not None:
        if answer_us * _CLEARLY <= ack_us:
            return (to,)
        if ack_us * _CLEARLY <= answer_us:
            return (client,)
    return (server,) if server is not None and server in {client, to} else ()


def _compare_vantages(found: Sequence[Vantage]) -> list[Vantage]:
    """Return the places of captures that have one pair of hosts alone, the same: a SYN-ACK is soonest at its server."""
    told = [each for each in found if each.pair is not None and each.answer_us is not None]
    placed = list(found)
    for number, each in enumerate(found):
        others = [other.answer_us or 0 for other in told if other.pair == each.pair and other is not each]
        if each.pair is None or each.answer_us is None or not others or each.answer_us in others:
            continue
        at_server = each.answer_us < min(others)
        placed[number] = replace(each, own=(each.pair[1 if at_server else 0],))
    return placed


def _cover(pairs: list[_Pair]) -> tuple[str, ...]:
    """Return a few addresses of which each connection has one, as those of a proxy; none if there are no such."""
    left = list(pairs)
    found: list[str] = []
    while left and len(found) < _ADDRESSES_MAX:
        peers: dict[str, set[str]] = {}
        counts: dict[str, int] = {}
        for client, to, count, *_ in left:
            for own, other in ((client, to), (to, client)):
                peers.setdefault(own, set()).add(other)
                counts[own] = counts.get(own, 0) + count
        best = max(sorted(counts), key=lambda each: (len(peers[each]), counts[each]))
        if counts[best] < _CONNECTIONS_MIN or len(peers[best]) < 2:  # noqa: PLR2004  two peers make a host
            return ()
        found.append(best)
        left = [each for each in left if best not in each[:2]]
    return () if left else tuple(sorted(found))
