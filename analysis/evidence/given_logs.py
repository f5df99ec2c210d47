"""Reads logs of nginx and HAProxy as production writes them: which failures they tell, of which server, and when.

The lab's own runs have logs with all that it needs (analysis.evidence.logs); these have what somebody configured.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from analysis.evidence.logs import ERROR_LEVELS, MONTHS, NGINX_ERROR, utc_us
from formats.manifest import EvidenceKind

# The most servers, and the most clients of HAProxy, that are counted in one log.
_SERVERS_MAX: Final = 1000
_CLIENTS_MAX: Final = 1_000_000


class Line(NamedTuple):
    """What one line tells.

    Attributes:
        time_us: when it was written, Unix epoch; None where it does not say so.
        failure: which failure it tells of, None for none.
        server: the server that the proxy tried, `address:port`, None where it does not say so.
        client: the client's end, None where it does not say so.
        zone_s: how far its time is ahead of UTC, None where it does not say so.
    """

    time_us: int | None
    failure: str | None
    server: str | None = None
    client: tuple[str, int] | None = None
    zone_s: int | None = None


@dataclass(slots=True)
class GivenLog:
    """A log.

    Attributes:
        lines: how many could be read.
        unread: how many could not.
        first_us, last_us: the times that it covers, as it tells them; a log without a zone is taken for UTC.
        zone_s: how far its clock's zone is ahead of UTC; None where lines tell none, or several.
        failures: how often it tells of each.
        servers: the same for each server.
        clients: the client's end of each line that tells it, with the line's failure.
    """

    lines: int = 0
    unread: int = 0
    first_us: int | None = None
    last_us: int | None = None
    zone_s: int | None = None
    failures: Counter[str] = field(default_factory=Counter)
    servers: Counter[tuple[str, str]] = field(default_factory=Counter)
    clients: list[tuple[str, int, str | None]] = field(default_factory=list)


REFUSED, TIMED_OUT, NO_PORT = "refused by the server", "connect timeout", "no local port (EADDRNOTAVAIL)"
# What a proxy's log tells of a failure to connect, and the outcomes of connections that are the same by packets.
BY_PACKETS: Final = {REFUSED: ("refused",), TIMED_OUT: ("never-answered", "undecided")}

_UPSTREAM = re.compile(rb'upstream: "\w+://([^/",]{1,255})')
_NGINX_FAILURES: Final = (
    (re.compile(rb"\(111: "), REFUSED),
    (re.compile(rb"\(110: .*while connecting to upstream"), TIMED_OUT),
    (re.compile(rb"\(110: "), "server answered too late"),
    (re.compile(rb"\(99: "), NO_PORT),
    (re.compile(rb"\(1(?:01|13): "), "no route to the server"),
    (re.compile(rb"no live upstreams"), "no server left (no live upstreams)"),
    (re.compile(rb"limiting requests"), "refused by limit_req"),
    (re.compile(rb"limiting connections"), "refused by limit_conn"),
    (re.compile(rb"client intended to send too large"), "refused by client_max_body_size"),
    (re.compile(rb"worker_connections are not enough"), "worker_connections are not enough"),
    (re.compile(rb"prematurely closed connection"), "server closed without an answer"),
    (re.compile(rb"\(104: "), "reset by the peer"),
    (re.compile(rb"\(24: |Too many open files"), "too many open files"),
    (re.compile(rb"SSL_do_handshake\(\) failed"), "TLS handshake failed"),
)
# What a limit that a log names can be raised by.
SETTINGS: Final = {
    "worker_connections are not enough": "a worker had no connection left. worker_connections counts those to servers,"
    " too: set it to at least twice what clients hold at once, and worker_rlimit_nofile above it.",
    "too many open files": "the process may open no more files, and each connection is one: raise worker_rlimit_nofile,"
    " or LimitNOFILE of its service.",
    NO_PORT: "all local ports to that server are taken: keep connections to it (keepalive in upstream), or widen"
    " net.ipv4.ip_local_port_range.",
    "refused by limit_req": "limit_req answered itself (503, or limit_req_status) without asking a server: its rate and"
    " burst decide, and no queue.",
    "refused by limit_conn": "limit_conn answered itself (503, or limit_conn_status): its number decides, no queue.",
}
_NGINX_ACCESS = re.compile(
    rb'\S{1,255} \S{1,255} [^\[]{1,255}\[(\d\d)/(\w{3})/(\d{4}):(\d\d):(\d\d):(\d\d) ([+-]\d{4})\] "[^"]*" (\d{3}) .*'
)
_STATUSES: Final = {
    429: "too many requests (429)",
    499: "client left before the answer (499)",
    502: "bad gateway (502)",
    503: "no server, or a limit (503)",
    504: "server too late (504)",
}
_HAPROXY = re.compile(
    rb"(?:.*haproxy\[\d+\]: )?(\S{2,64}):(\d{1,5}) \[(\d\d)/(\w{3})/(\d{4}):(\d\d):(\d\d):(\d\d)\.(\d{3})\]"
    rb" \S{1,255} (\S{1,255}?)/(\S{1,255}) [-+\d/]{5,60} (?:-?\d{1,4} )?\+?\d{1,20} (?:\S{1,255} \S{1,255} )?"
    rb"([-A-Za-z]{2})[-\w]{0,2} .*"
)
_TERMINATIONS: Final = {
    b"sC": TIMED_OUT, b"SC": REFUSED, b"RC": NO_PORT, b"sQ": "no server free in time (queue)",
    b"SH": "server closed without an answer", b"sH": "server answered too late", b"SD": "server broke off its answer",
    b"sD": "server answered too late", b"cR": "client sent no request in time", b"CR": "client left before its request",
    b"CQ": "client left while it was queued", b"CC": "client left while the proxy connected",
    b"CH": "client left before the answer", b"CD": "client broke off", b"cD": "client stopped reading or sending",
    b"PR": "refused by the proxy", b"PC": "refused by the proxy (its limit)",
}  # fmt: skip


def kind_of(lines: Sequence[bytes]) -> EvidenceKind | None:
    """Return which log a file's first lines are of, None if of none."""
    for kind, read in READERS.items():
        if sum(read(line) is not None for line in lines) > len(lines) // 2:
            return kind
    return None


def read_log(kind: EvidenceKind, lines: Iterable[bytes]) -> GivenLog:
    """Return what a log tells; lines that have not its form are counted, and no more."""
    found, read, zones = GivenLog(), READERS[kind], set[int | None]()
    for text in lines:
        line = read(text)
        if line is None:
            found.unread += bool(text.strip())
            continue
        found.lines += 1
        zones.add(line.zone_s)
        if line.time_us is not None:
            found.first_us = line.time_us if found.first_us is None else min(found.first_us, line.time_us)
            found.last_us = max(found.last_us or 0, line.time_us)
        if line.failure is not None:
            found.failures[line.failure] += 1
            if line.server is not None and (len(found.servers) < _SERVERS_MAX):
                found.servers[line.failure, line.server] += 1
        if line.client is not None and len(found.clients) < _CLIENTS_MAX:
            found.clients.append((*line.client, line.failure))
    found.zone_s = zones.pop() if len(zones) == 1 else None
    return found


def _nginx_error(line: bytes) -> Line | None:
    match = NGINX_ERROR.fullmatch(line)
    if match is None:
        return None
    upstream = _UPSTREAM.search(match[9])
    said = next((failure for words, failure in _NGINX_FAILURES if words.search(match[9])), None)
    if said is None and match[7] in ERROR_LEVELS:
        said = "another error"
    time_us = utc_us(*map(int, match.group(1, 2, 3, 4, 5, 6)))
    return Line(time_us, said, upstream[1].decode("ascii", "replace") if upstream else None)


def _nginx_access(line: bytes) -> Line | None:
    if line.startswith(b"{"):
        return _json_access(line)
    match = _NGINX_ACCESS.fullmatch(line)
    if match is None or (month := MONTHS.get(match[2].decode("ascii", "replace"))) is None:
        return None
    time_us = utc_us(int(match[3]), month, int(match[1]), *(int(match[n]) for n in (4, 5, 6)))
    shift_s = (60 * int(match[7][1:3]) + int(match[7][3:])) * (60 if match[7].startswith(b"+") else -60)
    return Line(time_us and time_us - 1_000_000 * shift_s, _STATUSES.get(int(match[8])), zone_s=shift_s)


def _json_access(line: bytes) -> Line | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    except RecursionError:
        return None
    if not isinstance(found, dict) or not {"remote_addr", "request", "request_uri", "request_time"} & found.keys():
        return None
    status, time_ms = found.get("status"), found.get("time_ms")
    status = int(status) if isinstance(status, str) and re.fullmatch(r"\d{3}", status, re.ASCII) else status
    time_us = 1000 * time_ms if type(time_ms) is int and 0 <= time_ms < 1 << 50 else None
    return Line(time_us, _STATUSES.get(status) if isinstance(status, int) else None)


def _haproxy(line: bytes) -> Line | None:
    match = _HAPROXY.fullmatch(line)
    if match is None or (month := MONTHS.get(match[4].decode("ascii", "replace"))) is None:
        return None
    time_us = utc_us(int(match[5]), month, int(match[3]), *(int(match[n]) for n in (6, 7, 8)))
    address = match[1].decode("ascii", "replace").strip("[]").removeprefix("::ffff:")
    server = f"{match[10].decode('utf-8', 'replace')}/{match[11].decode('utf-8', 'replace')}"
    failure = _TERMINATIONS.get(match[12])
    return Line(
        time_us and time_us + 1000 * int(match[9]), failure, None if server.endswith("<NOSRV>") else server,
        (address, int(match[2])),
    )  # fmt: skip


READERS: Final[dict[EvidenceKind, Callable[[bytes], Line | None]]] = {
    "nginx-error": _nginx_error,
    "haproxy": _haproxy,
    "nginx-access": _nginx_access,
}
