"""The first section: the verdict in a sentence, what to change, what failed and why, and the instruments' health."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from analysis.database import Row
from analysis.diagnosis.causes import UNEXPLAINED
from analysis.diagnosis.causes.answering import PROXY_FULL, SERVER_FULL
from analysis.formatting import format_count, format_ms, format_races, format_value
from analysis.reports.advice import Advice, Reason, advise_on_cause, find_reasons, name_role, too_late_sentence
from analysis.reports.chart_series import machine_busy
from analysis.reports.conditions import knob_rows
from analysis.reports.run_record import Record
from analysis.verdicts.ledger_file import HeldConnections, HeldPlaces, Streams, TurnedAway
from formats import role as role_file

_VERDICTS = {
    "reproduced": "The run went as predicted",
    "not-reproduced": "The run did not go as predicted",
    "inconclusive": "Inconclusive",
}


@dataclass(frozen=True)
class Summary:
    """What the first section says.

    Attributes:
        verdict: as in verdict.json.
        word: the same for a reader.
        sentence: what happened, in one sentence.
        cautions: why the figures may be the machine's own, one sentence each.
        reasons: why requests failed or were slow, the main one first.
        advice: which knob to set to what, and how that comes about; None where nothing is to be changed.
        turns: the knobs that bear on the main cause, as `conditions.knob_rows` has them, and what each does.
        counts: how many requests failed, were slow and were answered.
        what: what failed and where, a sentence each.
        why: how the main cause comes about, a paragraph each.
    """

    verdict: str
    word: str
    sentence: str
    cautions: list[str]
    reasons: list[Reason]
    advice: Advice | None
    turns: list[Row]
    counts: str
    what: list[str]
    why: list[str]


def summarize(record: Record) -> Summary:
    """Sum a run up."""
    found = find_reasons(record)
    main = next(iter(found), None)
    return Summary(
        verdict=record.verdict["verdict"],
        word=_word(record.verdict),
        sentence=_sentence(record, main),
        cautions=_cautions(record),
        reasons=found,
        advice=advise_on_cause(record.manifest, record.ledger, main.cause.name, main.count, main.hop) if main else None,
        turns=_turns(record, main) if main else [],
        counts=_counts(record),
        what=_what(record, found),
        why=_why(record, main) if main else [],
    )


def _word(verdict: Mapping[str, Any]) -> str:
    """Return what the verdict is about: the predictions, and not how the requests fared."""
    held = held_predictions(verdict)
    return f"{_VERDICTS[verdict['verdict']]}: {held}" if held else _VERDICTS[verdict["verdict"]]


def held_predictions(verdict: Mapping[str, Any]) -> str:
    """Return how many predictions of a run held, in words; nothing if it has none."""
    statuses = [each["status"] for each in verdict["predictions"]]
    if not statuses:
        return ""
    held, of = statuses.count("true"), format_count(len(statuses), "prediction")
    others = [
        f"{count:,} {name}"
        for status, name in (("false", "false"), ("unknown", "unknown"), ("not-applicable", "not applicable"))
        if (count := statuses.count(status))
    ]
    if not others:
        return f"all {of} held" if held > 1 else "its prediction held"
    return f"{held:,} of {of} held, {', '.join(others)}"


def _sentence(record: Record, main: Reason | None) -> str:
    requests, manifest = record.ledger["requests"], record.manifest
    if manifest.status != "complete":
        reason = f": {manifest.reason}" if manifest.reason else ""
        return f"The run was {manifest.status}{reason}. This page shows what was recorded until then."
    if requests is None:
        return f"No request can be counted: {'; '.join(record.ledger['lacks'])}."
    total, failed, slow = requests["total"], requests["failed"], requests["slow"]
    if not failed and not slow:
        return {0: "No request was made.", 1: "The only request succeeded."}.get(
            total, f"All {total:,} requests succeeded."
        )
    bad = "failed" if failed else "was slow" if slow == 1 else "were slow"
    count = f"{failed or slow:,} of {format_count(total, 'request')} {bad}"
    if main is None:
        return f"{count}."
    share, of = main.failed if failed else main.count, failed or slow
    part = "" if share == of else "most of them" if 2 * share > of else f"{share:,} of them"
    if main.cause is UNEXPLAINED:
        return f"{count}. For {part or 'them'}, no record proves the cause."
    return f"{count}, {f'{part} ' if part else ''}because {main.because}."


# Readings are rounded, and those of several clocks may be a little off.
_NO_IDLE_PERCENT = 0.5


def _cautions(record: Record) -> list[str]:
    """Return in how many seconds of the load no processor was idle: delays in them may be the machine's own."""
    measured = next((each for each in record.phases if each.name == "measure"), None)
    if measured is None:
        return []
    end_us = measured.end_us or math.inf
    busy = [value for at_us, value in machine_busy(record) if measured.start_us <= at_us <= end_us]
    full = sum(value >= 100 - _NO_IDLE_PERCENT for value in busy)
    if not full:
        return []
    seconds = f"{full:,} of {format_count(len(busy), 'second')}"
    what = f"The processors had no idle time in {seconds} of the load."
    return [f"{what} Times measured then may be the machine's own delays."]


def _counts(record: Record) -> str:
    requests = record.ledger["requests"]
    if requests is None:
        return "No request can be counted."
    total, failed, slow = requests["total"], requests["failed"], requests["slow"]
    bound, answered = record.manifest.slow_ms, total - failed - slow
    late, in_time = (f" {_were(slow)} slow (more than {format_ms(bound)}),", " in time") if bound else ("", "")
    return f"Of {format_count(total, 'request')}, {failed:,} failed,{late} and {_were(answered)} answered{in_time}."


def _what(record: Record, reasons: list[Reason]) -> list[str]:
    """Return each cause with its requests; then how long failed clients waited, and which kernel dropped SYNs."""
    found = []
    for reason in reasons:
        slow = reason.count - reason.failed
        counts = [f"{reason.failed:,} failed"] * bool(reason.failed) + [f"{_were(slow)} slow"] * bool(slow)
        # The sentence above has said why of the main one.
        more = reason.where if reason is reasons[0] else f"{reason.because[0].upper()}{reason.because[1:]}."
        because = f": {reason.cause.label} ({reason.cause.name}). {more}"
        found.append(" and ".join(counts) + (" without a proven cause." if reason.cause is UNEXPLAINED else because))
    longest = record.figures.get("client.dial_ms.failed.max")
    if reasons and record.ledger["requests"]["failed"] and isinstance(longest, int | float):
        found.append(f"Failed clients waited up to {format_ms(longest)}.")
    if streams := record.ledger.get("streams"):
        found.append(Streams(**streams).sentences)
    races = filter(None, map(format_races, record.ledger["hops"]))
    return [*found, *_dropped(record), *(f"{one}." for one in races)]


def _were(count: int) -> str:
    return f"{count:,} {'was' if count == 1 else 'were'}"


def _dropped(record: Record) -> list[str]:
    found = []
    for hop in record.ledger["hops"]:
        lost, recovered = (hop["dropped_syns"][kind] or 0 for kind in ("lost", "recovered"))
        kernel = f"The kernel of {name_role(record, hop['to'])}"
        if lost:
            found.append(f"{kernel} dropped {_syns(lost)}{_each(record, hop, lost)}.")
        if recovered:
            dropped = f"It dropped {format_count(recovered, 'SYN')}" if lost else f"{kernel} dropped {_syns(recovered)}"
            found.append(f"{dropped} of connections that succeeded on a retry: the client waited, and saw no error.")
    return found


def _syns(count: int) -> str:
    return f"{format_count(count, 'SYN')} (connection request{'' if count == 1 else 's'})"


def _each(record: Record, hop: Row, lost: int) -> str:
    """Return how many SYNs each failure cost, where that is the same for all."""
    failed = record.figures.get(f"flows.{hop['to']}.unanswered")
    patience_ms = record.manifest.integer_of("load.connect_timeout")
    if not isinstance(failed, int) or not failed or lost % failed or patience_ms is None:
        return ""
    each = f", {lost // failed} for each of {failed:,} connections" if failed > 1 else ", all of one connection"
    return (
        each if hop["from"] != record.manifest.path[0] else f"{each} in its connect timeout of {format_ms(patience_ms)}"
    )


def _why(record: Record, main: Reason) -> list[str]:
    # Only the sentence of a complete run says why.
    complete = record.manifest.status == "complete"
    found = [] if complete else [f"{main.because[0].upper()}{main.because[1:]}."]
    found += main.cause.paragraphs
    if main.cause.name == PROXY_FULL:
        found += [HeldPlaces(**held).sentences for held in record.ledger.get("places", [])]
    if main.cause.name == SERVER_FULL:
        found += [TurnedAway(**one).sentences for one in record.ledger.get("turned_away", [])]
    if main.cause is UNEXPLAINED:
        found += _hints(record)
    if main.cause.accept_queue:
        found += filter(None, (_places(record, main), too_late_sentence(record, main)))
        found += [HeldConnections(**held).sentences for held in record.ledger.get("holders", [])]
    return found


def _hints(record: Record) -> list[str]:
    """Return what the kernels counted, which may point to a cause that no record of a request proves."""
    found = []
    for role in record.manifest.path[1:]:
        overflows = record.figures.get(f"kernel.{role}.TcpExt.ListenOverflows")
        if isinstance(overflows, int) and overflows:
            found.append(
                f"The kernel of {name_role(record, role)} counted {format_count(overflows, 'overflow')} of its accept"
                " queue, which may be the cause. Only packets prove it: run it again with capture.mode=headers."
            )
    return found


def _places(record: Record, main: Reason) -> str | None:
    """Return how the number of those who fail comes about."""
    capacity, backlog = record.figures.get("model.accept_capacity"), record.figures.get("model.listen_backlog")
    manifest, (*others, server) = record.manifest, record.manifest.request_path
    role = manifest.roles.get(server)
    if others[1:] or role is None or not isinstance(capacity, int) or not isinstance(backlog, int):
        return None
    limits = {what: role.knob(name) for what, name in role.limits.model_dump(exclude_none=True).items()}
    connections, users = manifest.integer_of(limits.get("connections", "")), manifest.integer_of("load.users")
    if connections is None:
        return None
    instances = len(manifest.of_role(server)) or 1
    named = name_role(record, server)
    serves = f"{named[0].upper()}{named[1:]} serves" if instances == 1 else f"Each instance of {named} serves"
    at_once = f"{connections:,} at once ({limits['connections']})"
    its = "the" if instances == 1 else "its"
    queue = f" ({limits['backlog']})" if "backlog" in limits else ""
    if main.cause.accept_queue == "held":
        kept = manifest.integer_of(limits.get("idle", ""))
        idle = f" An idle client keeps its place for {format_ms(kept)} ({limits['idle']})." if kept else ""
        wait = f"up to {backlog:,} + 1 more wait in {its} accept queue{queue} until one of these ends"
        return f"{serves} {at_once}; {wait}.{idle}"
    text = (
        f"{serves} {at_once}, and {its} accept queue holds {backlog:,} + 1{queue}: {format_count(capacity, 'place')}"
        f"{'' if instances == 1 else ' in all'}"
    )
    if manifest.value_of("load.workload") not in ("users", "long_polling") or users is None:
        return f"{text}."
    left = ", enough for all of them"
    if users > capacity:
        left = f", so {main.failed:,} found none" if main.failed == users - capacity else ", too few for all of them"
    return f"{text} for {format_count(users, 'user')}{left}."


def _turns(record: Record, main: Reason) -> list[Row]:
    knobs = {row["name"]: row for row in knob_rows(record)}
    client, server = main.hop
    ends = {"client": client, "server": server}
    people = {end: name_role(record, role) for end, role in ends.items()}
    named = {
        _knob(name.format(**ends), record.manifest.roles): does.format(**people)
        for name, does in main.cause.knobs.items()
    }
    # A connection that is closed after its request is never idle.
    if client == record.manifest.path[0] and (
        record.manifest.value_of("load.workload") == "tcp" or record.manifest.value_of("load.keep_alive") is False
    ):
        named.pop(_knob(f"{server}.idle", record.manifest.roles), None)
    return [
        knobs[name] | {"does": does}
        for name, does in named.items()
        if name is not None and name in knobs and _role_of(name, record) in main.hop
    ]


def _knob(name: str, declared: Mapping[str, role_file.Role]) -> str | None:
    """Return a cause's knob by its full name; None where the role has nothing that bounds this."""
    role, _, limit = name.partition(".")
    return declared[role].limiting_knobs().get(limit) if role in declared else name


def _role_of(knob: str, record: Record) -> str:
    role = knob.removeprefix("kernel.").partition(".")[0]
    return record.manifest.path[0] if role == "load" else role


def instrument_rows(record: Record) -> list[dict[str, Any]]:
    """Return each instrument: its name, whether all of its evidence can be used, its problems, and its own figures."""
    problems: dict[str, list[str]] = {}
    for problem in record.verdict["problems"]:
        spoils = f" (affects: {', '.join(problem['spoils'])})" if problem["spoils"] else ""
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
                f"{key.replace('_', ' ')} {format_value(value)}" for key, value in instrument["figures"].items()
            ),
        }
        for name, instrument in sorted(instruments.items())
    ]
