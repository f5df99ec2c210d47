"""What the ledger says of the requests and of the identities."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from analysis.figures.catalogue import Compute, Figure
from analysis.figures.run import Run
from analysis.health import Evidence
from analysis.ledger.causes import UNEXPLAINED
from analysis.manifest import PROXIES
from analysis.values import Kind, Unknown, Value, merge, unknown

if TYPE_CHECKING:
    from analysis.joins import Joined

_SOURCE = "derived/ledger.json"

_REQUESTS = {Evidence.REQUESTS: "k6"}
_OF_CLIENT = {Evidence.REQUESTS: "k6", Evidence.DIALS: "k6", Evidence.CLOCK: ""}
_OF_SERVERS = {Evidence.COUNTERS: "sampler", Evidence.TICKS: "sampler"}


def _counted(sql: str, *, proven: bool) -> Compute:
    """A count of requests; where it is of causes, and there is anything to explain, all evidence must be sound."""

    def compute(run: Run, found: Mapping[str, str]) -> Value:
        joined = run.joined
        if isinstance(joined, Unknown):
            return joined
        cause = found.get("cause", UNEXPLAINED).replace("_", "-")

        def count(_window: object) -> Value:
            return int(joined.rows(sql, cause=cause)[0]["value"])

        if not proven or not _to_explain(joined):
            return run.resting_on(run.k6, _REQUESTS, count)
        spoilt = spoilt_evidence(run, joined)
        return spoilt or run.resting_on(run.k6, _OF_CLIENT, count)

    return compute


def _to_explain(joined: Joined) -> int:
    return int(joined.rows("SELECT count(*) AS value FROM attributed")[0]["value"])


# The window may begin just after the first tick that there is, and a SYN needs one before it.
_UNSAMPLED = """
    SELECT count(*) AS value FROM queue_proof JOIN connections USING (observer, id)
     WHERE in_window AND syns_unsampled > 0
"""


def spoilt_evidence(run: Run, joined: Joined) -> Unknown | None:
    """What the servers' evidence for causes lacks; None if it is sound."""
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
        if hop.server in PROXIES:
            logs = {Evidence.ACCESS: "access", Evidence.ERRORS: "errors"}
            found.append(run.resting_on(servers, logs, lambda _: True))
        missing += [each for each in found if isinstance(each, Unknown)]
    unsampled = joined.rows(_UNSAMPLED)[0]["value"]
    if unsampled:
        missing.append(unknown(f"there are no samples around the SYNs of {unsampled} connections"))
    return merge(*missing) if missing else None


def _identities(status: str) -> Compute:
    """How many identities have a status; while one is unknown, so is how many hold and how many fail."""

    def compute(run: Run, _found: Mapping[str, str]) -> Value:
        if isinstance(run.joined, Unknown):
            return run.joined
        balances = [balance for hop in run.hops for balance in hop.balances]
        reasons = [unknown(f"{each.identity.id}: {each.why}") for each in balances if each.why is not None]
        if reasons and status != "unknown":
            return merge(*reasons)
        return sum(balance.holds == status for balance in balances)

    return compute


def _outcomes(outcome: str) -> Compute:
    return _counted(f"SELECT count(*) AS value FROM cases WHERE outcome = '{outcome}' AND $cause <> ''", proven=False)  # noqa: S608  a name of our own


_WITHOUT_PORT = """
    SELECT count(*) AS failed, count(*) FILTER (held >= ports) AS short
      FROM port_shortages JOIN instances USING (instance) WHERE role = $role
"""


def _without_port(role: str, evidence: dict[Evidence, str]) -> Compute:
    def compute(run: Run, _found: Mapping[str, str]) -> Value:
        joined, instances = run.joined, run.instances(role)
        if isinstance(joined, Unknown):
            return joined
        found = joined.rows(_WITHOUT_PORT, role=role)[0]
        if not found["failed"]:
            return run.resting_on(instances, evidence, lambda _: 0)
        return spoilt_evidence(run, joined) or run.resting_on(
            instances, evidence | {Evidence.CLOCK: ""}, lambda _: int(found["short"])
        )

    return compute


_BY_CAUSE = "SELECT count(*) AS value FROM attributed WHERE cause = $cause"

_IDENTITY_MEANINGS = {
    "holding": ("true", "Identities that hold: both observers counted the same."),
    "failed": ("false", "Identities that do not."),
    "unknown": ("unknown", "Identities of which a side is unknown."),
}


def _figure(pattern: str, meaning: str, compute: Callable[[Run, Mapping[str, str]], Value]) -> Figure:
    return Figure(pattern, Kind.NUMBER, "", meaning, _SOURCE, compute)


FIGURES: tuple[Figure, ...] = (
    _figure(
        "ledger.unexplained",
        "Requests that failed, or were slower than the scenario's bound, and whose cause nothing proves.",
        _counted(_BY_CAUSE, proven=True),
    ),
    _figure(
        "ledger.cause.<cause>",
        "Requests that failed or were slow for this cause; [causes.md](causes.md) lists them.",
        _counted(_BY_CAUSE, proven=True),
    ),
    _figure("ledger.requests.failed", "Requests that failed.", _outcomes("failed")),
    _figure(
        "ledger.requests.slow", "Requests that succeeded, and took longer than the scenario's bound.", _outcomes("slow")
    ),
    _figure(
        "ledger.dials_without_port",
        "Dials for which there was no port, of which the capture shows that the whole range was held.",
        _without_port("k6", {Evidence.DIALS: "k6"}),
    ),
    Figure(
        "ledger.gateway_dials_without_port",
        Kind.NUMBER,
        "",
        "The same of the gateway's dials.",
        _SOURCE,
        _without_port("gateway", {Evidence.DIALS: "dials"}),
        of_role="gateway",
    ),
    *(
        _figure(f"ledger.identities.{name}", meaning, _identities(status))
        for name, (status, meaning) in _IDENTITY_MEANINGS.items()
    ),
)
