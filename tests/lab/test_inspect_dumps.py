"""What people paste, read: counters, queues and connections of `nstat`, `netstat` and `ss`, old and new."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lab.errors import BadInput
from lab.observe import printing
from lab.observe.inspect.dumps import Listener, parse_dump
from lab.observe.inspect.folder import InspectOptions
from lab.observe.inspect.inspecting import inspect
from lab.observe.inspect.other_systems import OtherSystemError

pytestmark = pytest.mark.usefixtures("elsewhere")

SS = """State      Recv-Q Send-Q Local Address:Port               Peer Address:Port
"""

# What is pasted → a counter, and its value.
COUNTERS: dict[str, tuple[str, str, int]] = {
    "netstat, old": (
        (
            "TcpExt:\n    30 invalid SYN cookies received\n    12178939 times the listen queue of a socket overflowed\n"
            "    12247395 SYNs to LISTEN sockets ignored\n"
        ),
        "TcpExt.ListenDrops",
        12_247_395,
    ),
    "netstat, new": (
        (
            "Tcp:\n    9656 failed connection attempts\nTcpExt:\n    9653 resets received for embryonic SYN_RECV"
            " sockets\n"
            "    2 SYNs to LISTEN sockets dropped\n    TCPTimeWaitOverflow: 27360\n"
        ),
        "TcpExt.TCPTimeWaitOverflow",
        27_360,
    ),
    "netstat, one section after another": (
        "Tcp:\n    769399 passive connection openings\n    12 active connections openings\nUdp:\n    5 received\n",
        "Tcp.PassiveOpens",
        769_399,
    ),
    "nstat": (
        "#kernel\nTcpPassiveOpens         769399             0.0\nTcpExtListenOverflows   144157             0.0\n",
        "TcpExt.ListenOverflows",
        144_157,
    ),
    "/proc/net/netstat": (
        (
            "TcpExt: SyncookiesSent SyncookiesRecv ListenOverflows ListenDrops\nTcpExt: 16864284 0 7 149466373\n"
            "IpExt: InNoRoutes\nIpExt: 0\n"
        ),
        "TcpExt.ListenDrops",
        149_466_373,
    ),
    "sockstat": (
        "sockets: used 500\nTCP: inuse 443029 orphan 0 tw 62 alloc 443031 mem 18\n",
        "sockstat.TCP.inuse",
        443_029,
    ),
    "ss -s": (
        "Total: 181\nTCP:   443091 (estab 443000, closed 62, orphaned 0, timewait 62)\n\nTransport Total IP IPv6\n",
        "sockstat.TCP.tw",
        62,
    ),
    "behind a prompt": (
        "root@web-1:~# nstat -az | grep Listen\nTcpExtListenDrops   15   0.0\n$ uptime\n",
        "TcpExt.ListenDrops",
        15,
    ),
    "netstat through grep": (
        (
            "$ netstat -s | grep -i listen\n  7 times the listen queue of a socket overflowed\n  9 SYNs to LISTEN"
            " sockets dropped\n  TCPSynRetrans: 5\n"
        ),
        "TcpExt.ListenDrops",
        9,
    ),
    "one grep after another": (
        (
            "$ netstat -s | grep listen\n  7 times the listen queue of a socket overflowed\n"
            "$ netstat -s | grep LISTEN\n  9 SYNs to LISTEN sockets dropped\n"
        ),
        "TcpExt.ListenOverflows",
        7,
    ),
    "quoted in mail": ("> $ nstat -az\n> TcpExtListenDrops   15   0.0\n", "TcpExt.ListenDrops", 15),
    "cut": (
        "…ctions openings\n    3 times the listen queue of a sock\nTcpExtListenDrops   15   0.0\n",
        "TcpExt.ListenDrops",
        15,
    ),
}


@pytest.mark.parametrize(("text", "counter", "value"), COUNTERS.values(), ids=COUNTERS)
def test_counters_are_read_as_each_tool_prints_them(text: str, counter: str, value: int) -> None:
    (snapshot,) = parse_dump(text)
    assert snapshot.counters[counter] == value


LISTENERS: dict[str, tuple[str, Listener]] = {
    "ss -ltn": (SS + "LISTEN     129    128          *:80                       *:*\n", Listener("*", 80, 129, 128)),
    "ss -ltnp": (
        'LISTEN 512 511 10.0.0.7:80 0.0.0.0:* users:(("nginx",pid=7,fd=6),("nginx",pid=8,fd=6))\n',
        Listener("10.0.0.7", 80, 512, 511, program="nginx"),
    ),
    "ss -ltnm": (
        "LISTEN 0 128 [::]:8080 [::]:*\n\t skmem:(r0,rb131072,t0,tb16384,f0,w0,o0,bl0,d77)\n",
        Listener("::", 8080, 0, 128, 77),
    ),
    "ss -tam": (
        (
            "LISTEN 0 128 *:80 *:*\n\t skmem:(r0,w0,bl0,d7)\n"
            "ESTAB 0 0 10.0.0.7:80 10.0.0.9:5000\n\t skmem:(r0,w0,bl0,d99)\n"
            "LISTEN 0 128 *:no-such-service *:*\n\t skmem:(r0,w0,bl0,d99)\n"
        ),
        Listener("*", 80, 0, 128, 7),
    ),
    "ss -a with a netid": ("tcp LISTEN 0 4096 127.0.0.1%lo:http 0.0.0.0:*\n", Listener("127.0.0.1", 80, 0, 4096)),
    "netstat -ltnp": (
        ("Proto Recv-Q Send-Q Local Address  Foreign Address  State   PID/Program name\n"
        "tcp6     129      0 :::8080        :::*             LISTEN  7/java\n"),
        Listener("::", 8080, 129, None, program="java"),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "listener"), LISTENERS.values(), ids=LISTENERS)
def test_listening_sockets_are_read(text: str, listener: Listener) -> None:
    assert [each for one in parse_dump(text) for each in one.listeners] == [listener]


def test_connections_are_counted_by_state_and_ends() -> None:
    text = (
        "ESTAB 0 0 10.0.0.7:443 10.0.0.9:50001\nSYN-RECV 0 0 10.0.0.7:443 10.0.0.9:50002 timer:(on,1.2sec,2)\n"
        "tcp 0 0 10.0.0.7:443 ::ffff:10.0.0.9:50003 TIME_WAIT -\n"
    )
    states = [each.states for each in parse_dump(text)]
    assert {key: n for of in states for key, n in of.items()} == {
        ("ESTABLISHED", "10.0.0.7", 443, "10.0.0.9", 50001): 1,
        ("SYN_RECV", "10.0.0.7", 443, "10.0.0.9", 50002): 1,
        ("TIME_WAIT", "10.0.0.7", 443, "10.0.0.9", 50003): 1,
    }


def test_settings_are_read_from_sysctl_and_from_proc() -> None:
    text = (
        "$ sysctl net.core.somaxconn\nnet.core.somaxconn = 10000000\n"
        "$ cat /proc/sys/net/ipv4/ip_local_port_range\n32768\t60999\n"
    )
    assert {name: value for each in parse_dump(text) for name, value in each.sysctls.items()} == {
        "net.core.somaxconn": "10000000",
        "net.ipv4.ip_local_port_range": "32768 60999",
    }


TIMES: dict[str, str] = {
    "date": "Thu Nov 26 11:45:57 UTC 2026",
    "date, another locale": "Thu 26 Nov 2026 11:45:57 AM UTC",
    "ISO": "2026-11-26T12:45:57+01:00",
    "a zone by name": "Thu Nov 26 12:45:57 CET 2026",
    "a zone by number": "Thu Nov 26 06:45:57 -05 2026",
    "seconds": "1795693557",
    "watch": "Every 1.0s: ss -ltn            web-1: Thu Nov 26 11:45:57 2026",
}


@pytest.mark.parametrize("line", TIMES.values(), ids=TIMES)
def test_a_dump_may_tell_its_time(line: str) -> None:
    (snapshot,) = parse_dump(f"{line}\nLISTEN 1 128 *:80 *:*\n")
    assert snapshot.time_us == 1_795_693_557_000_000


def test_what_begins_anew_is_a_later_moment() -> None:
    loop = "".join(f"LISTEN {depth} 128 *:80 *:*\nTcpExtListenDrops {depth} 0.0\n" for depth in (0, 5, 129))
    assert [each.listeners[0].depth for each in parse_dump(loop)] == [0, 5, 129]
    assert [each.counters for each in parse_dump(loop)] == [{"TcpExt.ListenDrops": depth} for depth in (0, 5, 129)]


def test_the_sockets_of_one_command_are_of_one_moment_and_the_next_command_s_of_the_next() -> None:
    mixed = "LISTEN 0 128 *:80 *:*\nESTAB 0 0 10.0.0.7:80 10.0.0.9:5000\nLISTEN 0 128 *:81 *:*\n"
    (only,) = parse_dump(f"$ ss -ltn\n{SS}LISTEN 0 128 *:82 *:*\n$ nstat\nTcpExtListenDrops 1 0.0\n")
    assert [each.port for each in only.listeners] == [82]
    assert [len(each.listeners) for each in parse_dump(f"{SS}{mixed}{SS}{mixed}")] == [2, 2]
    (both,) = parse_dump(
        f"2026-11-26 11:45:57\n$ ss -ltn\n{SS}LISTEN 0 128 *:80 *:*\n$ ss -tn\n{SS}ESTAB 0 0 a:80 b:5000\n"
    )
    assert (len(both.listeners), len(both.states)) == (1, 1)


def test_a_later_moment_without_a_time_has_none() -> None:
    dumps = parse_dump("2026-11-26 11:45:57\nTcpExtListenDrops 1 0.0\nTcpExtListenDrops 2 0.0\n")
    assert [each.time_us for each in dumps] == [1_795_693_557_000_000, None]


OTHERS: dict[str, tuple[str, str]] = {
    "FreeBSD with addresses of sockets": (
        ("Active Internet connections (including servers)\n"
        "Tcpcb            Proto Recv-Q Send-Q Local Address  Foreign Address (state)\n"
        "fffff80003df43d0 tcp4       0      0 *.ssh          *.*             LISTEN\n"),
        "FreeBSD",
    ),
    "FreeBSD's counters": ("tcp:\n        2411 packets sent\n          1200 data packets\n", "FreeBSD"),
    "macOS with flow hashes": (
        "Socket           Flowhash Proto Recv-Q Send-Q  Local Address\n7fb03cb9 cedd0cbf tcp4 0 0 10.0.0.7.5486 a\n",
        "macOS",
    ),
    "FreeBSD": ("Current listen queue sizes (qlen/incqlen/maxqlen)\ntcp4  192/0/128  *.80\n", "FreeBSD"),
    "FreeBSD, one line": ("192/0/128 *.80\n", "FreeBSD"),
    "FreeBSD's log": ("sonewconn: pcb 0xfffff8: Listen queue overflow: 193 already in queue\n", "FreeBSD"),
    "macOS": ("tcp4       0      0  127.0.0.1.80           *.*                    LISTEN\n", "macOS"),
    "Windows": (
        ("Active Connections\n\n  Proto  Local Address          Foreign Address        State\n"
        "  TCP    0.0.0.0:80             0.0.0.0:0              LISTENING\n"),
        "Windows",
    ),
    "Windows' counters": ("TCP Statistics for IPv4\n\n  Active Opens  = 5\n", "Windows"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "system"), OTHERS.values(), ids=OTHERS)
def test_a_dump_of_another_system_is_named_and_refused(text: str, system: str, tmp_path: Path) -> None:
    with pytest.raises(OtherSystemError, match=system):
        parse_dump(text)
    (tmp_path / "dump.txt").write_text(text)
    with pytest.raises(BadInput, match=rf"dump\.txt: is a dump of .*{system}"):
        inspect([tmp_path / "dump.txt"], [], {}, InspectOptions(), [])


def findings(tmp_path: Path, *texts: str) -> dict[str, str]:
    files = [tmp_path / f"dump-{number}.txt" for number in range(len(texts))]
    for file, text in zip(files, texts, strict=True):
        file.write_text(text)
    folder, _ = inspect([], files, {}, InspectOptions(), [])
    found = printing.read_connections(folder)
    assert list(printing.connection_lines(found, folder))
    assert found["unexplained"] is None
    return {each["name"]: each["says"] for each in found["inspection"]["findings"]}


def nstat(**counters: int) -> str:
    return "".join(f"{name} {value} 0.0\n" for name, value in counters.items())


# What is pasted → the kinds of what it proves, and words of it.
PROVED: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "a full queue": (
        ("LISTEN 129 128 *:80 *:*\n",),
        {"full-accept-queue": "129 connections waited, and it holds 128 + 1"},
    ),
    "a full unix socket": (
        (
            (
                "Netid State  Recv-Q Send-Q  Local Address:Port   Peer Address:PortProcess\n"
                "u_str LISTEN 4      3       /run/app.sock 30085             * 0          \n"
                "u_str LISTEN 0      4096 /var/run/docker.sock 20290135            * 0          \n"
                'u_seq LISTEN 1      1       @abstract 30086 * 0 users:(("gunicorn",pid=7,fd=5))\n'
            ),
        ),
        {"full-unix-socket": "/run/app.sock was full: 4 connections waited, and it holds 3 + 1"},
    ),
    "a program's own backlog": (
        (
            (
                "LISTEN 512 511 0.0.0.0:80 0.0.0.0:*\nnet.core.somaxconn = 10000000\nTcpExt:\n"
                "    149466373 SYNs to LISTEN sockets dropped\n    16864284 SYN cookies sent\n"
            ),
        ),
        {
            "full-accept-queue": "own backlog of 511, the default of nginx",
            "drops-untold": "149,466,373 SYNs or last ACKs of a handshake were dropped since the host",
            "syn-cookies": "16,864,284 cookies",
        },
    ),
    "somaxconn": (
        ("LISTEN 129 128 *:80 *:*\nnet.core.somaxconn = 128\n",),
        {"full-accept-queue": "net.core.somaxconn is 128 too, and cuts"},
    ),
    "drops beyond overflows": (
        (nstat(TcpExtListenOverflows=12_178_939, TcpExtListenDrops=12_247_395),),
        {
            "accept-queue-overflows": "12,178,939 SYNs",
            "drops-without-overflow": "68,456 of 12,247,395 drops since the host",
        },
    ),
    "cookies that answered": (
        (nstat(TcpExtListenOverflows=0, TcpExtListenDrops=15, TcpExtSyncookiesSent=60, TcpExtTCPReqQFullDrop=0),),
        {"drops-without-overflow": "15 of 15 drops", "syn-cookies": "nobody failed for it"},
    ),
    "a full SYN queue": (
        (nstat(TcpExtListenOverflows=2, TcpExtListenDrops=12, TcpExtTCPReqQFullDrop=9),),
        {"accept-queue-overflows": "2 SYNs", "drops-without-overflow": "9 SYNs met a full SYN queue, and no cookie"},
    ),
    "failures that are not the queue": (
        (nstat(TcpAttemptFails=9_656, TcpExtEmbryonicRsts=9_653, TcpExtListenOverflows=2, TcpExtListenDrops=2),),
        {
            "attempts-failed": "9,653 of these were half-open connections that a RST of the client ended",
            "accept-queue-overflows": "2 SYNs",
        },
    ),
    "TIME_WAIT": ((nstat(TcpExtTCPTimeWaitOverflow=27_360),), {"time-wait-overflow": "fails no client's connection"}),
    "SYNs sent again": ((nstat(TcpExtTCPSynRetrans=8),), {"syns-sent-again": "8 SYNs or SYN-ACKs again"}),
    "an idle processor": (
        (
            nstat(TcpPassiveOpens=769_399, TcpExtListenOverflows=144_157)
            + "%Cpu(s):  2.0 us, 1.0 sy, 97.0 id, 0.0 wa\n",
        ),
        {"accept-queue-overflows": "97 % idle: a limit on connections or workers"},
    ),
    "no port": (
        (
            (
                "TCP: inuse 443029 orphan 0 tw 62 alloc 443031 mem 18\nnet.ipv4.ip_local_port_range = 32768 60999\n"
                "connect: Cannot assign requested address\n"
            ),
        ),
        {"no-local-port": "443,029 connections are open and 62 in TIME_WAIT, so established connections hold"},
    ),
    "growth between two": (
        (
            nstat(TcpExtListenOverflows=100, TcpExtListenDrops=100),
            nstat(TcpExtListenOverflows=107, TcpExtListenDrops=107),
        ),
        {"accept-queue-overflows": "7 SYNs or last ACKs of a handshake met a full accept queue between the first dump"},
    ),
    "growth that nstat tells": (
        ("$ nstat -n; sleep 60; nstat -z\n" + nstat(TcpExtListenOverflows=246, TcpExtListenDrops=246),),
        {"accept-queue-overflows": "since the last call of nstat"},
    ),
    "a queue of netstat": (
        ("tcp 129 0 0.0.0.0:80 0.0.0.0:* LISTEN\n",),
        {"queue-of-unknown-limit": "netstat does not tell its limit"},
    ),
    "drops alone, three times": (
        ("".join(f"$ netstat -s | grep LISTEN\n  {count} SYNs to LISTEN sockets dropped\n" for count in (2, 4, 13)),),
        {"drops-untold": "11 SYNs or last ACKs of a handshake were dropped between the first dump and the last"},
    ),
    "cookies that an old kernel counts as drops": (
        (nstat(TcpExtListenOverflows=7, TcpExtListenDrops=12, TcpExtSyncookiesSent=5),),
        {
            "accept-queue-overflows": "7 SYNs",
            "drops-without-overflow": "Linux up to 4.6 counts a SYN that a cookie answered as a drop",
            "syn-cookies": "5 cookies",
        },
    ),
    "states of connections": (
        (
            (
                "tcp 0 1 10.0.0.7:40000 10.0.0.9:4984 SYN_SENT 7/nginx\ntcp 0 1 10.0.0.7:40001 10.0.0.9:4984 SYN_SENT\n"
                "tcp 0 0 10.0.0.7:80 10.0.0.8:50000 SYN_RECV -\ntcp6 1 0 fd00::7:80 fd00::8:50001 CLOSE_WAIT 8/java\n"
                "tcp 0 0 10.0.0.7:80 10.0.0.8:50002 TIME_WAIT -\n"
            ),
        ),
        {
            "connections-by-state": "1 CLOSE_WAIT, 1 SYN_RECV, 2 SYN_SENT, 1 TIME_WAIT",
            "syns-unanswered": "2 connections in SYN_SENT: 2 to 10.0.0.9:4984",
            "half-open": "1 at port 80",
            "close-wait": "this host's program had not",
        },
    ),
    "nothing wrong": ((nstat(TcpExtListenOverflows=0, TcpExtListenDrops=0) + "LISTEN 0 128 *:80 *:*\n",), {}),
}


@pytest.mark.parametrize(("texts", "proved"), PROVED.values(), ids=PROVED)
def test_counters_alone_prove_and_leave_open(tmp_path: Path, texts: tuple[str, ...], proved: dict[str, str]) -> None:
    found = findings(tmp_path, *texts)
    assert found.keys() == proved.keys()
    assert {name: words for name, words in proved.items() if words not in found[name]} == {}


def test_counters_that_fall_were_counted_anew(tmp_path: Path) -> None:
    found = findings(
        tmp_path, nstat(TcpExtListenOverflows=100, TcpActiveOpens=9), nstat(TcpExtListenOverflows=7, TcpActiveOpens=1)
    )
    assert found["accept-queue-overflows"].startswith("7 SYNs")


def test_the_program_of_a_full_listener_has_its_setting_named(tmp_path: Path) -> None:
    before = nstat(TcpExtListenOverflows=0, TcpExtListenDrops=0)
    after = nstat(TcpExtListenOverflows=50, TcpExtListenDrops=50)
    line = 'LISTEN {} 100 *:80 *:* users:(("nginx",pid=7,fd=6))\n'
    for name, text in (("a.txt", line.format(0) + before), ("b.txt", line.format(101) + after)):
        (tmp_path / name).write_text(text)
    folder, _ = inspect([], [tmp_path / "a.txt", tmp_path / "b.txt"], {}, InspectOptions(connect_timeout_ms=5_000), [])
    found = printing.read_connections(folder)
    (advice,) = found["advice"]
    assert (advice["program"], advice["limit"]) == ("nginx", 100)
    assert found["failed"][0]["most"] is not None


def test_a_host_of_several_programs_is_not_named_by_one(tmp_path: Path) -> None:
    line = 'LISTEN 0 {} *:{} *:* users:(("{}",pid=7,fd=6))\n'
    (tmp_path / "a.txt").write_text(line.format(511, 80, "nginx") + line.format(2048, 8000, "gunicorn"))
    (tmp_path / "b.txt").write_text(line.format(511, 80, "nginx") + line.format(511, 443, "nginx"))
    named = []
    for name in ("a.txt", "b.txt"):
        folder, _ = inspect([tmp_path / name], [], {}, InspectOptions(), [])
        found = printing.read_connections(folder)
        named.append(found["targets"][0]["program"])
        assert "Nothing in the dumps shows a failure or a full queue." in printing.connection_lines(found, folder)
    assert named == [None, "nginx"]


def test_only_dumps_that_show_a_listener_tell_how_often_it_was_full_and_what_it_dropped(tmp_path: Path) -> None:
    line = "LISTEN {} 100 *:80 *:*{}\n"
    sockets = [line.format(101, ends) for ends in (" skmem:(r0,w0,bl0,d7)", "", " skmem:(r0,w0,bl0,d19)")]
    texts = (sockets[0], nstat(TcpExtListenOverflows=4), *sockets[1:])
    files = [tmp_path / f"{number}.txt" for number in range(len(texts))]
    for file, text in zip(files, texts, strict=True):
        file.write_text(text)
    folder, _ = inspect([], files, {}, InspectOptions(), [])
    (listener,) = printing.read_connections(folder)["targets"][0]["listeners"]
    assert (listener["full_percent"], listener["drops"]) == (100, 12)


WORDS = st.sampled_from([
    "LISTEN", "129", "128", "*:80", "*:*", "TcpExt:", "Tcp:", "ListenDrops", "TcpExtListenDrops", "0.0", "tcp", "ESTAB",
    "10.0.0.7:443", "[::]:80", "skmem:(d7)", "$", "nstat", "cat", "/proc/sys/net/core/somaxconn", "SYNs", "to",
    "sockets",
    "dropped", "Thu", "Nov", "26", "11:45:57", "2026", "TCP:", "inuse", "tw", "99999999999999999999", "-1", "\x00", "é",
])  # fmt: skip
PASTES = st.lists(st.lists(WORDS, max_size=12).map(" ".join), max_size=30).map("\n".join) | st.text(max_size=300)


@given(PASTES)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_paste_breaks_the_reader(text: str) -> None:
    try:
        found = parse_dump(text)
    except OtherSystemError:
        return
    assert not any(each.empty for each in found)
    assert all(abs(value) < 1 << 63 for each in found for value in each.counters.values())
