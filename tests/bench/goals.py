"""What is measured of the lab itself, and how good it is to be."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Goal:
    """What one figure is to be.

    Attributes:
        figure: where it is in the bench's line; a dot leads into an object.
        says: what it is, for the table.
        bound: that it is to reach.
        at_most: whether it must not exceed the bound; else it must not fall below.
        shown: how a value of it is written.
    """

    figure: str
    says: str
    bound: float
    at_most: bool = True
    shown: str = "{:g}"

    def met(self, value: float) -> bool:
        """Whether a value is as good as it is to be."""
        return value <= self.bound if self.at_most else value >= self.bound

    @property
    def wanted(self) -> str:
        """The goal in words."""
        return f"{self.shown.format(self.bound)} or {'less' if self.at_most else 'more'}"


@dataclass(frozen=True)
class Bench:
    """One measurement.

    Attributes:
        command: prints its line last.
        measures: in words, for `make bench` and the table.
        goals: of its figures.
        asked_for: whether it runs only where it is named, because it takes long.
        timed: whether other programs on the machine change what it measures.
    """

    name: str
    command: str
    measures: str
    goals: tuple[Goal, ...]
    asked_for: bool = False
    timed: bool = True


_PERCENT, _SHARE = "{:.1%}", "{:.0%}"
_PYTHON = ".venv/bin/python -m tests.bench"
_GO = "setup/check.sh go-check collector"

BENCHES = (
    Bench(
        "instrument",
        f"{_PYTHON}.instrument",
        "a load with sampler, scrapes and captures, and without",
        (
            Goal("new_connections.throughput_lost", "new connections: throughput lost", 0.03, shown=_PERCENT),
            Goal("new_connections.p99_gained", "the same: p99 longer by", 0.03, shown=_PERCENT),
            Goal("kept_connections.throughput_lost", "kept connections: throughput lost", 0.03, shown=_PERCENT),
            Goal("kept_connections.p99_gained", "the same: p99 longer by", 0.03, shown=_PERCENT),
        ),
    ),
    *(
        Bench(
            name,
            f"{_PYTHON}.instrument {name}",
            f"{load}: handshakes and the kernel's events, every packet's headers, and no instrument",
            (
                Goal("events_alone.throughput_lost", f"{load}: throughput lost to events", bound, shown=_PERCENT),
                Goal("events.throughput_lost", "the same: to events, handshakes and samples", bound, shown=_PERCENT),
                Goal("headers.throughput_lost", "the same: to headers and samples", bound, shown=_PERCENT),
                Goal("events_alone.cpu_gained", "the same: processor time added by events", bound, shown=_PERCENT),
            ),
        )
        for name, load, bound in (("events", "new connections", 0.05), ("events-kept", "kept connections", 0.03))
    ),
    *(
        Bench(
            name,
            f"{_PYTHON}.instrument {name}",
            f"{load}: the instrument, tcpdump with a loop of ss and nstat, and neither",
            (
                *(
                    Goal(f"of_loop.{figure}", f"{of}: {says}, as a share of the loop's", 0.5, shown=_SHARE)
                    for figure, of, says in (
                        ("throughput_lost", load, "throughput lost"),
                        ("p99_gained", "the same", "growth of p99"),
                        ("own_share", "the same", "its own processor time"),
                    )
                ),
                Goal("events.throughput_lost", "events instead of packets: throughput lost", 0.03, shown=_PERCENT),
                Goal("events.p99_gained", "the same: p99 longer by", 0.03, shown=_PERCENT),
            ),
        )
        for name, load in (("loop", "new connections"), ("loop-kept", "kept connections"))
    ),
    Bench(
        "k6",
        "setup/check.sh go k6 ./bench",
        "k6 with the records of requests and dials, and without",
        (Goal("throughput_lost", "k6's records: requests per second lost", 0.05, shown=_PERCENT),),
    ),
    Bench(
        "collector",
        f"env CONNLAB_DOCKER_ARGUMENTS=--privileged {_GO} ./bench",
        "the sampler beside 28,000 sockets in TIME_WAIT and 2,000 open connections",
        (
            Goal("core_share_at_rest", "the sampler takes of a processor, at rest", 0.005, shown="{:.2%}"),
            Goal("core_share_at_work", "the same, while 100 connections a second send", 0.005, shown="{:.2%}"),
        ),
    ),
    Bench(
        "flows",
        f"{_GO} ./bench-flows",
        "`flows` beside tshark, gopacket and tcptrace, on the same 2,000,000 packets",
        (
            Goal("tshark_ratio", "`flows`: times as fast as tshark", 300, at_most=False, shown="{:.0f}"),
            Goal("gopacket_ratio", "`flows`: times as fast as gopacket", 3, at_most=False, shown="{:.1f}"),
            Goal("tcptrace_ratio", "`flows`: times as fast as tcptrace", 1, at_most=False, shown="{:.1f}"),
            *(
                Goal(f"{peer}_memory_ratio", f"the same: {peer}'s memory, in times its own", 1, False, "{:.1f}")
                for peer in ("tshark", "gopacket", "tcptrace")
            ),
        ),
    ),
    *(
        Bench(
            name,
            f"{_PYTHON}.captures {name}",
            f"the account of {captures} beside tshark's conversations and expert information",
            (
                Goal("said_share", f"{captures}: facts that `inspect` says", 1, at_most=False, shown="{:.0%}"),
                Goal("only_tshark", "the same: facts that tshark says, and `inspect` does not", 0),
                Goal("ratio", "the same: times as fast as tshark, at the median", 1, at_most=False, shown="{:.2f}"),
                *more,
            ),
            asked_for=name == "captures",
        )
        for name, captures, more in (
            (
                "inspect",
                "the lab's own captures",
                (Goal("large_ratio", "the same: with the largest", 1, at_most=False, shown="{:.2f}"),),
            ),
            ("captures", "public captures", ()),
        )
    ),
    Bench(
        "backend",
        "backend/bench-startup",
        "the backend's start, with its AOT cache and without",
        (Goal("ready_s", "the backend is ready after", 1.5, shown="{:.2f} s"),),
    ),
    Bench(
        "cell",
        f"{_PYTHON}.cell",
        "a run around its load, from preparation to clean-up",
        (Goal("overhead_s", "a run takes besides its load", 5, shown="{:.1f} s"),),
    ),
    Bench(
        "users",
        f"{_PYTHON}.users",
        "ever more users who poll, until one fails or the run cannot be vouched for",
        (Goal("users", "long-polling users, none of whom fails", 16_000, at_most=False, shown="{:,.0f}"),),
    ),
    Bench(
        "analysis",
        f"{_PYTHON}.analysis",
        "the analysis and the report of 1,000,000 requests with a capture",
        (
            Goal("seconds", "1,000,000 requests: analysis and report", 60, shown="{:.0f} s"),
            Goal("peak_gb", "the same: most memory", 1.5, shown="{:.2f} GB"),
            Goal("page_mb", "the same: the page", 5, shown="{:.1f} MB"),
        ),
    ),
    Bench(
        "noise",
        f"{_PYTHON}.noise",
        "how often a comparison calls noise a difference, beside k6's thresholds and hyperfine's statistics",
        # None for the gate: of ten repetitions it cannot say `worse` at all.
        (Goal("judges.compare.called_share", "repetitions that `compare` calls changed", 0.05, shown=_PERCENT),),
        timed=False,
    ),
    Bench(
        "hour",
        f"{_PYTHON}.hour",
        "one run of an hour: memory, files and the sampler's rhythm",
        (
            Goal("drift_ms", "an hour: the sampler's ticks are off by at most", 10, shown="{:.1f} ms"),
            Goal("gaps", "the same: ticks that are missing", 0),
        ),
        asked_for=True,
    ),
)
