"""The first section: the verdict in a sentence, the story in four answers, predictions, and the instruments' health."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from analysis import formatting
from analysis.diagnosis.causes import UNEXPLAINED
from analysis.formatting import format_count, format_ms
from analysis.reports.advice import Advice, Reason, advise_on_cause, find_reasons, name_role, too_late_sentence
from analysis.reports.run_record import Record, Row
from formats import role as role_file

_VERDICTS = {
    "reproduced": "Reproduced",
    "not-reproduced": "Not reproduced",
    "inconclusive": "Inconclusive",
}


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
        reasons: why requests failed or were slow, the main one first.
        what, where: the first two answers, one sentence each.
        why: the third, a paragraph each.
        turns: the knobs of the fourth.
        advice: which of them to set to what, and how that comes about; None where nothing is to be changed.
    """

    verdict: str
    word: str
    sentence: str
    reasons: list[Reason]
    what: list[str]
    where: list[str]
    why: list[str]
    turns: list[Turn]
    advice: Advice | None


def summarize(record: Record) -> Summary:
    """Sum a run up."""
    found = find_reasons(record)
    main = next(iter(found), None)
    return Summary(
        verdict=record.verdict["verdict"],
        word=_VERDICTS[record.verdict["verdict"]] + _came_out(record),
        sentence=_sentence(record, main),
        reasons=found,
        what=_what(record, found),
        where=_where(record, found),
        why=_why(record, main),
        turns=_turns(record, main),
        advice=advise_on_cause(record.manifest, record.ledger, main.cause.name, main.count) if main else None,
    )


def _came_out(record: Record) -> str:
    statuses = [each["status"] for each in record.verdict["predictions"]]
    return f": {statuses.count('true')} of {format_count(len(statuses), 'prediction')} came true" if statuses else ""


def _sentence(record: Record, main: Reason | None) -> str:
    requests, manifest = record.ledger["requests"], record.manifest
    if manifest["status"] != "complete":
        reason = f": {manifest['reason']}" if manifest.get("reason") else ""
        return f"The run was {manifest['status']}{reason}. What was recorded until then is shown."
    if requests is None:
        return f"Nothing is known of the requests: {'; '.join(record.ledger['lacks'])}."
    total, failed, slow = requests["total"], requests["failed"], requests["slow"]
    if not failed and not slow:
        return _all_well(total)
    bad = "failed" if failed else "was slow" if slow == 1 else "were slow"
    count = f"{failed or slow:,} of {format_count(total, 'request')} {bad}"
    if main is None:
        return f"{count}."
    part = _part(main.failed if failed else main.count, failed or slow)
    if main.cause is UNEXPLAINED:
        return f"{count}, and {f'of {part} ' if part else ''}nothing on record proves why."
    return f"{count}, {f'{part} ' if part else ''}because {main.because}."


def _all_well(total: int) -> str:
    if total == 1:
        return "The only request was answered well."
    return f"All {total:,} requests were answered well." if total else "No request was made."


def _part(count: int, of: int) -> str:
    """Return how many of them; nothing where it is all."""
    if count == of:
        return ""
    return "most of them" if 2 * count > of else f"{count:,} of them"


def _what(record: Record, found_reasons: list[Reason]) -> list[str]:
    requests = record.ledger["requests"]
    if requests is None:
        return ["Nothing is known of the requests."]
    total, failed, slow = requests["total"], requests["failed"], requests["slow"]
    bound, answered = record.manifest.get("slow_ms"), total - failed - slow
    late, in_time = (f" {_were(slow)} slow (more than {format_ms(bound)}),", " in time") if bound else ("", "")
    found = [f"Of {format_count(total, 'request')}, {failed:,} failed,{late} and {_were(answered)} answered{in_time}."]
    for reason in found_reasons:
        found += [f"{reason.failed:,} failed: {reason.cause.label}."] if reason.failed else []
        answered = reason.count - reason.failed
        found += [f"{_were(answered)} slow: {reason.cause.label}."] if answered else []
    longest = record.figures.get("client.dial_ms.failed.max")
    if requests["failed"] and isinstance(longest, int | float):
        found.append(f"Failed clients waited up to {format_ms(longest)}.")
    return found


def _were(count: int) -> str:
    return f"{count:,} {'was' if count == 1 else 'were'}"


def _where(record: Record, found_reasons: list[Reason]) -> list[str]:
    places: dict[str, list[str]] = {}
    for reason in found_reasons:
        who = "What failed" if reason.failed else "What was slow"
        places.setdefault(reason.where, []).append(who)
    found = [f"{' and '.join(dict.fromkeys(who)).capitalize()}: {_continued(where)}" for where, who in places.items()]
    for hop in record.ledger["hops"]:
        lost, recovered = (hop["dropped_syns"][kind] or 0 for kind in ("lost", "recovered"))
        kernel = f"The kernel of {name_role(record, hop['to'])}"
        if lost:
            found.append(f"{kernel} dropped {_syns(lost)}{_each(record, hop, lost)}.")
        if recovered:
            dropped = f"It dropped {format_count(recovered, 'SYN')}" if lost else f"{kernel} dropped {_syns(recovered)}"
            found.append(f"{dropped} of connections that a later SYN made: seconds of waiting, and no error.")
    return found


def _syns(count: int) -> str:
    return f"{format_count(count, 'SYN')} (connection request{'' if count == 1 else 's'})"


def _continued(sentence: str) -> str:
    """Return a sentence after a colon; names keep their capital."""
    first = sentence.partition(" ")[0]
    return sentence[0].lower() + sentence[1:] if first in ("Between", "At", "On", "Not", "See") else sentence


def _each(record: Record, hop: Row, lost: int) -> str:
    """Return how many SYNs each failure cost, where that is the same for all."""
    failed, patience_ms = record.figures.get(f"flows.{hop['to']}.unanswered"), record.knob("load.connect_timeout")
    if not isinstance(failed, int) or not failed or lost % failed or not isinstance(patience_ms, int):
        return ""
    each = f", {lost // failed} for each of {failed:,} connections" if failed > 1 else ", all of one connection"
    return each if hop["from"] != record.path[0] else f"{each} in its connect timeout of {format_ms(patience_ms)}"


def _why(record: Record, main: Reason | None) -> list[str]:
    if main is None:
        return ["No request failed or was slow."] if record.ledger["requests"] else ["There is no evidence to say."]
    found = [main.because[0].upper() + main.because[1:] + "."]
    found += main.cause.explains
    if main.cause is UNEXPLAINED:
        found += _hints(record)
    if main.cause.accept_queue and (places := _places(record, main)):
        found.append(places)
    if main.cause.accept_queue and (missed := too_late_sentence(record, main)):
        found.append(missed)
    return found


def _hints(record: Record) -> list[str]:
    """Return what the kernels counted may point to a cause that nothing proves for any one request."""
    found = []
    for role in record.path[1:]:
        overflows = record.figures.get(f"kernel.{role}.TcpExt.ListenOverflows")
        if isinstance(overflows, int) and overflows:
            found.append(
                f"A hint: the kernel of {name_role(record, role)} counted {format_count(overflows, 'overflow')} of"
                " its accept queue. Which requests that cost, only packets tell: run it again with"
                " capture.mode=headers."
            )
    return found


def _places(record: Record, main: Reason) -> str | None:
    """Return how the number of those who fail comes about."""
    capacity, backlog = record.figures.get("model.accept_capacity"), record.figures.get("model.listen_backlog")
    server = record.request_path[-1]
    role = record.roles.get(server)
    if len(record.request_path) > 2 or role is None or not isinstance(capacity, int) or not isinstance(backlog, int):  # noqa: PLR2004  client and server
        return None
    limits = {what: role.knob(name) for what, name in role.limits.model_dump(exclude_none=True).items()}
    connections, users = record.knob(limits.get("connections", "")), record.knob("load.users")
    if not isinstance(connections, int):
        return None
    instances = len(record.instances(server)) or 1
    named = name_role(record, server)
    serves = f"{named[0].upper()}{named[1:]} serves" if instances == 1 else f"Each instance of {named} serves"
    at_once = f"{connections:,} at once ({limits['connections']})"
    its = "the" if instances == 1 else "its"
    queue = f" ({limits['backlog']})" if "backlog" in limits else ""
    if main.cause.accept_queue == "held":
        kept = record.knob(limits.get("idle", ""))
        idle = f" An idle client keeps its place for {format_ms(kept)} ({limits['idle']})." if kept else ""
        return (
            f"{serves} {at_once}; up to {backlog:,} + 1 more wait in {its} queue{queue} until one of these goes.{idle}"
        )
    text = (
        f"{serves} {at_once}, and {its} queue holds {backlog:,} + 1{queue}: {format_count(capacity, 'place')}"
        f"{'' if instances == 1 else ' in all'}"
    )
    if record.knob("load.workload") not in ("users", "long_polling") or not isinstance(users, int):
        return f"{text}."
    left = ", enough for all of them at once"
    if users > capacity:
        left = f", so {main.failed:,} found none" if main.failed == users - capacity else ", more than there are places"
    return f"{text} for {format_count(users, 'user')}{left}."


def _turns(record: Record, main: Reason | None) -> list[Turn]:
    if main is None:
        return []
    knobs = record.knobs
    ends = {"client": main.hop[0], "server": main.hop[1]}
    named = {_knob(name.format(**ends), record.roles): does.format(**ends) for name, does in main.cause.knobs.items()}
    return [
        Turn(
            name,
            formatting.format_knob(knobs[name]),
            None if knobs[name].get("default") is None else formatting.format_knob(knobs[name], "default"),
            does,
        )
        for name, does in named.items()
        if name is not None and name in knobs and _role_of(name, record) in main.hop and not record.idle(name)
    ]


def _knob(name: str, declared: Mapping[str, role_file.Role]) -> str | None:
    """Return a cause's knob by its full name; None where the role has nothing that bounds this."""
    role, _, limit = name.partition(".")
    return declared[role].limiting_knobs().get(limit) if role in declared else name


def _role_of(knob: str, record: Record) -> str:
    role = knob.removeprefix("kernel.").partition(".")[0]
    return record.path[0] if role == "load" else role


def instrument_rows(record: Record) -> list[dict[str, Any]]:
    """Return each instrument: its name, whether all of its evidence can be used, its problems, and its own figures."""
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
                f"{key.replace('_', ' ')} {formatting.format_value(value)}"
                for key, value in instrument["figures"].items()
            ),
        }
        for name, instrument in sorted(instruments.items())
    ]
