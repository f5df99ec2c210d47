"""What an overflowing listener cost its clients, and what to change: of an observed system."""

from typing import Annotated

from pydantic import Field

from analysis.database import sql
from analysis.diagnosis.observed import Observation
from analysis.figures import Run, estimate
from analysis.figures.estimate import Estimate
from analysis.output import Written
from formats.manifest import SOMAXCONN, Target

# What a queue of half a thousand costs is little; a bigger one than the burst needs costs memory and waiting.
_ROUND_TO = 64
# From so many answers on, and so far apart, their pace tells how long a place in the queue takes.
_ANSWERS_MIN, _SLOW_S = 3, 0.5


class FailedBehindOverflows(Written):
    """How many connections failed behind one listener's overflows."""

    server: str
    overflows: int
    failed: Annotated[
        int | None, Field(description="By packets: the server never had the connection for a full queue; null without")
    ]
    never_answered: Annotated[int | None, Field(description="Those of them of which no SYN was answered")]
    never_accepted: Annotated[int | None, Field(description="Those of them that only their client took for connected")]
    given_up: Annotated[
        int | None, Field(description="By packets: connected, and gone before the server answered; null without")
    ]
    recovered: Annotated[int | None, Field(description="By packets: a later SYN found room; null without")]
    least: Annotated[int | None, Field(description="By the estimator, if none got in on a later SYN")]
    most: Annotated[int | None, Field(description="By the estimator")]
    rests_on: Annotated[str, Field(description="What the estimator knows of the clients, or lacks")]


class Advice(Written):
    """What to change for one listener."""

    server: str
    limit: int
    places: Annotated[
        int | None, Field(description="The most connections that wanted a place at once; null without packets")
    ]
    value: Annotated[int | None, Field(description="A backlog that would have held them; null without packets")]
    program: str | None
    setting: Annotated[str | None, Field(description="The program's setting; null where the lab does not know it")]
    how: str | None
    somaxconn: Annotated[int | None, Field(description="The kernel's own bound in that namespace; null if not read")]
    raise_somaxconn: Annotated[bool, Field(description="Whether the kernel's bound is in the way")]
    source: str | None
    arrivals_per_second: float | None
    accepted_per_second: float | None
    says: list[str]


_BY_PACKETS = ("failed", "never_answered", "never_accepted", "given_up", "recovered")


def failed(run: Run, seen: Observation, server: str, overflows: int) -> FailedBehindOverflows:
    """Count what failed behind a listener's overflows, by packets and by the estimator."""
    known = _has_packets(seen, server)
    row = seen.row(sql(__name__, "failed_at"), server=server)
    least, most, rests_on = _bounds(run, overflows, row["syns_min"], row["syns_max"])
    return FailedBehindOverflows(
        server=server,
        overflows=overflows,
        **{name: row[name] if known else None for name in _BY_PACKETS},
        least=least,
        most=most,
        rests_on=rests_on,
    )


def _bounds(run: Run, overflows: int, syns_min: int | None, syns_max: int | None) -> tuple[int | None, int | None, str]:
    observed = run.raw.manifest.observed
    timeout_ms = observed.connect_timeout_ms if observed else None
    if timeout_ms is not None:
        bounds = Estimate(overflows, estimate.plausible_clients(timeout_ms, {})).bounds
        return bounds.least_if_none_got_in, bounds.most, f"clients that wait {timeout_ms / 1000:g} s for a connection"
    if syns_min and syns_max:
        rests_on = f"{syns_min}" if syns_min == syns_max else f"{syns_min} to {syns_max}"
        bounds = estimate.bounds_by_syns(overflows, syns_min, syns_max)
        how = f"the {rests_on} SYNs that each failed connection sent in the capture"
        return bounds.least_if_none_got_in, bounds.most, how
    return None, None, "the clients' connect timeout is unknown: give --connect-timeout"


def _has_packets(seen: Observation, server: str) -> bool:
    return bool(seen.rows("SELECT 1 FROM spans WHERE observer = $observer", observer=server.partition(":")[0]))


def advice(run: Run, seen: Observation, target: Target, server: str, limit: int) -> Advice:
    """Return which limit was reached, and what raises it."""
    places = _places(seen, server)
    value = None if places is None else -(-places // _ROUND_TO) * _ROUND_TO
    text = run.raw.manifest.sysctl(target.instance, SOMAXCONN)
    somaxconn = int(text) if text and text.isdecimal() else None
    in_the_way = somaxconn is not None and (limit == somaxconn or (value is not None and value > somaxconn))
    arrivals, accepted = (None, None) if run.raw.inspected else _rates(seen, server)
    program = target.program
    says = [f"The accept queue of {server} holds {limit} + 1 connections, and was full when clients connected."]
    if program and program.setting:
        says.append(f"{program.name} sets it by {program.setting}{f' ({program.how})' if program.how else ''}.")
    elif program:
        says.append(f"{program.name} has no setting for it{f': {program.how}' if program.how else ''}.")
    else:
        says.append("The lab does not know the program: look for the backlog that it gives to listen(2).")
    if places is not None:
        says.append(
            f"{places} connections wanted a place at once, so a backlog of {value} would have held them; the lab rounds"
            f" up to a multiple of {_ROUND_TO}."
        )
        if (pause_s := _pause_between_answers(seen, server)) is not None:
            says.append(
                f"Its answers began {pause_s:g} s apart, so the last of {places} would wait for about"
                f" {pause_s * places:.0f} s: a longer queue helps clients that wait so long, more workers help all."
            )
    if in_the_way:
        says.append(f"{SOMAXCONN} is {somaxconn} in that namespace, and limits every backlog: raise it too.")
    if arrivals is not None and accepted is not None:
        says.append(
            f"{arrivals:g} connections per second arrived and {accepted:g} were accepted. A longer queue only helps"
            " against a burst; if more keep arriving than are accepted, the server needs more capacity."
        )
    return Advice(
        server=server,
        limit=limit,
        places=places,
        value=value,
        program=program.name if program else None,
        setting=program.setting if program else None,
        how=program.how if program else None,
        somaxconn=somaxconn,
        raise_somaxconn=in_the_way,
        source=program.source if program else None,
        arrivals_per_second=arrivals,
        accepted_per_second=accepted,
        says=says,
    )


def _places(seen: Observation, server: str) -> int | None:
    """Return the most connections that waited for a place, or had one and were not accepted, at one time."""
    if not _has_packets(seen, server):
        return None
    row = seen.row(sql(__name__, "places"), server=server)
    places: int | None = row["places"]
    return places


def _pause_between_answers(seen: Observation, server: str) -> float | None:
    """Return how long after each other a server began its answers, in s; None where they are few, or soon."""
    row = seen.row(sql(__name__, "answers"), server=server)
    if row["count"] < _ANSWERS_MIN:
        return None
    pause_s = (row["last_us"] - row["first_us"]) / 1e6 / (row["count"] - 1)
    return round(pause_s, 1) if pause_s >= _SLOW_S else None


def _rates(seen: Observation, server: str) -> tuple[float | None, float | None]:
    seconds = (seen.window.end_us - seen.window.start_us) / 1e6
    if seconds <= 0 or not _has_packets(seen, server):
        return None, None
    row = seen.row(sql(__name__, "came_and_taken"), server=server)
    return round(row["came"] / seconds, 1), round(row["taken"] / seconds, 1)
