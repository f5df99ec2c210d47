"""Evidence that an engineer on call sees of a run: texts out of its raw files, each with the minutes that it costs."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any

from analysis.evidence.jsonl import JsonLines
from analysis.evidence.rawfiles import FOLDER
from analysis.formatting import format_count, format_knob
from formats.manifest import ManifestError, load_manifest
from formats.role import TRAFFIC_PORT
from formats.safe_files import read_regular
from lab.roles.declared_roles import ROLES

_ERRORS = {1050: "no answer in time", 1211: "connect timeout", 1212: "connection refused", 1220: "connection reset"}
_STATUS = 1000
_SECONDS_SHOWN = 12
_LOG_LINES = 6
_ACCESS = (
    *("status", "request_time", "upstream_status", "upstream_connect_time"),
    *("queue_ms", "connect_ms", "response_ms", "termination"),
)
# What a proxy writes when it starts and when it ends; the incident has no part in it.
_NO_ERROR = re.compile(r"\[(notice|NOTICE)\]|Proxy \w+ stopped")
# What a server's kernel adds to the limits of its program.
_SYSCTLS = ("net.core.somaxconn", "net.ipv4.tcp_max_syn_backlog", "net.ipv4.tcp_syncookies")
_US = 1_000_000

# How netstat of net-tools words the counters that it has words for; others it prints by their name.
_NETSTAT = {
    "Tcp": {
        "ActiveOpens": "{} active connection openings",
        "PassiveOpens": "{} passive connection openings",
        "AttemptFails": "{} failed connection attempts",
        "EstabResets": "{} connection resets received",
        "RetransSegs": "{} segments retransmitted",
    },
    "TcpExt": {
        "SyncookiesSent": "{} SYN cookies sent",
        "TW": "{} TCP sockets finished time wait in fast timer",
        "ListenOverflows": "{} times the listen queue of a socket overflowed",
        "ListenDrops": "{} SYNs to LISTEN sockets dropped",
        "TCPReqQFullDrop": "TCPReqQFullDrop: {}",
        "TCPTimeWaitOverflow": "TCPTimeWaitOverflow: {}",
        "TCPSynRetrans": "TCPSynRetrans: {}",
        "TCPTimeouts": "TCPTimeouts: {}",
    },
}


@dataclass(frozen=True)
class SeenRun:
    """A run's raw files, limited to what an engineer on call could see."""

    folder: Path
    path: tuple[str, ...]

    def instances(self, role: str) -> list[str]:
        """Return a role's instances."""
        raw = self.folder / FOLDER
        names = [each.name for each in sorted(raw.iterdir()) if each.is_dir()] if raw.is_dir() else []
        return [name for name in names if name == role or name.rpartition("-")[0] == role]

    def lines(self, instance: str, *place: str) -> list[dict[str, Any]]:
        """Return the JSON lines of a file; none where there is no such file, and none that is broken."""
        found = JsonLines((self.folder / FOLDER / instance).joinpath(*place))
        return [record for _number, record in found if record is not None]

    def text(self, instance: str, *place: str) -> str:
        """Return a file's text; empty where there is none."""
        file = (self.folder / FOLDER / instance).joinpath(*place)
        return read_regular(file).decode(errors="replace") if file.is_file() and not file.is_symlink() else ""

    def pages(self, instance: str) -> list[dict[str, Any]]:
        """Return what a server reported of itself, without answers that were errors: these have no figures."""
        parts = {"settings", "threads", "connections"}
        found = self.lines(instance, "collector", "tomcat.jsonl")
        return [one for one in found if isinstance(one.get("body"), dict) and parts <= one["body"].keys()]

    @cached_property
    def requests(self) -> list[dict[str, Any]]:
        """Return every request of every client, in the order of time."""
        found = [
            line
            for one in self.instances(self.path[0])
            for line in self.lines(one, "role", "requests.jsonl")
            if "kind" not in line and isinstance(line.get("time_us"), int) and isinstance(line.get("end_us"), int)
        ]
        return sorted(found, key=lambda line: line["time_us"])

    @property
    def slowest_ms(self) -> int:
        """Return how long the slowest answer took; 0 where there was none."""
        return (
            max((one["end_us"] - one["time_us"] for one in self.requests if not one.get("error_code")), default=0)
            // 1000
        )

    @cached_property
    def ticks(self) -> dict[str, list[dict[str, Any]]]:
        """Return the samples of each instance."""
        roles = [one for role in self.path for one in self.instances(role)]
        return {
            one: [t for t in self.lines(one, "collector", "samples.jsonl") if t.get("kind") == "tick"] for one in roles
        }


def clients(run: SeenRun) -> Iterator[str]:
    """Yield what the clients report: outcomes, their rates by second, and how long the answers took."""
    failed = [one for one in run.requests if one.get("error_code")]
    answered = [one for one in run.requests if not one.get("error_code")]
    yield f"{len(run.requests)} requests: {len(answered)} answered, {len(failed)} failed"
    for code, count in Counter(int(one["error_code"]) for one in failed).most_common():
        status = code - _STATUS
        yield f"  {count} x {f'answered {status}' if 400 <= status < 600 else _ERRORS.get(code, 'failed')} ({code})"  # noqa: PLR2004 # statuses
    took = sorted((one["end_us"] - one["time_us"]) / _US for one in answered)
    if took:
        yield f"answers took {took[0]:.1f} to {took[-1]:.1f} s, in the median {median(took):.1f} s"
    if run.requests:
        yield from _by_second(run.requests, run.requests[0]["time_us"])


def _by_second(requests: Iterable[Mapping[str, Any]], start_us: int) -> Iterator[str]:
    begun, well, badly = Counter[int](), Counter[int](), Counter[int]()
    for one in requests:
        begun[(one["time_us"] - start_us) // _US] += 1
        (badly if one.get("error_code") else well)[(one["end_us"] - start_us) // _US] += 1
    seconds = sorted({*begun, *well, *badly})
    yield "second  begun  answered  failed"
    for second in seconds[:_SECONDS_SHOWN]:
        yield f"{second:>6} {begun[second]:>6} {well[second]:>9} {badly[second]:>7}"
    if len(seconds) > _SECONDS_SHOWN:
        yield f"… and {format_count(len(seconds) - _SECONDS_SHOWN, 'more second')}, until second {seconds[-1]}"


def netstat(run: SeenRun) -> Iterator[str]:
    """`netstat -s` on each machine, after the load; counters that stayed 0 are left out, as netstat does."""
    for instance, ticks in run.ticks.items():
        counters: dict[str, int] = {}
        for tick in ticks:
            counters |= tick.get("counters", {})
        yield f"{instance}$ netstat -s    # the monitoring's own connections are counted, too"
        for group, words in _NETSTAT.items():
            found = [(says, counters.get(f"{group}.{name}")) for name, says in words.items()]
            told = [f"    {says.format(count)}" for says, count in found if count]
            if told:
                yield from (f"{group}:", *told)


def listening(run: SeenRun) -> Iterator[str]:
    """`ss -lnt` on each server, at the moment when its queue was longest."""
    for role in run.path[1:]:
        for instance in run.instances(role):
            rows = [
                one
                for tick in run.ticks.get(instance, [])
                for one in tick.get("listen", [])
                if one.get("port") == TRAFFIC_PORT
            ]
            yield f"{instance}$ ss -lnt    # when Recv-Q was greatest"
            yield "State   Recv-Q  Send-Q  Local Address:Port"
            if rows:
                most = max(rows, key=lambda one: int(one["depth"]))
                yield f"LISTEN  {most['depth']:<7} {most['limit']:<7} *:8080"


def proxy_log(run: SeenRun) -> Iterator[str]:
    """Yield the last lines of each proxy's error log, and of its access log those of requests that failed."""
    for role in run.path[1:-1]:
        for instance in run.instances(role):
            errors = [
                line for line in run.text(instance, "role", "error.log").splitlines() if not _NO_ERROR.search(line)
            ]
            yield f"{instance}$ tail error.log"
            yield from errors[-_LOG_LINES:]
            bad = [one for one in run.lines(instance, "role", "access.jsonl") if int(one.get("status") or 0) >= 400]  # noqa: PLR2004 # errors
            yield f"{instance}$ tail access.log    # {len(bad)} lines of errors"
            yield from (" ".join(f"{key}={one[key]}" for key in _ACCESS if key in one) for one in bad[-_LOG_LINES:])


def board(run: SeenRun) -> Iterator[str]:
    """Yield the board of figures: what the servers say of themselves."""
    for instance in run.instances(run.path[-1]):
        pages = [page["body"] for page in run.pages(instance)]
        if not pages:
            continue
        settings = pages[-1]["settings"]
        yield instance
        for name, of, limit in (
            ("threads busy", ("threads", "busy"), "maxThreads"),
            ("connections", ("connections", "current"), "maxConnections"),
        ):
            most = max(page[of[0]][of[1]] for page in pages)
            yield f"  {name}, at most: {most} of {settings[limit]}"


def limits(run: SeenRun) -> Iterator[str]:
    """Yield the limits of proxy and servers, by the names of their knobs, and those of the servers' kernels."""
    try:
        manifest = load_manifest(run.folder)
    except ManifestError as error:
        yield f"unknown: {error}"
        return
    for role in run.path[1:]:
        names = [f"{role}.{knob}" for _, knob in ROLES[role].limits if knob]
        yield role
        yield from (f"  {name}: {format_knob(manifest.knobs[name])}" for name in names if name in manifest.knobs)
        for name in _SYSCTLS:
            found = dict.fromkeys(manifest.sysctl(one, name) for one in run.instances(role))
            yield from (f"  kernel.{role}.{name}: {value}" for value in found if value is not None)


def threads(run: SeenRun) -> Iterator[str]:
    """Yield the server's threads and connections over time."""
    for instance in run.instances(run.path[-1]):
        yield f"{instance}: second, threads busy, connections, of these idle"
        pages = run.pages(instance)
        for page in pages[: 2 * _SECONDS_SHOWN]:
            body = page["body"]
            second = (page["time_us"] - pages[0]["time_us"]) // _US
            held = body["connections"]
            yield f"{second:>6} {body['threads']['busy']:>6} {held['current']:>6} {held['keepAlive']:>6}"


def sockets(run: SeenRun) -> Iterator[str]:
    """`ss -tan`, counted by state, on each machine: the most that there were of each."""
    for role in run.path:
        for instance in run.instances(role):
            most: Counter[str] = Counter()
            for line in run.lines(instance, "collector", "samples.jsonl"):
                if line.get("kind") == "sockets":
                    now: Counter[str] = Counter()
                    for group in line.get("groups", []):
                        now[str(group["state"])] += int(group["count"])
                    most |= now
            yield f"{instance}$ ss -tan    # the most of each state"
            yield from (f"  {count:>6} {state}" for state, count in sorted(most.items()))


@dataclass(frozen=True)
class Piece:
    """A piece of evidence.

    Attributes:
        minutes: what asking for it costs.
    """

    says: str
    minutes: int
    of: Callable[[SeenRun], Iterable[str]]


GIVEN: Mapping[str, Piece] = {
    "clients": Piece("what the clients report", 0, clients),
    "board": Piece("the board of figures", 0, board),
    "limits": Piece("the limits, as they are set", 0, limits),
    "netstat": Piece("the kernels' counters", 0, netstat),
    "ss": Piece("the listening sockets", 0, listening),
    "log": Piece("the proxy's logs", 0, proxy_log),
}
MORE: Mapping[str, Piece] = {
    "sockets": Piece("sockets by state", 3, sockets),
    "threads": Piece("the server's threads and connections over time", 5, threads),
}


def format_pieces(run: SeenRun, pieces: Mapping[str, Piece]) -> Iterator[str]:
    """Write pieces of evidence for a reader."""
    for piece in pieces.values():
        told = list(piece.of(run))
        if told:
            yield f"--- {piece.says}"
            yield from told
