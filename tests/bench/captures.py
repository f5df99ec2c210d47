"""Compares what `connlab inspect` and tshark say of captures whose right answer is known, and in what time.

    .venv/bin/python -m tests.bench.captures inspect|captures [REPETITIONS]

`inspect` takes the captures of this repository, and two large ones that it makes. `captures` takes from the folder that
the variable CAPTURES names, and those below it, what the table knows: files of github.com/chrissanders/packets, and of
github.com/seladb/PcapPlusPlus in Tests/Pcap++Test/PcapExamples.

A tool says a fact if it stands in what it prints, and nobody has to add up its rows or to open the packets; only
tshark's conversations are counted for it. Both tools read each capture in turn, tshark inside the image
connlab/go-check and by the clock there, so that no start of a container counts. One JSON line.
"""

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.bench import synthetic

_ROOT = Path(__file__).resolve().parents[2]
# What is made: the time of either tool grows with the size, but not alike.
_LOADS = {
    f"synthetic, {load.connections:,} connections": load
    for load in (synthetic.Load(requests, calls=10, instances=1) for requests in (100_000, 500_000))
}
_LARGE = list(_LOADS)[-1]
_REPETITIONS = 3
_SAYS = ("inspect_says", "tshark_says")

# A part of a right answer, and what a line that says it looks like: of `inspect`, and of tshark.
_Fact = tuple[str, str, str]


def _connections(count: int) -> _Fact:
    return f"connections: {count:,}", rf"\b{count:,} connections?\b", f"^{count} conversations$"


def _answered(count: int) -> _Fact:
    return f"answered: {count:,}", rf"\b{count:,} answered", rf"^ +{count} .*\(SYN\+ACK\)"


def _unanswered(syns: int, of: str = "") -> _Fact:
    # In tshark's row no frame came back.
    return f"SYNs without an answer{of}: {syns}", rf"\): {syns} SYNs?\b.* and no answer", rf"<-> .* 0 0 bytes +{syns} "


_NO_TCP = ("no connection", "no TCP connection", "^0 conversations$")
_EARLIER = ("it began before the capture", "begun before the capture", "before the capture|[Mm]id-?stream")
_OWN: dict[str, tuple[_Fact, ...]] = {
    "examples/incident/incident.pcap": (
        _connections(50),
        ("never answered: 26", r"\b26 never-answered", r"\b26\b.*answer"),
        ("answered after a lost SYN: 8", r"\b8 recovered", r"\b8\b.*SYN"),
    ),
    "collector/internal/flow/testdata/accept-queue-overflow.pcap": (
        _connections(103),
        _answered(3),
        ("never answered: 100", r"\b100 never-answered", r"\b100\b.*answer"),
        _unanswered(5, " of each"),
    ),
    "collector/internal/flow/testdata/long-polling.pcap": (_connections(132), _answered(132)),
    **{name: (_connections(load.connections), _answered(load.connections)) for name, load in _LOADS.items()},
}
_PUBLIC: dict[str, tuple[_Fact, ...]] = {
    "latency1.pcapng": (_answered(1), ("it took 0.10 s", r"\b0\.10\d*\b|\b10\d ms", r"\b0\.10\d*\b")),
    "latency2.pcapng": (_answered(1), ("the SYN-ACK came after 0.88 s", r"SYN-ACK .*\b87\d ms", r"\b0?\.8[78]")),
    "latency3.pcapng": (
        _answered(1),
        ("the client waited 1.35 s to ask", r"client sent nothing.* 1\.35", r"\b1\.3[45]"),
    ),
    "latency4.pcapng": (_answered(1), ("the server took 1.03 s to send", r"server's first data.* 1\.03", r"\b1\.03")),
    "nowebaccess1.pcapng": (_NO_TCP,),
    "nowebaccess2.pcapng": (
        ("3 SYNs and 3 RSTs", "3 SYNs and 3 RSTs", r"^ +3 .*\(RST\)[\s\S]*^ +3 .*\(SYN\)"),
        ("one attempt of the user", ": 1 connection: 1 refused", "^1 conversations$"),
    ),
    "nowebaccess3.pcapng": (_unanswered(3),),
    "stranded_branchdns.pcapng": (_unanswered(1),),
    "stranded_clientside.pcapng": (_NO_TCP,),
    "tcp_refuseconnection.pcapng": (
        ("1 SYN and 1 RST", "1 SYN and 1 RST", r"^ +1 .*\(RST\)[\s\S]*^ +1 .*\(SYN\)"),
        ("refused by the server's host", "server's host refused", "[Rr]efused"),
    ),
    "http_espn_fail.pcapng": (
        _connections(16),
        _answered(7),
        ("never answered: 9", r"\b9 never-answered", r"\b9\b.*answer"),
        _unanswered(11, " of one"),
    ),
    "tcp_retransmissions.pcapng": (
        _EARLIER,
        ("data sent again 5 times", "sent data again 5 times", r"^ +5 .*retransmission"),
        ("for 0.2 to 9.2 s", r"206 ms to 9\.21 s", r"\b0\.20\d[\s\S]*\b9\.2"),
    ),
    "tcp_zerowindowdead.pcapng": (
        ("a window of 0", "receive window was 0", "Zero Window"),
        ("the client's, to the end", "the client's .* to the capture's end", "Zero Window.*(client|end)"),
    ),
    "tcp_zerowindowrecovery.pcapng": (
        ("a window of 0", "receive window was 0", "Zero Window"),
        ("for 10 ms", r"window was 0 for 10 ms", r"Zero Window.*\b0?\.010"),
    ),
    "synscan.pcapng": (
        ("refused: 5", r"\b5 refused", r"^ +5 .*\(RST\)"),
        ("SYNs: 1,994", r"\b1,994 SYNs", r"^ +1994 .*\(SYN\)"),
        ("SYN-ACKs: 12", r"\b12 SYN-ACKs", r"^ +12 .*\(SYN\+ACK\)"),
        ("a scan", r"\bscanned\b", r"\b[Ss]can"),
    ),
    "many_interfaces-1.pcapng": (
        _connections(2),
        ("one got the SYN-ACK alone", r"\b1 waiting", r"<-> .* 1 74 bytes +3 "),
    ),
    "too_many_interfaces.pcapng": (_NO_TCP,),
    "sll2.pcap": (_connections(1), _EARLIER),
    "one_http_stream_rst.pcap": (_connections(1), _answered(1)),
    "null_loopback.pcap": (_connections(1), ("its clock was set", "a clock was set", r"\bclock\b")),
    "nanosecs_big_endian.pcap": (_connections(1), _answered(1)),
    "microsecs_big_endian.pcap": (_NO_TCP,),
    "linktype_ipv6.pcap": (_unanswered(1),),
    "solaris.snoop": (_connections(1),),
}


@dataclass
class _Tool:
    """What a tool said of a capture, and what each of its runs took."""

    said: str = ""
    seconds: list[float] = field(default_factory=list)

    def add(self, said: str, seconds: float) -> None:
        """Add a run."""
        self.said = said
        self.seconds.append(seconds)


def main() -> int:
    """Compare; the exit code is 2 if there is no capture that the table knows."""
    name, repetitions = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else _REPETITIONS
    with tempfile.TemporaryDirectory(prefix="connlab-bench-", dir="/var/tmp") as scratch:
        files = _own(Path(scratch)) if name == "inspect" else _public()
        if not files:
            sys.stderr.write("bench: no capture to compare; CAPTURES=<folder> names the folder that has them\n")
            return 2
        with _tshark_at({file.parent for file in files.values()}) as container:
            rows = [_row(known, file, container, Path(scratch), repetitions) for known, file in files.items()]
    facts, by_inspect, by_tshark = (sum(len(row[key]) for row in rows) for key in ("facts", *_SAYS))
    line = {
        "bench": name, "repetitions": repetitions, "captures": len(rows), "facts": facts,
        "said_share": round(by_inspect / facts, 3), "tshark_said_share": round(by_tshark / facts, 3),
        "only_tshark": sum(len({*row["tshark_says"]} - {*row["inspect_says"]}) for row in rows),
        "ratio": round(statistics.median(row["ratio"] for row in rows), 2),
        "large_ratio": next((row["ratio"] for row in rows if row["capture"] == _LARGE), None), "rows": rows,
    }  # fmt: skip
    sys.stdout.write(json.dumps(line) + "\n")
    return 0


def _own(scratch: Path) -> dict[str, Path]:
    """Return the captures of this repository and the large ones, by their names in the table."""
    files = {known: _ROOT / known for known in _OWN}
    for name, load in _LOADS.items():
        synthetic.write(scratch / name, load)
        files[name] = scratch / name / "raw/backend-1/collector/capture.pcap"
    return files


def _public() -> dict[str, Path]:
    """Return those captures of the folder CAPTURES that the table knows, by their names in it."""
    folder = os.environ.get("CAPTURES")
    found = {file.name: file.resolve() for file in Path(folder).rglob("*") if file.is_file()} if folder else {}
    return {known: found[known] for known in _PUBLIC if known in found}


@contextmanager
def _tshark_at(folders: set[Path]) -> Iterator[str]:
    """Start a container that has tshark and these folders, where they are here."""
    volumes = [f"--volume={folder}:{folder}:ro" for folder in folders]
    command = ["docker", "run", "--rm", "--detach", "--init", "--label=connlab.check=bench", *volumes]
    started = [*command, "connlab/go-check", "sleep", "infinity"]
    container = subprocess.run(started, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    try:
        yield container
    finally:
        subprocess.run(["docker", "rm", "--force", container], stdout=subprocess.DEVNULL, check=True)


def _row(known: str, file: Path, container: str, scratch: Path, repetitions: int) -> dict[str, Any]:
    """Compare both tools on one capture."""
    inspect, tshark = _Tool(), _Tool()
    for _ in range(repetitions):
        inspect.add(*_inspect(file, scratch / "results"))
        tshark.add(*_tshark(file, container))
    took = {"inspect": statistics.median(inspect.seconds), "tshark": statistics.median(tshark.seconds)}
    facts = (_OWN | _PUBLIC)[known]
    row = {
        "capture": known, "facts": [answer for answer, _, _ in facts],
        "inspect_says": [answer for answer, says, _ in facts if re.search(says, inspect.said, re.MULTILINE)],
        "tshark_says": [answer for answer, _, says in facts if re.search(says, tshark.said, re.MULTILINE)],
        **{f"{tool}_s": round(seconds, 2) for tool, seconds in took.items()},
        "ratio": round(took["tshark"] / took["inspect"], 2),
    }  # fmt: skip
    sys.stdout.write(f"{known}: {json.dumps(row)}\n")
    return row


def _inspect(file: Path, results: Path) -> tuple[str, float]:
    """Return what `connlab inspect` prints, a refusal too, and how long it takes with its page."""
    environment = os.environ | {"CONNLAB_RESULTS": str(results)}
    began_s = time.monotonic()
    command = [str(_ROOT / ".venv/bin/connlab"), "inspect", str(file)]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, check=False
    )
    return done.stdout, time.monotonic() - began_s


def _tshark(file: Path, container: str) -> tuple[str, float]:
    """Return what tshark prints, with the number of its conversations, and how long it takes."""
    script = 'TIMEFORMAT=%3R; time tshark -n -q -z conv,tcp -z expert -r "$1" 2>/dev/null'
    command = ["docker", "exec", container, "bash", "-c", script, "bash", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return f"{done.stdout}\n{done.stdout.count(' <-> ')} conversations\n", float(done.stderr)


if __name__ == "__main__":
    sys.exit(main())
