"""Reads what people paste: counters, listening sockets and connections, as Linux's tools print them.

A paste holds several commands' output, with prompts, cut lines and anything else between. Each line is read by its
own pattern; lines without one are skipped. A new snapshot begins with a time, or with a value that came before.
"""

import re
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from analysis.evidence.samples import UnixListener
from lab.observe.inspect.dump_times import time_in
from lab.observe.inspect.other_systems import refuse_other_systems

# The longest line that is looked at, and how many snapshots a file may hold.
_LINE_MAX: Final = 64_000
_SNAPSHOTS_MAX: Final = 100_000
_COUNT_MAX: Final = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Listener:
    """A listening socket.

    Attributes:
        limit: its backlog; None where the tool does not tell (netstat).
        drops: what it turned away, None where the tool does not tell (all but `ss -m`).
        program: the process that has it, None if the dump does not name it.
    """

    address: str
    port: int
    depth: int
    limit: int | None
    drops: int | None = None
    program: str | None = None


@dataclass(slots=True)
class Snapshot:
    """What a dump says of one moment.

    Attributes:
        time_us: when, Unix epoch; None if it does not tell.
        anew: whether its counters are what has grown since the last call, as `nstat` prints them without -a.
        counters: by the kernel's names, as `TcpExt.ListenOverflows`.
        unix: listening unix sockets.
        states: how many connections were in each state: (state, local port, remote port) → count.
        sysctls: kernel settings.
        idle_percent: how much of the processors was idle.
        no_address: how often a program said EADDRNOTAVAIL.
    """

    time_us: int | None = None
    anew: bool = False
    counters: dict[str, int] = field(default_factory=dict)
    listeners: list[Listener] = field(default_factory=list)
    unix: list[UnixListener] = field(default_factory=list)
    states: dict[tuple[str, str, int, str, int], int] = field(default_factory=dict)
    sysctls: dict[str, str] = field(default_factory=dict)
    idle_percent: float | None = None
    no_address: int = 0

    @property
    def tells_of_kernel(self) -> bool:
        """Return whether it has what only a dump has: an error alone may stand in any text."""
        return bool(self.counters or self.listeners or self.unix or self.states or self.sysctls)

    @property
    def empty(self) -> bool:
        """Return whether it says nothing but its time."""
        return not self.tells_of_kernel and not self.no_address and self.idle_percent is None


# What `netstat -s` says, in old words and new, and the kernel's name.
_WORDS: Final = {
    "Tcp": {
        r"active connections? openings?": "ActiveOpens",
        r"passive connections? openings?": "PassiveOpens",
        r"failed connection attempts?": "AttemptFails",
        r"connection resets? received": "EstabResets",
        r"connections? established": "CurrEstab",
        r"segments? received": "InSegs",
        r"segments? sen[dt] out": "OutSegs",
        r"segments? retransmitt?ed": "RetransSegs",
        r"bad segments? received\.?": "InErrs",
        r"resets? sent": "OutRsts",
    },
    "TcpExt": {
        r"resets? received for embryonic SYN_RECV sockets?": "EmbryonicRsts",
        r"times? the listen queue of a socket overflowed": "ListenOverflows",
        r"SYNs? to LISTEN sockets? (?:dropped|ignored)": "ListenDrops",
        r"SYN cookies? sent": "SyncookiesSent",
        r"SYN cookies? received": "SyncookiesRecv",
        r"invalid SYN cookies? received": "SyncookiesFailed",
        r"TCP sockets? finished time wait in (?:fast timer|slow timer)": "TW",
        r"time wait sockets? recycled by time ?stamp": "TWRecycled",
        r"connections? reset due to unexpected data": "TCPAbortOnData",
        r"connections? reset due to early user close": "TCPAbortOnClose",
        r"connections? aborted due to timeout": "TCPAbortOnTimeout",
        r"connections? aborted due to memory pressure": "TCPAbortOnMemory",
    },
}
_PHRASES: Final = {
    section: [(re.compile(words), f"{section}.{name}") for words, name in of.items()] for section, of in _WORDS.items()
}
_SECTION = re.compile(r"(Ip|Icmp|IcmpMsg|Tcp|Udp|UdpLite|TcpExt|IpExt|MPTcpExt|Sctp):")
_SAID = re.compile(r"(\d{1,20}) (.+)")
_NAMED = re.compile(r"(\w+): (\d{1,20})")
_LONE = re.compile(r"(TCP(?:SynRetrans|ReqQFullDrop|ReqQFullDoCookies|TimeWaitOverflow|BacklogDrop)): (\d{1,20})")
# `nstat`: TcpExtListenOverflows           144157             0.0
_NSTAT = re.compile(r"(TcpExt|IpExt|MPTcpExt|UdpLite|IcmpMsg|Tcp|Udp|Icmp|Ip)([A-Z0-9]\w*)\s+(\d{1,20})\s+[\d.]+")
_PROC = re.compile(r"(Tcp|TcpExt|Ip|IpExt|MPTcpExt|Udp|UdpLite|Icmp|IcmpMsg): (\S.*)")
# /proc/net/sockstat: TCP: inuse 443029 orphan 0 tw 62 alloc 443031 mem 18
_SOCKSTAT = re.compile(r"(TCP6?): (inuse \d{1,20}(?: \w+ \d{1,20})*)")
# `ss -s`: TCP:   1234 (estab 12, closed 3, orphaned 0, timewait 2)
_SUMMARY = re.compile(r"TCP:\s+\d{1,20} \(estab (\d{1,20}), .*?timewait (\d{1,20})")
_STATES: Final = {
    "LISTEN": "LISTEN", "ESTAB": "ESTABLISHED", "ESTABLISHED": "ESTABLISHED", "SYN-SENT": "SYN_SENT",
    "SYN_SENT": "SYN_SENT", "SYN-RECV": "SYN_RECV", "SYN_RECV": "SYN_RECV", "FIN-WAIT-1": "FIN_WAIT1",
    "FIN_WAIT1": "FIN_WAIT1", "FIN-WAIT-2": "FIN_WAIT2", "FIN_WAIT2": "FIN_WAIT2", "TIME-WAIT": "TIME_WAIT",
    "TIME_WAIT": "TIME_WAIT", "CLOSE-WAIT": "CLOSE_WAIT", "CLOSE_WAIT": "CLOSE_WAIT", "LAST-ACK": "LAST_ACK",
    "LAST_ACK": "LAST_ACK", "CLOSING": "CLOSING",
}  # fmt: skip
_NAMES = "|".join(sorted(map(re.escape, _STATES), key=len, reverse=True))
# `ss`: LISTEN 129 128 *:80 *:* users:(("nginx",pid=7,fd=6)); the addresses may be cut off.
_SS = re.compile(
    rf"(?:tcp6?\s+)?({_NAMES})\s+(\d{{1,10}})\s+(\d{{1,10}})(?:\s+(\S+?):([\w-]+)(?:\s+(\S+?):([\w*-]+))?)?(?:\s.*)?"
)
# `ss -xl`: u_str LISTEN 4 3 /run/app.sock 30085 * 0 users:(("gunicorn",pid=7,fd=5)); @ begins an abstract name.
_UNIX = re.compile(r"u_(?:str|seq)\s+LISTEN\s+(\d{1,10})\s+(\d{1,10})\s+(\S+) \d+\s+\* \d+(?:\s.*)?")
# `netstat -an`: tcp 0 0 0.0.0.0:80 0.0.0.0:* LISTEN 7/nginx
_NETSTAT = re.compile(
    rf"tcp6?\s+(\d{{1,10}})\s+(\d{{1,10}})\s+(\S+):([\w-]+)\s+(\S+):([\w*-]+)\s+({_NAMES})(?:\s+(?:\d+/(\S+)|-))?(?:\s.*)?"
)
_PROCESS = re.compile(r'users:\(\("([^"]{1,64})"')
_DROPPED = re.compile(r"skmem:\([^)]*\bd(\d{1,10})\)")
_PORTS: Final = {"http": 80, "https": 443, "ssh": 22, "http-alt": 8080, "webcache": 8080, "mysql": 3306,
                 "postgresql": 5432, "domain": 53, "smtp": 25, "redis": 6379, "ms-wbt-server": 3389}  # fmt: skip
_SYSCTL = re.compile(r"((?:net|fs)(?:\.[\w-]+)+)\s*=\s*(-?\d[\d\s]*)")
_SYSCTL_FILE = re.compile(r"/proc/sys/((?:net|fs)(?:/[\w.-]+)+)")
_RANGE = re.compile(r"\d{1,10}(?:\s+\d{1,10}){0,2}")
_IDLE = re.compile(r"%?Cpu\(s\):.*?(\d{1,3}(?:[.,]\d+)?)\s*%?\s*id\b")
_NO_ADDRESS = re.compile(r"EADDRNOTAVAIL|[Cc]an(?:no|')t assign requested address|\(99: ")
# Listening sockets and others come mixed in one command's output.
_MIXED: Final = ("ss ", "sockets ")
# What a tool prints first: its output begins anew.
_HEADING = re.compile(r"#kernel|(?:Netid +)?State +Recv-Q .*|Proto Recv-Q .*")
# A shell's prompt and a command; which command it is, its words say.
_PROMPT = re.compile(r"[^#$>%]{0,200}[#$>%]\s*([\w./-].*)|Every [\d.,]+s: (.*)")
_TOOLS: Final = frozenset(
    {"nstat", "netstat", "ss", "cat", "date", "sysctl", "top", "uptime", "vmstat", "dmesg", "head"}
)


def parse_dump(text: str) -> list[Snapshot]:
    """Return the snapshots that a paste holds, in its order; none if it holds nothing that is known.

    Raises:
        OtherSystemError: it is of FreeBSD, macOS or Windows.
    """
    refuse_other_systems(text)
    reader = _Reader()
    for line in text.splitlines():
        reader.read(line[:_LINE_MAX].rstrip())
    return _one_moment_each([each for each in reader.snapshots if not each.empty])[:_SNAPSHOTS_MAX]


def _one_moment_each(snapshots: list[Snapshot]) -> list[Snapshot]:
    """Put what several commands print of one moment together: `netstat -s | grep` twice, for different counters."""
    found: list[Snapshot] = []
    for each in snapshots:
        sockets = each.listeners or each.unix or each.states
        if found and each.time_us is None and not each.anew and each.counters and not sockets:
            last = found[-1]
            if last.counters and last.counters.keys().isdisjoint(each.counters):
                last.counters |= each.counters
                last.sysctls |= each.sysctls
                last.no_address += each.no_address
                continue
        found.append(each)
    return found


class _Reader:
    """The state between lines: the section of `netstat -s`, names that wait for their values, a cut line."""

    def __init__(self) -> None:
        self.snapshots = [Snapshot()]
        self._section: str | None = None
        self._names: tuple[str, list[str]] | None = None
        self._sysctl: str | None = None
        # The block whose lines come: a block that begins anew is of a later moment.
        self._block = ""
        # Whether the last socket read is a listener of `ss`: lines below it are its own.
        self._below = False
        self._blocks: set[str] = set()
        self._commanded = False
        self._forms: tuple[Callable[[str], bool], ...] = (
            self._command, self._sysctl_value, self._proc, self._netstat_section, self._netstat_statistic, self._nstat,
            self._socket_of_ss, self._unix_socket, self._socket_of_netstat, self._sockstat, self._summary,
            self._setting, self._processors, self._time,
        )  # fmt: skip

    def read(self, line: str) -> None:
        """Read one line by the first form that it has."""
        bare = line.strip()
        if not bare:
            return
        if _NO_ADDRESS.search(bare):
            self._now.no_address += 1
        if any(form(bare) for form in self._forms):
            return
        # In mail and issues, a quoted line begins so.
        quoted = bare.lstrip("> ")
        if quoted == bare or not any(form(quoted) for form in self._forms):
            self._beside(bare)

    @property
    def _now(self) -> Snapshot:
        return self.snapshots[-1]

    def _begin(self, block: str) -> Snapshot:
        """Return the snapshot of a block's line; a block that had ended is a later moment's."""
        tool = f"{block.partition(' ')[0]} "
        mixed = tool in _MIXED and self._block.startswith(tool)
        if self._commanded or not (block == self._block or mixed):
            if block in self._blocks:
                self._next()
            self._commanded = False
        self._blocks.add(block)
        self._block = block
        return self._now

    def _next(self, time_us: int | None = None) -> None:
        self._blocks, self._block = set(), ""
        if self._now.empty and self._now.time_us is None:
            self._now.time_us = time_us
            return
        # Without a time of its own it may be of any later moment.
        self.snapshots.append(Snapshot(time_us, self._now.anew))

    def _command(self, line: str) -> bool:
        if _HEADING.fullmatch(line):
            self._commanded = True
            return True
        match = _PROMPT.fullmatch(line)
        words = (match[1] or match[2]).split() if match else []
        if not _TOOLS.intersection(each.rpartition("/")[2] for each in words[:6]):
            return False
        self._commanded = True
        self._section = self._names = None
        if "nstat" in words and not any(each.startswith("-") and "a" in each for each in words):
            self._now.anew = True
        file = _SYSCTL_FILE.search(line)
        self._sysctl = file[1].replace("/", ".") if file else None
        if line.startswith("Every ") and (time_us := time_in(line)) is not None:
            self._next(time_us)
        return True

    def _sysctl_value(self, line: str) -> bool:
        name, self._sysctl = self._sysctl, None
        if name is None or not _RANGE.fullmatch(line):
            return False
        self._now.sysctls[name] = " ".join(line.split())
        return True

    def _time(self, line: str) -> bool:
        time_us = time_in(line)
        if time_us is None:
            return False
        self._next(time_us)
        return True

    def _proc(self, line: str) -> bool:
        """Read /proc/net/netstat or snmp: a line of names, and one of values."""
        match = _PROC.fullmatch(line)
        if match is None:
            return False
        section, words = match[1], match[2].split()
        if not all(re.fullmatch(r"-?\d{1,20}", word) for word in words):
            self._names = (section, words) if len(words) > 1 and all(word.isalnum() for word in words) else None
            return self._names is not None
        names, self._names = self._names, None
        if names is None or names[0] != section:
            return False
        for name, value in zip(names[1], words, strict=False):
            self._count(f"proc {section}", f"{section}.{name}", int(value))
        return True

    def _netstat_section(self, line: str) -> bool:
        match = _SECTION.fullmatch(line)
        if match is None:
            return False
        self._section = match[1]
        return True

    def _netstat_statistic(self, line: str) -> bool:
        if self._section is None:
            return self._lone_statistic(line)
        if named := _NAMED.fullmatch(line):
            self._count(f"netstat {self._section}", f"{self._section}.{named[1]}", int(named[2]))
            return True
        said = _SAID.fullmatch(line)
        if said is None or any(line.startswith(each) for each in ("tcp", "TCP")):
            return False
        for words, name in _PHRASES.get(self._section, ()):
            if words.fullmatch(said[2]):
                self._count(f"netstat {self._section}", name, int(said[1]))
        return not re.match(r"\d+ \d", line)

    def _lone_statistic(self, line: str) -> bool:
        """Read a line of `netstat -s | grep`, which has no section above it: its words are of one section alone."""
        said, named = _SAID.fullmatch(line), _LONE.fullmatch(line)
        if named is not None:
            self._count("netstat TcpExt", f"TcpExt.{named[1]}", int(named[2]))
            return True
        for section, phrases in _PHRASES.items() if said else ():
            for words, name in phrases:
                if said and words.fullmatch(said[2]):
                    self._count(f"netstat {section}", name, int(said[1]))
                    return True
        return False

    def _nstat(self, line: str) -> bool:
        match = _NSTAT.fullmatch(line)
        if match is None:
            return False
        self._count("nstat", f"{match[1]}.{match[2]}", int(match[3]))
        return True

    def _count(self, block: str, name: str, value: int) -> None:
        again = block == self._block and self._now.counters.get(name, value) != value
        if again:
            self._next()
        now = self._begin(block)
        if -_COUNT_MAX <= value <= _COUNT_MAX:
            now.counters[name] = value

    def _socket_of_ss(self, line: str) -> bool:
        match = _SS.fullmatch(line)
        if match is None:
            return False
        state, depth, limit = _STATES[match[1]], int(match[2]), int(match[3])
        # `ss -ltn` and `ss -tan` behind each other are of one moment; either one a second time is of the next.
        self._begin("ss listening" if state == "LISTEN" else "ss connected")
        if state == "LISTEN":
            dropped, process = _DROPPED.search(line), _PROCESS.search(line)
            self._listens(
                Listener(
                    _address(match[4] or "*"), _port(match[5]), depth, limit,
                    int(dropped[1]) if dropped else None, process[1] if process else None,
                )
            )  # fmt: skip
        else:
            self._below = False
        if state != "LISTEN" and match[7] is not None:
            self._connected(state, match.group(4, 5), match.group(6, 7))
        return True

    def _unix_socket(self, line: str) -> bool:
        match = _UNIX.fullmatch(line)
        if match is None:
            return False
        self._below = False
        self._begin("ss unix").unix.append(UnixListener(match[3], int(match[1]), int(match[2])))
        return True

    def _socket_of_netstat(self, line: str) -> bool:
        match = _NETSTAT.fullmatch(line)
        if match is None:
            return False
        self._section = None
        state = _STATES[match[7]]
        self._begin("sockets listening" if state == "LISTEN" else "sockets connected")
        if state == "LISTEN":
            self._listens(Listener(_address(match[3]), _port(match[4]), int(match[1]), None, None, match[8]))
        else:
            self._connected(state, match.group(3, 4), match.group(5, 6))
        return True

    def _listens(self, found: Listener) -> None:
        self._below = bool(found.port and found.limit is not None)
        if not found.port:
            return
        same = [each for each in self._now.listeners if (each.address, each.port) == (found.address, found.port)]
        # netstat has no limit: where ss told it, that stays. SO_REUSEPORT gives one address several sockets.
        if found.limit is None and same:
            return
        if found.limit is not None:
            self._now.listeners = [each for each in self._now.listeners if each not in same or each.limit is not None]
        self._now.listeners.append(found)

    def _connected(self, state: str, local: Sequence[str], remote: Sequence[str]) -> None:
        """Count a connection; each end is an address and a port."""
        ports = _port(local[1]), _port(remote[1])
        if all(ports):
            key = (state, _address(local[0]), ports[0], _address(remote[0]), ports[1])
            self._now.states[key] = self._now.states.get(key, 0) + 1

    def _beside(self, line: str) -> None:
        """Read what `ss` writes below a socket: its memory, where drops stand."""
        if self._below and self._now.listeners and (dropped := _DROPPED.search(line)):
            last = self._now.listeners[-1]
            self._now.listeners[-1] = Listener(
                last.address, last.port, last.depth, last.limit, int(dropped[1]), last.program
            )

    def _sockstat(self, line: str) -> bool:
        match = _SOCKSTAT.fullmatch(line)
        if match is None:
            return False
        words = match[2].split()
        prefix = f"sockstat.{match[1]}" if match[1] == "TCP" else "sockstat6.TCP6"
        for name, value in zip(words[::2], words[1::2], strict=True):
            self._count(f"sockstat {match[1]}", f"{prefix}.{name}", int(value))
        return True

    def _summary(self, line: str) -> bool:
        match = _SUMMARY.match(line)
        if match is None:
            return False
        self._count("ss -s", "Tcp.CurrEstab", int(match[1]))
        self._count("ss -s", "sockstat.TCP.tw", int(match[2]))
        return True

    def _setting(self, line: str) -> bool:
        match = _SYSCTL.fullmatch(line)
        if match is None:
            return False
        self._now.sysctls[match[1]] = " ".join(match[2].split())[:255]
        return True

    def _processors(self, line: str) -> bool:
        match = _IDLE.search(line)
        if match is None:
            return False
        self._now.idle_percent = float(match[1].replace(",", "."))
        return True


def _address(text: str) -> str:
    """Return an address without brackets, scope and the prefix of a mapped IPv4."""
    bare = text.strip("[]").partition("%")[0]
    return bare.removeprefix("::ffff:") if "." in bare else bare


def _port(text: str | None) -> int:
    """Return a port; 0 for one that is not told, or is no port."""
    if text is None or text == "*":
        return 0
    if text.isascii() and text.isdecimal():
        return int(text) if len(text) <= 5 and int(text) < 1 << 16 else 0  # noqa: PLR2004  digits of 65535
    return _PORTS.get(text) or _port_of_service(text)


@lru_cache(1 << 12)
def _port_of_service(name: str) -> int:
    """Return the port that this machine knows a service by; 0 for none."""
    try:
        return socket.getservbyname(name, "tcp")
    except (OSError, UnicodeError, ValueError):
        return 0
