"""The hosts that files of evidence are of: each has a capture, dumps and logs."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from analysis.database import literal, over_files
from analysis.evidence import flows
from analysis.evidence.flows import FlowsError, Reduction
from lab import paths
from lab.errors import BadInput, LabError, Problem
from lab.observe.inspect.dumps import Snapshot
from lab.observe.inspect.files import Given, read_unpacked, slug
from lab.observe.inspect.vantage import Vantage, compare_vantages, find_vantage

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
        host.vantage = find_vantage(found.rows, (), server)
    if problems:
        raise BadInput(problems)
    captured = [each for each in hosts if each.captures]
    for host, vantage in zip(captured, compare_vantages([each.vantage for each in captured]), strict=True):
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
    found = find_vantage(rows, host.sockets, None) if host.sockets else host.vantage
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
