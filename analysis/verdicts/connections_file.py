"""derived/connections.json: the account of an observed system; from the same raw files always the same bytes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from analysis import output
from analysis.database import Row, create, has_rows, sql
from analysis.diagnosis.health import Evidence, Problem, recordings
from analysis.diagnosis.observed import Observation, counters, observe
from analysis.evidence import captures
from analysis.figures import Run
from analysis.formatting import format_us
from analysis.output import DerivedFile, Written
from analysis.verdicts import inspection, overflow_advice
from analysis.verdicts.inspection import Inspection
from analysis.verdicts.overflow_advice import Advice, FailedBehindOverflows
from formats.manifest import PORT_RANGE, Observed, port_count
from formats.manifest import Target as ObservedTarget

TABLE = Path("derived") / "connections.parquet"
QUEUES = Path("derived") / "queues.parquet"
COUNTERS = Path("derived") / "counters.parquet"

_PEERS_MAX = 50
# The steps into which the time lines of queues and counters are cut.
STEPS = 120

_KERNEL = (
    "TcpExt.ListenOverflows",
    "TcpExt.ListenDrops",
    "TcpExt.TCPReqQFullDrop",
    "TcpExt.TCPReqQFullDoCookies",
    "TcpExt.TCPSynRetrans",
    "Tcp.RetransSegs",
    "Tcp.OutRsts",
    "Tcp.AttemptFails",
    "TcpExt.TCPTimeWaitOverflow",
)

Outcome = Literal[
    "answered", "recovered", "refused", "never-answered", "never-accepted", "half-open", "reset", "closed-unanswered",
    "given-up", "waiting", "idle", "connected", "undecided", "earlier",
    "one-sided",
]  # fmt: skip


class Times(Written):
    """How long something took, in µs, over `count` connections; null where there is none."""

    count: int
    p50: float | None
    p99: float | None
    max: int | None

    @model_validator(mode="after")
    def _has_values_of_what_it_counts(self) -> Self:
        if any((value is None) != (self.count == 0) for value in (self.p50, self.p99, self.max)):
            raise ValueError(f"{self.count} connections, and p50 {self.p50}, p99 {self.p99}, max {self.max}")
        return self


# What an earlier version wrote has no times of TLS, nor how long connections lasted.
_NONE = Times(count=0, p50=None, p99=None, max=None)


class Cost(Written):
    """What the observation itself took; percent of one processor."""

    sampler_percent: Annotated[float | None, Field(description="null where the sampler did not say")]
    capture_percent: Annotated[float | None, Field(description="tcpdump's own; null without a capture")]
    packets: int | None
    packets_dropped: int | None
    capture_bytes: int | None


class Server(Written):
    """The connections to one listener of the instance, or from the instance to one server elsewhere."""

    server: Annotated[str, Field(description="instance:port, or instance>address:port for one elsewhere")]
    direction: Literal["in", "out"]
    connections: int
    outcomes: Annotated[dict[Outcome, int], Field(description="docs/observe.md says what each means")]
    causes: Annotated[
        dict[str, int], Field(description="Proved causes of what failed or was late; unexplained where none is")
    ]
    syns_lost: Annotated[int, Field(description="SYNs that nothing answered")]
    handshake_us: Times
    first_data_us: Annotated[Times, Field(description="From the handshake's end to the first data of either side")]
    tls_us: Annotated[Times, Field(description="From the ClientHello to the handshake's last part")] = _NONE
    first_byte_us: Annotated[
        Times, Field(description="From the client's first data to the server's; without connections by TLS")
    ]
    in_queue_us: Annotated[Times, Field(description="In the accept queue, at most; exact to one tick")]
    lasted_us: Annotated[
        Times, Field(description="From the first SYN to the last packet, of connections whose handshake was captured")
    ] = _NONE
    client_retransmissions: int
    server_retransmissions: int
    first_to_close: Annotated[dict[Literal["client", "server", "nobody"], int], Field(description="By FIN or RST")]
    time_wait: Annotated[
        dict[Literal["client", "server", "both", "none", "unknown"], int], Field(description="Who keeps TIME_WAIT")
    ]


class Listener(Written):
    """A listening socket of the instance."""

    server: str
    port: int
    limit: Annotated[int, Field(description="The accept queue holds one connection more than that")]
    depth_max: int
    full_percent: Annotated[
        float,
        Field(description="Share of the ticks that show the listener in which its queue held more than its limit"),
    ]
    drops: Annotated[
        int | None, Field(description="By the socket; it counts more than overflows; null where no dump tells")
    ]
    overflows: Annotated[
        int | None,
        Field(
            description="At least so many of TcpExt.ListenOverflows were this listener's; the others' drops off;"
            " null where no two dumps tell"
        ),
    ]


class State(Written):
    """The most sockets that were in one state at a reading, once a second (TIME_WAIT: every five)."""

    side: Literal["client", "server"]
    port: int
    state: str
    most: int
    last: int


class Peer(Written):
    """The connections with one address."""

    peer: str
    server: str
    connections: int
    failed: int
    recovered: int


class Ports(Written):
    """TIME_WAIT on the instance's own side of its connections to one server, against its range of ports."""

    server: str
    time_wait_most: int
    range: Annotated[int | None, Field(description="How many ports net.ipv4.ip_local_port_range has")]


class Target(Written):
    """One observed network namespace."""

    instance: str
    name: str
    kind: str
    program: str | None
    peer: bool
    ended: Annotated[bool, Field(description="Whether it ended while it was observed")]
    cost: Cost
    kernel: Annotated[dict[str, int | None], Field(description="How much each counter grew; null where not known")]
    listeners: list[Listener]
    servers: list[Server]
    states: list[State]
    ports: list[Ports]
    peers: Annotated[list[Peer], Field(description=f"The {_PEERS_MAX} with the most failed connections, then the most")]


class Crossing(Written):
    """Connections that both a peer's capture and a target's have."""

    peer: str
    target: str
    both: int
    peer_only: Annotated[int, Field(description="Connections whose SYNs left the peer and never came to the target")]
    syns_lost_between: Annotated[int, Field(description="SYNs that left the peer and did not come to the target")]


class Connections(DerivedFile):
    """The account of one observation."""

    file = Path("derived") / "connections.json"

    contract: Annotated[Literal["connlab.connections/1"], Field(alias="schema")]
    scenario: str
    run: str
    seconds: Annotated[float | None, Field(description="How long was observed; null where nothing was recorded")]
    lacks: Annotated[list[str], Field(description="What the evidence lacks; what rests on it is unknown")]
    unexplained: Annotated[
        int | None, Field(description="Failed connections whose cause nothing proves; null without packets")
    ]
    targets: list[Target]
    crossings: list[Crossing]
    failed: list[FailedBehindOverflows]
    advice: list[Advice]
    start_us: Annotated[
        int | None, Field(description="When what was observed begins, Unix epoch; null where nothing was recorded")
    ] = None
    inspection: Annotated[
        Inspection | None, Field(description="What only files from elsewhere need; null where collectors watched")
    ] = None


def write(run: Run, observed: Observed) -> Connections:
    """Write connections.json and connections.parquet of an observed run into its derived/."""
    seen = observe(run.raw)
    inspected = inspection.build_inspection(run, seen, observed) if run.raw.inspected else None
    more = {"inspection": inspected, "start_us": seen.window.start_us if seen else None}
    account = _account(run, seen, observed).model_copy(update=more)
    for file in (TABLE, QUEUES, COUNTERS):
        (run.raw.folder / file).unlink(missing_ok=True)
    if seen is not None:
        seen.database.execute(sql(__name__, "queues"), {**seen.window.edges, "steps": STEPS})
        output.copy_rows(seen.database.execute, "SELECT * FROM ledger ORDER BY observer, id", run.raw.folder / TABLE)
        output.copy_rows(seen.database.execute, "SELECT * FROM queues ORDER BY server, step", run.raw.folder / QUEUES)
        _write_counters(run, seen)
    account.write(run.raw.folder)
    return account


def _write_counters(run: Run, seen: Observation) -> None:
    columns = dict.fromkeys(("from_us", "to_us", "growth"), "BIGINT")
    create(seen.database, "counters", {"instance": "VARCHAR", "counter": "VARCHAR"} | columns)
    for instance, samples in run.raw.samples.items():
        for row in counters.counter_growth(samples, seen.window, _KERNEL, STEPS):
            seen.database.execute("INSERT INTO counters VALUES (?, ?, ?, ?, ?)", [instance, *row])
    output.copy_rows(seen.database.execute, "SELECT * FROM counters ORDER BY ALL", run.raw.folder / COUNTERS)


def _account(run: Run, seen: Observation | None, observed: Observed) -> Connections:
    manifest, planned = run.raw.manifest, observed.targets
    account = Connections(
        contract="connlab.connections/1",
        scenario=manifest.scenario,
        run=manifest.run,
        seconds=None if seen is None else round((seen.window.end_us - seen.window.start_us) / 1e6, 3),
        lacks=_lacks(run, observed),
        unexplained=None,
        targets=[],
        crossings=[],
        failed=[],
        advice=[],
    )
    if seen is None:
        return account
    targets = [_target(run, seen, each) for each in planned]
    captured = has_rows(seen.database, "spans")
    unexplained = seen.row("SELECT count(*) AS count FROM ledger WHERE cause = 'unexplained'")["count"]
    listeners = [
        (target, listener) for target, found in zip(planned, targets, strict=True) for listener in found.listeners
    ]
    return account.model_copy(
        update={
            "unexplained": unexplained if captured else None,
            "targets": targets,
            "crossings": [
                _crossing(seen, peer.instance, target.instance)
                for peer in planned
                if peer.peer
                for target in planned
                if not target.peer
            ],
            "failed": [
                overflow_advice.failed(run, seen, each.server, each.overflows)
                for _, each in listeners
                if each.overflows
            ],
            "advice": [
                overflow_advice.advice(run, seen, target, each.server, each.limit)
                for target, each in listeners
                if each.overflows
            ],
        }
    )


_EVIDENCE = {Evidence.PACKETS, Evidence.COUNTERS, Evidence.TICKS, Evidence.SOCKETS, Evidence.TIMES}


def _lacks(run: Run, observed: Observed) -> list[str]:
    found = [f"{each.name} ended while it was observed" for each in observed.targets if each.ended]
    if observed.capture == "off":
        found.append("no packet was captured: the outcome of connections is unknown")
    if observed.capture == "handshakes":
        found.append("only handshakes were captured: whether a connection was answered is unknown")
    found += [
        f"{each.instrument}: {_with_own_names(observed, each)}"
        for each in run.health.problems
        if not (run.raw.inspected and _is_of_a_collector(each))
        # What a sampler costs belongs to what an observation does to a system.
        if each.instrument.startswith("sampler/") or each.spoils & _EVIDENCE
    ]
    return [*dict.fromkeys(found), *_clock_jumps(run, observed)]


# No capture of an incident is longer; one that seems to be had its clock set, or is of several.
_CAPTURE_DAYS_MAX = 30
_DAY_US = 86_400_000_000
# Packets of several processors or interfaces are written a few milliseconds out of order.
_BACKWARD_US_MAX = 1_000_000
_CLOCK_SET = "a clock was set, or it is of several captures; do not rely on its times"


def _clock_jumps(run: Run, observed: Observed) -> Iterator[str]:
    """Yield what is wrong with the times of a capture that was recorded elsewhere."""
    for each in observed.files:
        reduction = run.raw.reductions.get(each.instance)
        if each.kind != "capture" or reduction is None or reduction.lasts_us is None:
            continue
        if reduction.backward_us > _BACKWARD_US_MAX:
            back = format_us(reduction.backward_us)
            yield f"{each.name} has a packet that is {back} earlier than the one in front of it: {_CLOCK_SET}"
        elif (days := reduction.lasts_us // _DAY_US) > _CAPTURE_DAYS_MAX:
            yield f"{each.name} spans {days:,} days: {_CLOCK_SET}"


def _with_own_names(observed: Observed, problem: Problem) -> str:
    """Return a problem's message with the user's own name of a capture that was handed in."""
    instance = problem.instrument.partition("/")[2]
    named = [each.name for each in observed.files if each.kind == "capture" and each.instance == instance]
    return problem.message.replace("capture.pcap", ", ".join(named)) if named else problem.message


def _is_of_a_collector(problem: Problem) -> bool:
    """Return whether only a collector of the lab's own would have it otherwise; an inspection says what to record."""
    return not problem.instrument.startswith("capture/") or problem.message in (captures.ELSEWHERE, *recordings.UNTOLD)


def _target(run: Run, seen: Observation, target: ObservedTarget) -> Target:
    instance = target.instance
    return Target(
        instance=instance,
        name=target.name,
        kind=target.kind,
        program=target.program.name if target.program else None,
        peer=target.peer,
        ended=target.ended,
        cost=_cost(run, instance),
        kernel=_kernel(run, seen, instance),
        listeners=[
            _listener(run, instance, row)
            for row in seen.rows(sql(__name__, "listeners"), prefix=f"{instance}:", **seen.window.edges)
        ],
        servers=[Server.model_validate(row) for row in seen.rows(sql(__name__, "servers"), instance=instance)],
        states=_states(run, seen, instance),
        ports=_ports(run, seen, instance),
        peers=[Peer(**row) for row in seen.rows(sql(__name__, "peers"), instance=instance, most=_PEERS_MAX)],
    )


def _listener(run: Run, instance: str, row: Row) -> Listener:
    port = int(row["server"].rpartition(":")[2])
    ticks = run.raw.samples[instance].ticks
    of_ticks = [[each.drops for each in tick.listeners if each.port == port] for tick in ticks]
    if not run.raw.inspected and not any(drops is None for each in of_ticks for drops in each):
        return Listener.model_validate({**row, "port": port})
    # Of dumps, `ss -ltnm` alone tells it: two of these show how much it grew.
    told = [sum(known) for each in of_ticks if each and len(known := [n for n in each if n is not None]) == len(each)]
    drops = max(told[-1] - told[0], 0) if len(told) > 1 else None
    return Listener.model_validate({**row, "port": port, "drops": drops})


def _cost(run: Run, instance: str) -> Cost:
    sampler = run.health.reports.get(f"sampler/{instance}")
    sampled = sampler.figures.get("cpu_percent") if sampler else None
    capture = run.raw.captures.get(instance)
    report = (capture.report if capture else None) or {}
    took_us = (report.get("ended_us") or 0) - (report.get("started_us") or 0)
    return Cost(
        sampler_percent=sampled if isinstance(sampled, int | float) else None,
        capture_percent=round(100_000 * report["cpu_ms"] / took_us, 2)
        if took_us > 0 and "cpu_ms" in report and not (capture and capture.elsewhere)
        else None,
        packets=report.get("packets_captured"),
        packets_dropped=capture.dropped_packets if capture else None,
        capture_bytes=report.get("bytes"),
    )


def _kernel(run: Run, seen: Observation, instance: str) -> dict[str, int | None]:
    samples = run.raw.samples[instance]
    times_us = [tick.time_us for tick in samples.ticks]
    if len(times_us) < 2:  # noqa: PLR2004  two make a difference
        return dict.fromkeys(_KERNEL)
    first = max((n for n, time_us in enumerate(times_us) if time_us <= seen.window.start_us), default=0)
    last = min((n for n, time_us in enumerate(times_us) if time_us >= seen.window.end_us), default=len(times_us) - 1)
    series = {name: samples.series(name) for name in _KERNEL if name in samples.counters}
    return {name: int(series[name][last] - series[name][first]) if name in series else None for name in _KERNEL}


def _states(run: Run, seen: Observation, instance: str) -> list[State]:
    """Return the sockets by state; of clients' sides by the server's port."""
    most: dict[tuple[str, int, str], tuple[int, int]] = {}
    for record in run.raw.samples[instance].sockets:
        if not seen.window.start_us <= record["time_us"] <= seen.window.end_us:
            continue
        sums: dict[tuple[str, int, str], int] = {}
        for group in record["groups"]:
            key = (str(group.get("side")), int(group.get("port") or 0), str(group.get("state")))
            sums[key] = sums.get(key, 0) + group["count"]
        most = {key: (most.get(key, (0, 0))[0], 0) for key in most} | {
            key: (max(count, most.get(key, (0, 0))[0]), count) for key, count in sums.items()
        }
    return [
        State.model_validate({"side": side, "port": port, "state": state, "most": peak, "last": last})
        for (side, port, state), (peak, last) in sorted(most.items())
        if side in ("client", "server")
    ]


def _ports(run: Run, seen: Observation, instance: str) -> list[Ports]:
    """Return TIME_WAIT by the ends that a capture has: it lasts 60 s, so those that the instance keeps at once."""
    size = port_count(run.raw.manifest.sysctl(instance, PORT_RANGE))
    rows = seen.rows(sql(__name__, "time_wait_most"), instance=instance)
    return [Ports(**row, range=size) for row in rows]


def _crossing(seen: Observation, peer: str, target: str) -> Crossing:
    row = seen.row(sql(__name__, "crossing"), peer=peer, target=target)
    return Crossing(peer=peer, target=target, **row)
