"""What the ledger says of the requests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from analysis.database import Row, sql
from analysis.diagnosis import attribution, joins
from analysis.diagnosis.causes import UNEXPLAINED
from analysis.diagnosis.health import CLIENT, Evidence
from analysis.diagnosis.joins import Joined
from analysis.expressions.values import Unknown, Value, merge, unknown
from analysis.figures.declaration import Compute, Figure, of_joined
from analysis.figures.run import Run

_figure = partial(Figure, source="derived/ledger.json")

_REQUESTS = {Evidence.REQUESTS: CLIENT}
_OF_CLIENT = {Evidence.REQUESTS: CLIENT, Evidence.DIALS: CLIENT, Evidence.TIMES: ""}
_OF_SERVERS = {Evidence.COUNTERS: "sampler", Evidence.TICKS: "sampler"}


@of_joined
def _by_cause(run: Run, joined: Joined, found: Mapping[str, str]) -> Value:
    """Return the requests of a cause; where there is anything to explain, all evidence must be sound."""
    causes = attribution.count_causes(joined)["total"]
    count = causes.get(found.get("cause", UNEXPLAINED.name).replace("_", "-"), 0)
    if not causes:
        return run.resting_on(run.clients, _REQUESTS, lambda _: count)
    # A file of results has no dials of its own; where one is needed for a cause, its request is unexplained.
    rests_on = {**_REQUESTS, Evidence.TIMES: ""} if run.raw.with_results else _OF_CLIENT
    return spoilt_evidence(run, joined) or run.resting_on(run.clients, rests_on, lambda _: count)


def _with_outcome(outcome: str) -> Compute:
    @of_joined
    def compute(run: Run, joined: Joined, _found: Mapping[str, str]) -> Value:
        return run.resting_on(run.clients, _REQUESTS, lambda _: joins.count_outcomes(joined)[outcome])

    return compute


def spoilt_evidence(run: Run, joined: Joined) -> Unknown | None:
    """Return what the servers' evidence for causes lacks; None if it is sound."""
    missing = []
    for hop in joined.hops:
        servers = run.raw.manifest.of_role(hop.server)
        observers = run.observers_to(servers)
        if isinstance(observers, Unknown):
            missing.append(observers)
            continue
        found = [
            run.resting_on(observers, {Evidence.PACKETS: "capture"}, lambda _: True),
            run.resting_on(servers, _OF_SERVERS, lambda _: True),
        ]
        if run.raw.manifest.kind_of(hop.server) == "proxy":
            logs = {Evidence.ACCESS: "access", Evidence.ERRORS: "errors"}
            found.append(run.resting_on(servers, logs, lambda _: True))
        missing += [each for each in found if isinstance(each, Unknown)]
    unsampled = joined.row(sql(__name__, "unsampled"))["count"]
    if unsampled:
        missing.append(unknown(f"there are no samples around the SYNs of {unsampled} connections"))
    return merge(*missing) if missing else None


def _without_port(of: str | None, evidence: dict[Evidence, str]) -> Compute:
    @of_joined
    def compute(run: Run, joined: Joined, _found: Mapping[str, str]) -> Value:
        role = of or run.raw.manifest.client
        instances = run.instances(role)
        found = joined.row(sql(__name__, "without_port"), role=role)
        if not found["failed"]:
            return run.resting_on(instances, evidence, lambda _: 0)
        return spoilt_evidence(run, joined) or run.resting_on(
            instances, evidence | {Evidence.TIMES: ""}, lambda _: int(found["short"])
        )

    return compute


def count_connections(run: Run, server: str) -> Row | Unknown:
    """Return the connections to a server that began in the window: `total`, `failed`, `causes` and more."""
    joined, servers = run.joined, run.instances(server)
    if isinstance(joined, Unknown):
        return joined
    observers = run.observers_to(servers)
    if isinstance(observers, Unknown):
        return observers
    return joined.row(sql(__name__, "connections_by_cause"), servers=servers)


def _of_connections(value: Callable[[Row, Mapping[str, str]], int]) -> Compute:
    """Return a count of the connections to a server; what failed needs sound captures and samples to be told apart."""

    def compute(run: Run, found: Mapping[str, str]) -> Value:
        counted, servers = count_connections(run, found["server"]), run.instances(found["server"])
        if isinstance(counted, Unknown):
            return counted
        observers = run.observers_to(servers)
        if isinstance(observers, Unknown):
            return observers
        whole = run.resting_on(observers, {Evidence.PACKETS: "capture", Evidence.TIMES: ""}, lambda _: True)
        sampled = run.resting_on(servers, _OF_SERVERS, lambda _: True)
        missing = [each for each in (whole, sampled) if isinstance(each, Unknown)]
        return merge(*missing) if missing else value(counted, found)

    return compute


FIGURES: tuple[Figure, ...] = (
    _figure(
        "ledger.unexplained",
        "Requests that failed, or were slower than the scenario's bound, without a proven cause.",
        _by_cause,
    ),
    _figure(
        "ledger.cause.<cause>",
        "Requests that failed or were slow for this cause; [causes.md](causes.md) lists them.",
        _by_cause,
    ),
    _figure(
        "ledger.connections.<server>.failed",
        "Connections to the server that began in the window and failed: refused, never answered, never accepted, reset,"
        " closed or given up without an answer.",
        _of_connections(lambda row, _: int(row["failed"])),
    ),
    _figure(
        "ledger.connections.<server>.cause.<cause>",
        "Connections to the server that failed for this cause.",
        _of_connections(lambda row, found: int(row["causes"].get(found["cause"].replace("_", "-"), 0))),
    ),
    _figure(
        "ledger.connections.<server>.delayed.<cause>",
        "Connections to the server that were made late for this cause, and did not fail: `waited_for_syn_retry` or"
        " `syn_lost`.",
        _of_connections(lambda row, found: int(row["delayed"].get(found["cause"].replace("_", "-"), 0))),
    ),
    _figure(
        "ledger.connections.<server>.unexplained",
        "Connections to the server that failed without a proven cause.",
        _of_connections(lambda row, _: int(row["causes"].get(UNEXPLAINED.name, 0))),
    ),
    _figure("ledger.requests.failed", "Requests that failed.", _with_outcome("failed")),
    _figure(
        "ledger.requests.slow",
        "Requests that succeeded but took longer than the scenario's bound.",
        _with_outcome("slow"),
    ),
    _figure(
        "ledger.dials_without_port",
        "Dials that found no free port; the capture shows that the whole range was in use.",
        _without_port(None, {Evidence.DIALS: CLIENT}),
    ),
    _figure(
        "ledger.gateway_dials_without_port",
        "The same for the gateway's dials.",
        _without_port("gateway", {Evidence.DIALS: "dials"}),
        of_role="gateway",
    ),
)
