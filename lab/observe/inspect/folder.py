"""Writes the folder of an observation: the captures, the dumps as a sampler's ticks, the logs, and the manifest."""

import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

from analysis.evidence import captures, samples
from analysis.evidence.flows import Reduction
from analysis.evidence.rawfiles import Places
from formats.manifest import EvidenceFile, Manifest, Observed, Program, Target
from lab import paths
from lab.observe.inspect.dumps import Snapshot
from lab.observe.inspect.files import Given, read_unpacked
from lab.observe.inspect.hosts import Host, serves
from lab.observe.known_servers import program_in
from lab.runs import machine
from lab.runs.run_folders import make_folder, unwritable

_SECOND_US = 1_000_000
_TITLE_MAX = 100
# A dump that says no time stands so far before the first packet, or behind the last one.
_APART_US = 200_000
# The one of TCP's counters that goes up and down.
_GAUGE = "Tcp.CurrEstab"


@dataclass(frozen=True)
class InspectOptions:
    """What the user says besides the files.

    Attributes:
        server: `address:port` of the one server that the account is to be about; None for all.
        connect_timeout_ms: how long its clients wait for a connection, if the user knows it.
    """

    server: str | None = None
    connect_timeout_ms: int | None = None

    @property
    def server_address(self) -> str | None:
        """Return the server's address alone."""
        return self.server.rpartition(":")[0].strip("[]") if self.server else None


def write_folder(hosts: list[Host], scratch: Path, name: str, options: InspectOptions, command: Sequence[str]) -> Path:
    """Write the folder of an observation, and return it.

    Raises:
        LabError: it cannot be written.
    """
    parent = paths.RESULTS / f"inspected-{name}"
    try:
        parent.mkdir(parents=True, exist_ok=True)
        folder = make_folder(parent, "default-r01")
        places = Places(folder)
        for host in hosts:
            _write_host(host, scratch, places)
        record = _manifest(hosts, folder, options, command)
        record.save(folder)
    except OSError as error:
        raise unwritable(error, parent) from None
    return folder


def _write_host(host: Host, scratch: Path, places: Places) -> None:
    places.collector(host.instance).mkdir(parents=True)
    places.role(host.instance).mkdir()
    if host.reduction is not None:
        capture = places.collector(host.instance, "capture.pcap")
        _captured, received, dropped = host.tcpdump or (None, None, None)
        shutil.move(scratch / host.instance / "capture.pcap", capture)
        report = {
            "schema": captures.SCHEMA,
            "mode": "handshakes" if host.vantage.handshakes_only else "headers",
            "interface": "unknown",
            "filter": "unknown",
            "snaplen": 1 << 18,
            "started_us": host.reduction.first_us,
            "ended_us": host.reduction.last_us or 0,
            "packets_captured": host.reduction.packets,
            "packets_received": received,
            "packets_dropped_by_kernel": dropped,
            "bytes": capture.stat().st_size,
            "cpu_ms": 0,
            "truncated": False,
            "reason": captures.ELSEWHERE,
        }
        places.collector(host.instance, "capture.json").write_text(json.dumps(report) + "\n")
    _write_samples(host, places.collector(host.instance, "samples.jsonl"))
    for log in host.logs:
        with places.role(host.instance, _log_name(log, host)).open("wb") as out:
            out.writelines(read_unpacked(log.path))


def _log_name(log: Given, host: Host) -> str:
    return f"{log.kind}-{host.logs.index(log) + 1}.log"


def _write_samples(host: Host, path: Path) -> None:
    """Write the dumps as a sampler's ticks; each has all that its dump has."""
    series = _order_snapshots(host.snapshots, host.reduction)
    if not series:
        return
    first_us = series[0].time_us or 0
    header = {"kind": "header", "schema": samples.SCHEMA, "role": host.instance, "rate_hz": 1, "time_us": first_us,
              "kernel": "unknown", "hz": 100, "page_bytes": 4096, "cpus": 1}  # fmt: skip
    lines: list[dict[str, object]] = [header]
    for each in series:
        time_us = each.time_us or 0
        # Dumps have no monotonic clock: it runs with the wall clock, which nobody sets between them.
        mono_us = time_us - first_us + _SECOND_US
        listen = [
            {"address": one.address, "port": one.port, "depth": one.depth, "limit": one.limit, "drops": one.drops}
            for one in each.listeners
            if one.limit is not None
        ]
        unix = [asdict(one) for one in each.unix]
        lines.append({"kind": "tick", "time_us": time_us, "mono_us": mono_us, "late_us": 0, "full": True,
                      "counters": each.counters, "listen": listen, "unix": unix, "cost_us": 0})  # fmt: skip
        lines += _sockets(each, time_us)
    lines.append({"kind": "end", "reason": "signal", "time_us": series[-1].time_us, "ticks": len(series),
                  "late_ticks": 0, "gaps": 0, "late_us_max": 0, "cpu_ms": 0})  # fmt: skip
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def _time(snapshot: Snapshot) -> int:
    return snapshot.time_us or 0


def _order_snapshots(snapshots: Sequence[Snapshot], capture: Reduction | None) -> list[Snapshot]:
    """Return a host's snapshots in the order of their times; those that tell none, in the order given.

    Beside a capture, a dump without a time bounds what happened only as the first or as the last: the counters of one
    in between are left out, as nobody knows which packets came before it.
    """
    # Those that tell their time may have been given in any order.
    told = iter(sorted((each for each in snapshots if each.time_us is not None), key=_time))
    series = _in_order([each if each.time_us is None else next(told) for each in snapshots])
    if any(each.anew for each in series) or _are_counted_anew(series):
        series = list(_summed(series))
    start_us, end_us = (capture.first_us, capture.last_us) if capture else (None, None)
    known = [each.time_us for each in series if each.time_us is not None]
    before_us = min([*known, *([] if start_us is None else [start_us]), *([] if known or start_us else [_SECOND_US])])
    after_us = max([*known, *([] if end_us is None else [end_us]), before_us])
    counted = [each for each in series if each.counters]
    for number, each in enumerate(series):
        if each.time_us is not None:
            continue
        is_first = bool(counted) and len(series) > 1 and each is counted[0]
        is_last = bool(counted) and each is counted[-1]
        if is_first and not any(earlier.time_us is not None for earlier in series[:number]):
            each.time_us = max(before_us - _APART_US, 0)
        elif is_last and not any(later.time_us is not None for later in series[number + 1 :]):
            each.time_us = after_us + _APART_US
        else:
            each.time_us = max([before_us, *(_time(earlier) for earlier in series[:number])])
            each.counters = each.counters if capture is None else {}
    ordered = sorted(series, key=_time)
    for earlier, later in pairwise(ordered):
        # Two of one second were made one after the other.
        later.time_us = max(_time(later), _time(earlier) + 1)
    return ordered


def _in_order(series: list[Snapshot]) -> list[Snapshot]:
    """Return two dumps without a time that were given the wrong way round, in their order.

    Then no counter is higher in the later one, and most are nearly as high. What has grown since a former call is
    lower by far.
    """
    counted = [each for each in series if each.counters]
    if len(counted) != 2 or any(each.time_us is not None or each.anew for each in counted):  # noqa: PLR2004  a pair
        return series
    pairs = [
        (value, counted[1].counters[name])
        for name, value in counted[0].counters.items()
        if name in counted[1].counters and name.startswith(("Tcp.", "TcpExt.")) and name != _GAUGE and value > 0
    ]
    if not pairs or any(later > earlier for earlier, later in pairs):
        return series
    nearly = sum(2 * later >= earlier for earlier, later in pairs)
    falls = any(later < earlier for earlier, later in pairs)
    return series[::-1] if falls and 2 * nearly > len(pairs) else series


def _are_counted_anew(snapshots: list[Snapshot]) -> bool:
    """Return whether a series has what has grown at each time, and not what was counted in all.

    Counters only grow: one that is lower later was counted anew.
    """
    return any(
        later.counters[name] < value
        for earlier, later in pairwise(each for each in snapshots if each.counters)
        for name, value in earlier.counters.items()
        if name in later.counters and name.startswith(("Tcp.", "TcpExt.")) and name != _GAUGE
    )


def _summed(snapshots: list[Snapshot]) -> Iterator[Snapshot]:
    """Yield the snapshots with counters that grow from 0, out of those that say how much each grew."""
    total: dict[str, int] = {}
    for each in snapshots:
        total = {**total, **{name: total.get(name, 0) + value for name, value in each.counters.items()}}
        each.counters = {name: total[name] for name in each.counters}
        yield each


def _sockets(snapshot: Snapshot, time_us: int) -> list[dict[str, object]]:
    ports = {each.port for each in snapshot.listeners}
    groups: dict[tuple[str, str, int, str, str], int] = {}
    for (state, local, port, remote, remote_port), count in snapshot.states.items():
        # Without its listeners a dump does not say which end is the server: its port is the lower one.
        serves = port in ports if ports else port < remote_port
        key = (state, "server" if serves else "client", port if serves else remote_port, local, remote)
        groups[key] = groups.get(key, 0) + count
    found: list[dict[str, object]] = []
    for kind in ("sockets", "time_wait"):
        rows = [
            {"state": state, "side": side, "port": port, "local": local, "peer": peer, "count": count}
            for (state, side, port, local, peer), count in groups.items()
            if (state == "TIME_WAIT") is (kind == "time_wait")
        ]
        if rows:
            found.append({"kind": kind, "time_us": time_us, "groups": rows, "cost_us": 0})
    return found


def _manifest(hosts: list[Host], folder: Path, options: InspectOptions, command: Sequence[str]) -> Manifest:
    first = hosts[0]
    modes = {each.vantage.handshakes_only for each in hosts if each.captures}
    names = ", ".join(each.shown for host in hosts for each in host.files)
    observed = Observed(
        targets=[_target(each, peer=any(map(serves, hosts)) and not serves(each)) for each in hosts],
        files=[_file(each, host) for host in hosts for each in host.files],
        server=options.server,
        capture="off" if not modes else "handshakes" if modes == {True} else "headers",
        connect_timeout_ms=options.connect_timeout_ms,
    )
    title = f"Inspected: {names if len(names) < _TITLE_MAX else f'{first.files[0].shown} and others'}"
    record = Manifest.of_observation(folder, title, observed, command)
    record.git, record.lab = machine.git_state(), machine.lab_version()
    record.addresses = {each.instance: list(each.vantage.own) for each in hosts}
    record.nodes = {each.instance: each.instance for each in hosts} if len(hosts) > 1 else {}
    record.sysctls = {
        each.instance: {name: value for one in each.snapshots for name, value in one.sysctls.items()} for each in hosts
    }
    record.finish("complete")
    return record


def _target(host: Host, *, peer: bool) -> Target:
    return Target(
        instance=host.instance,
        kind="files",
        name=", ".join(each.shown for each in host.files)[:200],
        program=_program(host),
        peer=peer,
    )


def _program(host: Host) -> Program | None:
    """Return the program of the listener that is full, or else the one that all listeners have."""
    listeners = [one for each in host.snapshots for one in each.listeners if one.program]
    full = [one for one in listeners if one.limit is not None and one.depth > one.limit]
    names = {one.program or "" for one in full or listeners}
    found = [program_in(each) for each in sorted(names)]
    return found[0] if len(found) == 1 else next(filter(None, found), None) if full else None


def _file(given: Given, host: Host) -> EvidenceFile:
    snapshots = given.snapshots
    return EvidenceFile(
        name=given.shown,
        kind=given.kind,
        instance=host.instance,
        file=_log_name(given, host) if given in host.logs else None,
        timed=all(each.time_us is not None for each in snapshots),
        anew=any(each.anew for each in snapshots),
        idle_percent=next((each.idle_percent for each in snapshots if each.idle_percent is not None), None),
        no_address=sum(each.no_address for each in snapshots),
        unlimited={
            f"{one.address}:{one.port}": one.depth for each in snapshots for one in each.listeners if one.limit is None
        },
    )
