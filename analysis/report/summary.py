"""The first section: the verdict in a sentence, the story in four answers, predictions, and the instruments' health."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from analysis.report import lessons, words
from analysis.report.record import Record, Row

UNEXPLAINED = "unexplained"

_VERDICTS = {
    "reproduced": "Reproduced",
    "not-reproduced": "Not reproduced",
    "inconclusive": "Inconclusive",
}
# The knobs that make up the places of a Tomcat: two of the model's figures are made from them.
_PLACES = frozenset({"accept-queue-drop", "waited-in-accept-queue", "waited-for-syn-retry", "waited-for-ack-retry"})


@dataclass(frozen=True)
class Cause:
    """One cause, and how many requests it has.

    Attributes:
        name: as in the ledger.
        count: failed and slow requests.
        lesson: in words.
        because: the lesson's clause, with the roles of the hop.
        where: where on the path it happened.
        hop: the roles of that hop.
    """

    name: str
    count: int
    lesson: lessons.Lesson
    because: str
    where: str
    hop: tuple[str, str]


@dataclass(frozen=True)
class Turn:
    """A knob that bears on the main cause."""

    knob: str
    value: str
    default: str | None
    does: str


@dataclass(frozen=True)
class Summary:
    """What the first section says.

    Attributes:
        verdict: as in verdict.json.
        word: the same for a reader.
        sentence: what happened, in one sentence.
        causes: of the requests that failed or were slow, the most frequent first.
        what, where: the first two answers, one sentence each.
        why: the third, a paragraph each.
        turns: the knobs of the fourth.
        way_on: commands that go on from here.
    """

    verdict: str
    word: str
    sentence: str
    causes: list[Cause]
    what: list[str]
    where: list[str]
    why: list[str]
    turns: list[Turn]


def of_run(record: Record) -> Summary:
    """Sum a run up."""
    causes = causes_of(record)
    main = next(iter(causes), None)
    return Summary(
        verdict=record.verdict["verdict"],
        word=_VERDICTS[record.verdict["verdict"]],
        sentence=_sentence(record, main),
        causes=causes,
        what=_what(record, causes),
        where=_where(record, causes),
        why=_why(record, main),
        turns=_turns(record, main),
    )


def causes_of(record: Record) -> list[Cause]:
    """The causes of a run, those of failures first, the most frequent first."""
    failed = _failed_by_cause(record)
    counts = dict(record.ledger["causes"])
    if record.ledger["unexplained"]:
        counts[UNEXPLAINED] = record.ledger["unexplained"]
    found = sorted(counts.items(), key=lambda item: (-failed.get(item[0], 0), -item[1], item[0]))
    return [_cause(record, name, count) for name, count in found if count]


def _failed_by_cause(record: Record) -> dict[str, int]:
    if not record.has("requests"):
        return {}
    rows = record.rows("SELECT cause, count(*) AS count FROM requests WHERE outcome = 'failed' GROUP BY cause")
    return {row["cause"]: row["count"] for row in rows}


def _cause(record: Record, name: str, count: int) -> Cause:
    lesson = lessons.of_cause(name)
    client, server = _hop(record, name)
    ends = {"client": _named(client), "server": _named(server)}
    return Cause(name, count, lesson, lesson.because.format(**ends), lesson.where.format(**ends), (client, server))


def _named(role: str) -> str:
    return {"k6": "the client", "nginx": "nginx"}.get(role, f"the {role}")


# Causes that a proxy can meet as well as the client does, and what of a request tells that it was the proxy.
_CONNECTING = "dial_error_kind IS NULL AND access_line IS NOT NULL"
_OF_PROXY = {
    "ephemeral-ports-exhausted": _CONNECTING,
    "connection-refused": _CONNECTING,
    "accept-queue-drop": _CONNECTING,
    "connect-timeout": _CONNECTING,
    "waited-for-syn-retry": "coalesce(up_syn_us, 0) > coalesce(syn_us, 0)",
    "waited-for-ack-retry": "coalesce(up_ack_us, 0) > coalesce(ack_us, 0)",
    "waited-in-accept-queue": "coalesce(up_queue_us, 0) > coalesce(queue_us, 0)",
}
_AT_THE_END = frozenset({"upstream-timeout", "upstream-failed", "waited-for-a-thread", "slow-handler"})


def _hop(record: Record, cause: str) -> tuple[str, str]:
    """The roles of the hop on which most of a cause's requests were hurt."""
    roles = record.path if len(record.path) > 1 else ["client", "server"]
    at_the_end = cause in _AT_THE_END
    if cause in _OF_PROXY and len(roles) > 2 and record.has("requests"):  # noqa: PLR2004  client, proxy, backend
        rows = record.rows(
            f"SELECT avg(({_OF_PROXY[cause]})::INTEGER) AS share FROM requests WHERE cause = $cause",  # noqa: S608  above
            cause=cause,
        )
        at_the_end = (rows[0]["share"] or 0) > 0.5  # noqa: PLR2004  most of them
    return (roles[-2], roles[-1]) if at_the_end else (roles[0], roles[1])


def _sentence(record: Record, main: Cause | None) -> str:
    requests, manifest = record.ledger["requests"], record.manifest
    if manifest["status"] != "complete":
        reason = f": {manifest['reason']}" if manifest.get("reason") else ""
        return f"The run was {manifest['status']}{reason}. What was recorded until then is shown."
    if requests is None:
        return f"Nothing is known of the requests: {'; '.join(record.ledger['lacks'])}."
    total, failed, slow = requests["total"], requests["failed"], requests["slow"]
    if not failed and not slow:
        return f"All {words.count(total, 'request')} were answered well." if total else "No request was made."
    count = f"{failed:,} of {words.count(total, 'request')} failed" if failed else ""
    if not failed:
        count = f"{slow:,} of {words.count(total, 'request')} were slow"
    if main is None:
        return f"{count}."
    if main.name == UNEXPLAINED:
        return f"{count}, and nothing on record proves why."
    all_of_it = main.count >= (failed or slow)
    return f"{count}, {'' if all_of_it else 'most of them '}because {main.because}."


def _what(record: Record, causes: list[Cause]) -> list[str]:
    requests = record.ledger["requests"]
    if requests is None:
        return ["Nothing is known of the requests."]
    found = [
        (
            f"Of {words.count(requests['total'], 'request')}, {requests['failed']:,} failed, {requests['slow']:,} had"
            f" their answer late{_bound(record)}, and {requests['ok'] - requests['slow']:,} had it in time."
        )
    ]
    found += [f"{cause.count:,}: {cause.lesson.label}." for cause in causes]
    longest = record.figures.get("client.dial_ms.failed.max")
    if requests["failed"] and isinstance(longest, int | float):
        found.append(f"Who got no connection waited for it, for up to {words.spoken(longest)}.")
    return found


def _bound(record: Record) -> str:
    bound = record.manifest.get("slow_ms")
    return f" (after more than {words.spoken(bound)})" if bound else ""


def _where(record: Record, causes: list[Cause]) -> list[str]:
    found = list(dict.fromkeys(cause.where for cause in causes))[:2] or ["Nowhere: nothing was lost on the path."]
    for hop in record.ledger["hops"]:
        lost = hop["dropped_syns"]
        if lost["fatal"] or lost["healed"]:
            found.append(
                f"The kernel of the {hop['to']} left {words.count((lost['fatal'] or 0) + (lost['healed'] or 0), 'SYN')}"
                f" unanswered: {lost['fatal'] or 0:,} of connections that failed,"
                f" {lost['healed'] or 0:,} of connections that came about later."
            )
    return found


def _why(record: Record, main: Cause | None) -> list[str]:
    if main is None:
        return ["No request failed or was slow."] if record.ledger["requests"] else ["There is no evidence to say."]
    found = [main.because[0].upper() + main.because[1:] + "."]
    found += main.lesson.explains
    if main.name == UNEXPLAINED:
        found += _hints(record)
    if main.name in _PLACES and (places := _places(record)):
        found.append(places)
    return found


def _hints(record: Record) -> list[str]:
    """What the kernels counted may point to a cause that nothing proves for any one request."""
    found = []
    for role in record.path[1:]:
        overflows = record.figures.get(f"kernel.{role}.TcpExt.ListenOverflows")
        if isinstance(overflows, int) and overflows:
            found.append(
                f"A hint: the kernel of the {role} counted {words.count(overflows, 'overflow')} of its accept queue."
                " Which requests that cost, only packets tell: run it again with capture.mode=headers."
            )
    return found


def _places(record: Record) -> str | None:
    """How the number of those who fail comes about."""
    capacity, backlog = record.figures.get("model.accept_capacity"), record.figures.get("model.listen_backlog")
    users, connections = record.knob("load.users"), record.knob("backend.max_connections")
    if record.path[1:] != ["backend"] or not isinstance(capacity, int) or not isinstance(backlog, int):
        return None
    text = (
        f"Tomcat serves {connections:,} at once (backend.max_connections), and the queue holds {backlog:,} + 1"
        f" (backend.accept_count): {words.count(capacity, 'place')}"
    )
    if record.knob("load.workload") not in ("users", "long_polling") or not isinstance(users, int):
        return f"{text}."
    left = f", so {users - capacity:,} found none" if users > capacity else ", enough for all"
    return f"{text} for {words.count(users, 'user')}{left}."


def _turns(record: Record, main: Cause | None) -> list[Turn]:
    if main is None:
        return []
    knobs: dict[str, Row] = record.manifest.get("knobs", {})
    named = {name.format(client=main.hop[0]): does for name, does in main.lesson.knobs.items()}
    return [
        Turn(
            name,
            words.knob_value(name, knobs[name]["value"]),
            None if knobs[name].get("default") is None else words.knob_value(name, knobs[name]["default"]),
            does,
        )
        for name, does in named.items()
        if name in knobs and _role_of(name) in main.hop
    ]


def _role_of(knob: str) -> str:
    role = knob.removeprefix("kernel.").partition(".")[0]
    return "k6" if role == "load" else role


def health(record: Record) -> list[dict[str, Any]]:
    """Each instrument: its name, whether all of its evidence can be used, its problems, and its own figures."""
    problems: dict[str, list[str]] = {}
    for problem in record.verdict["problems"]:
        spoils = f" (spoils: {', '.join(problem['spoils'])})" if problem["spoils"] else ""
        problems.setdefault(problem["instrument"], []).append(problem["message"] + spoils)
    instruments = dict(record.verdict["health"])
    for name in problems:
        instruments.setdefault(name, {"healthy": False, "figures": {}})
    return [
        {
            "name": name,
            "healthy": instrument["healthy"],
            "problems": problems.get(name, []),
            "figures": ", ".join(
                f"{key.replace('_', ' ')} {words.number(value)}" for key, value in instrument["figures"].items()
            ),
        }
        for name, instrument in sorted(instruments.items())
    ]
