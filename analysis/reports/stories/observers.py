"""What each observer recorded of a request, as moments: its client, the proxy, the server that answers, the lab."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from analysis.formatting import excerpt, format_count, format_us, format_us_range
from analysis.reports.stories.timeline import Event, Moment
from formats import manifest

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from analysis.diagnosis.joins import Row, Story
    from analysis.evidence.flows import Packet
    from analysis.reports.stories.server_state import Acceptance
    from analysis.reports.stories.timeline import Note

MILLISECOND_US = 1_000
_SECOND_US = 1_000_000
_GAVE_UP = {
    "timeout": "gives up connecting",
    "refused": "is refused",
    "reset": "is reset while connecting",
    "address-not-available": "has no port to connect from",
    "unreachable": "finds no route",
    "canceled": "ends while connecting",
    "half-open": "never completes the handshake, on purpose",
}
_ACTION_ENDS = {
    "pause": "has resumed {}",
    "restart": "has {} ready again",
    "start": "has {} ready again",
    "stop": "has stopped {}",
    "drain": "has stopped {}",
    "cpu": "has given {} its processors back",
    "filter": "lets everybody connect to {} again",
    "link": "has given the link of {} its own settings back",
}
# The lab's backend takes from the URL how long its handler works.
_ASKED_MS = re.compile(r"/api/delay\?(?:[^#]*&)?ms=([0-9]{1,9})(?:[&#]|$)")


def client_moments(
    case: Row,
    close: Row | None,
    dial_notes: tuple[Note, ...],
    sources: tuple[tuple[str, str], tuple[str, str]],
    beside: int = 0,
) -> Iterator[Moment]:
    """Tell a request as its client saw it.

    `close` says how its connection ended; it is None if that is not recorded, or came after another request.
    `dial_notes` are what else was seen as the dial began. `sources` are where request and dial stand. `beside` is how
    many other requests its connection carried when it was sent.
    """
    observer = case["instance"]
    requests, dials = sources
    who = f"user {case['vu']}" + ("" if case["iteration"] is None else f", iteration {case['iteration']}")
    begins = Event(case["time_us"], observer, f"begins {excerpt(case['name'])} ({who})", *requests)
    yield Moment(begins, "begins the request")
    if case["dial_time_us"] is not None:
        yield from _dial_moments(case, dials, dial_notes)
    if case["duration_us"] > 0:
        # Two clocks read one after the other: it is connected before it sends.
        connected_us = (case["dial_time_us"] or 0) + (case["dial_duration_us"] or 0)
        sent_us = max(case["end_us"] - case["duration_us"], connected_us)
        if case["tls_us"] > 0 and not case["reused"]:
            text = (
                f"has ended the TLS handshake, which took {format_us(case['tls_us'])}{_handshake_parts(case, 'flow')}"
            )
            yield Moment(Event(sent_us, observer, text, *requests), "has ended the TLS handshake")
        text = f", beside {format_count(beside, 'other request')} on the connection" if beside else ""
        if case["sent_again"]:
            first_us, first = sent_us - case["again_us"], f"on the connection of dial {case['first_dial']}"
            yield Moment(Event(first_us, observer, f"sends the request {first}", *requests), "sends the request")
            yield Moment(Event(sent_us, observer, f"sends the request again{text}", *requests), "sends it again")
        else:
            yield Moment(Event(sent_us, observer, f"sends the request{text}", *requests))
        if case["status"] > 0:
            first_us = case["end_us"] - case["receiving_us"]
            text = f"has the first byte of the answer, {format_us(case['waiting_us'])} later"
            yield Moment(Event(first_us, observer, text, *requests))
    yield _end_moment(case, requests)
    if close is not None:
        how = f" ({excerpt(close['error'])})" if close["error"] else ""
        text = f"closes the connection{how}; {close['bytes_sent']:,} bytes sent, {close['bytes_received']:,} received"
        yield Moment(Event(close["time_us"], observer, text, *dials))


def _handshake_parts(case: Row, prefix: str) -> str:
    """Return whom the TLS handshake of a connection waited for, by its packets; nothing where these do not tell."""
    names = ("client_hello", "server_hello", "client_reply", "tls_end")
    times_us = [case[f"{prefix}_{name}_time_us"] for name in names]
    if None in times_us:
        return ""
    hello_us, answer_us, reply_us, end_us = times_us
    text = f": {format_us(answer_us - hello_us)} for the ServerHello, {format_us(reply_us - answer_us)} for the"
    text += " client's reply"
    if end_us > reply_us:
        text += f", {format_us(end_us - reply_us)} for the server's"
    return f"{text}, by the packets"


def _handshake_took(case: Row, prefix: str) -> str:
    """Return how long the TLS handshake of a connection took, and its parts; nothing where its packets do not tell."""
    hello_us, end_us = case[f"{prefix}_client_hello_time_us"], case[f"{prefix}_tls_end_time_us"]
    if hello_us is None or end_us is None:
        return ""
    return f"; its TLS handshake took {format_us(end_us - hello_us)}{_handshake_parts(case, prefix)}"


def _dial_moments(case: Row, source: tuple[str, str], notes: tuple[Note, ...]) -> Iterator[Moment]:
    observer, began_us, took = case["instance"], case["dial_time_us"], format_us(case["dial_duration_us"])
    if case["reused"]:
        # By HTTP/2, requests share a connection that is still being made.
        made_us = max(began_us + case["dial_duration_us"], case["flow_tls_end_time_us"] or 0)
        if made_us > case["time_us"]:
            text = f"has the connection of dial {case['dial']}, which was made meanwhile for another request"
            text += _handshake_took(case, "flow")
        else:
            text = f"reuses the connection of dial {case['dial']}, opened {format_us(case['time_us'] - began_us)} ago"
        yield Moment(Event(case["time_us"] + case["blocked_us"], observer, text, *source))
        return
    remote = f" {excerpt(case['dial_remote'])}" if case["dial_remote"] else ""
    yield Moment(Event(began_us, observer, f"dials{remote} (dial {case['dial']})", *source, notes))
    ended_us, label = began_us + case["dial_duration_us"], None
    if case["dial_error"] is None:
        text = f"is connected after {took}, from {excerpt(case['dial_local'])}"
    else:
        text = f"gives up the dial after {took}: {excerpt(case['dial_error'])}"
    if case["dial_error_kind"] is not None:
        label = _GAVE_UP.get(case["dial_error_kind"], "fails to connect")
    yield Moment(Event(ended_us, observer, text, *source), label)


def _end_moment(case: Row, source: tuple[str, str]) -> Moment:
    total = format_us(case["total_us"])
    if case["error_code"] == 0:
        text = f"has the whole answer, status {case['status']}, {total} after it began"
    else:
        status = f"status {case['status']}, " if case["status"] else ""
        reason = f": {excerpt(case['error'])}" if case["error"] else ""
        text = f"ends the request {total} after it began: {status}k6's error {case['error_code']}{reason}"
    error = f" (k6's error {case['error_code']})" if case["error_code"] else ""
    label = (
        f"has the answer: status {case['status']}" if case["status"] else f"ends the request without an answer{error}"
    )
    return Moment(Event(case["end_us"], case["instance"], text, *source), label)


def proxy_moments(
    story: Story,
    asked_us: int,
    name: Callable[[str | None, int | None], str],
    notes: Callable[[Row], tuple[Note, ...]],
    logs: tuple[str, str],
) -> Iterator[Moment]:
    """Tell a request as the proxy saw it; nothing if its access log has no line of it.

    Its times have milliseconds, its error log's have seconds. It cuts them down, so that they may seem to be before
    what they follow: `asked_us` is when the request came, as exactly as that is known. `name` names an address and a
    port; `notes` gives what else was seen as the proxy tried a server; `logs` are its two.
    """
    line = story.line
    if line is None:
        return
    observer = line["instance"]
    file, error_log = logs
    last_us = asked_us
    untold = list(story.errors)

    def moment(time_us: int, text: str, found: tuple[Note, ...] = (), label: str | None = None) -> Moment:
        nonlocal last_us
        last_us = max(time_us, last_us)
        place = f"line {line['line']}"
        return Moment(Event(last_us, observer, text, file, place, found, resolution_us=MILLISECOND_US), label)

    def errors(time_us: int) -> Iterator[Moment]:
        """Within its second, an error is what a try was given up for, or what the request ended with."""
        for error in [each for each in untold if each["time_us"] <= time_us]:
            untold.remove(error)
            text, place = f"error log: {excerpt(error['text'])}", f"line {error['line']}"
            at_us = min(time_us, error["time_us"] + _SECOND_US)
            yield Moment(Event(at_us, observer, text, error_log, place, resolution_us=_SECOND_US))

    took_ms = round(1000 * (line["request_time"] or 0))
    end_us = 1000 * line["time_ms"]
    numbered = line["connection"] is not None
    place = f" (request {line['connection_requests']} of its connection {line['connection']})" if numbered else ""
    if line["request_time"] is not None:
        yield moment(end_us - 1000 * took_ms, f"has the request's first byte{place}")
    for each in story.tries:
        if each["server_port"] is None:
            yield moment(each["start_us"], f"has no server to try in {excerpt(each['server'])}")
            continue
        of = f" (try {each['try']} of {each['tries']})" if each["tries"] > 1 else ""
        server = name(each["server_address"], each["server_port"])
        yield moment(each["start_us"], f"tries {server}{of}", notes(each))
        is_last = each["try"] == each["tries"]
        answered_us = story.case["up_server_first_data_time_us"] if is_last else None
        secured = _secured(story.case, each) if is_last else ""
        for time_us, text in _try_outcome(each, answered_us or 0, secured):
            yield moment(time_us, text)
        if each["header_us"] is None:
            yield from errors(last_us)
    text, label = (
        f"logs status {line['status']}, {took_ms:,} ms after that byte",
        f"logs it with status {line['status']}",
    )
    yield moment(end_us, text, label=label)
    yield from errors(max([end_us, *(each["time_us"] for each in untold)]))


def _secured(case: Row, each: Row) -> str:
    """Return how long the TLS handshake of a try's connection took, if one was made in the try."""
    # A log of milliseconds cuts them down.
    made = (case["up_client_hello_time_us"] or 0) >= each["start_us"] - MILLISECOND_US
    return _handshake_took(case, "up") if made else ""


def _try_outcome(each: Row, answered_us: int, secured: str) -> Iterator[tuple[int, str]]:
    """Tell what became of a try.

    `answered_us` is when its answer was captured, 0 if that is not known; `secured` tells of its TLS handshake.
    """
    start_us = each["start_us"]
    if each["connect_us"] is not None:
        yield start_us + each["connect_us"], f"is connected to it after {each['connect_us'] // 1000:,} ms{secured}"
    if each["header_us"] is not None:
        text = f"has the header of its answer after {each['header_us'] // 1000:,} ms, status {each['status']}"
        yield max(start_us + each["header_us"], answered_us), text
    elif each["response_us"] is not None:
        status = "" if each["status"] is None else f", status {each['status']}"
        yield start_us + each["response_us"], f"gives up after {each['response_us'] // 1000:,} ms{status}"


def acceptance_moment(
    found: Acceptance, server: str, case: Row, source: tuple[str, str], notes: tuple[Note, ...]
) -> Moment:
    """Tell when a server accepted a connection: they leave the queue in the order in which they came."""
    end_us = case["end_us"]
    if found.queued_us >= end_us:
        later = format_us(found.queued_us - end_us)
        text = f"does not have the connection yet: it came into the accept queue {later} later"
        return Moment(Event(end_us, server, text, *source, notes))
    if found.latest_us is None or found.earliest_us >= end_us:
        waited = format_us(end_us - found.queued_us)
        text = f"has not accepted the connection yet: it has been in the accept queue for {waited}"
        return Moment(Event(end_us, server, text, *source, notes))
    waited = format_us_range(found.earliest_us - found.queued_us, found.latest_us - found.queued_us)
    text = f"has accepted the connection by now; it was in the accept queue for {waited}"
    label = f"accepted between {_bounds(found.earliest_us - case['time_us'], found.latest_us - case['time_us'])}"
    return Moment(Event(found.latest_us, server, text, *source, notes), label if found.latest_us <= end_us else None)


def told_acceptance_moment(told: Row, server: str, case: Row, source: tuple[str, str]) -> Moment:
    """Tell when a server accepted a connection, by its kernel."""
    waited = "" if told["wait_us"] is None else f" after {format_us(told['wait_us'])} in the accept queue"
    program = f" ({excerpt(told['program'])})" if told["program"] else ""
    label = "accepted" if told["told_us"] <= case["end_us"] else None
    text = f"accepts the connection{waited}{program}, says its kernel"
    return Moment(Event(told["told_us"], server, text, *source), label)


def _bounds(least_us: int, most_us: int) -> str:
    """Return two moments within a request, in the unit of a ladder's times."""
    if most_us < _SECOND_US:
        return f"{least_us / 1000:,.1f} and {most_us / 1000:,.1f} ms"
    return f"{least_us / _SECOND_US:,.3f} and {most_us / _SECOND_US:,.3f} s"


def handler_moments(
    packets: Sequence[Packet], accepted: Acceptance | None, case: Row, server: str, file: str, *, entered: bool
) -> Iterator[Moment]:
    """Tell how long a server had a request before it began to answer.

    `accepted` is None where it is not known when the server took the connection, or that was long ago. `entered`:
    whether the connection ever came into the accept queue.
    """
    asked = next((packet for packet in packets if packet.from_client and packet.data_bytes), None)
    if asked is not None and not entered:
        text = "never had the connection: it acknowledged nothing that the client sent after its SYN"
        yield Moment(Event(case["end_us"], server, text, file, f"frame {asked.number}"))
        return
    if asked is None or (accepted and accepted.latest_us is None):
        return
    answers = (packet for packet in packets if not packet.from_client and packet.data_bytes)
    answer = next((packet for packet in answers if packet.number > asked.number), None)
    until_us = case["end_us"] if answer is None else answer.time_us
    if accepted and accepted.earliest_us >= until_us:
        return
    bounds = (accepted.earliest_us, accepted.latest_us or until_us) if accepted else (asked.time_us, asked.time_us)
    begun_us = [min(max(asked.time_us, bound), until_us) for bound in bounds]
    took = format_us_range(until_us - begun_us[1], until_us - begun_us[0])
    wanted = _ASKED_MS.search(case["url"] or "")
    asks = f", of which the URL asks the handler to take {int(wanted[1]):,} ms" if wanted else ""
    does = "has not answered" if answer is None else "begins to answer"
    text = f"{does}, {took} after it had both the connection and the request{asks}"
    place = "" if answer is None else f" and {answer.number}"
    yield Moment(Event(until_us, server, text, file, f"frame {asked.number}{place}"))


def action_moments(case: Row, actions: Iterable[manifest.ActionRecord], servers: Collection[str]) -> Iterator[Moment]:
    """Tell of the lab's actions on servers of a request that overlap it: their beginning, and their end within it."""
    for place, action in enumerate(actions, start=1):
        start_us, over_us = action.start_us, action.end_us
        if action.concerns not in servers or start_us is None or start_us >= case["end_us"]:
            continue
        if over_us is not None and over_us <= case["time_us"]:
            continue
        source = (manifest.FILE, f"action {place}")
        ends = _ACTION_ENDS.get(action.do, "is done with {}")
        yield Moment(Event(start_us, "lab", f"begins to {action.words}", *source))
        if over_us is not None and over_us < case["end_us"]:
            yield Moment(Event(over_us, "lab", ends.format(action.instance), *source))
