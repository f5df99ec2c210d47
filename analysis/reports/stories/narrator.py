"""Tells requests of a run, for the terminal, the ladders and the page: what each observer recorded, by time."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from analysis.database import sql
from analysis.evidence import result_files
from analysis.formatting import excerpt, format_count, format_us
from analysis.reports.stories import observers
from analysis.reports.stories.packets import (
    build_view,
    capture_file,
    handshake_length,
    next_request_us,
    split_segments,
)
from analysis.reports.stories.server_state import Acceptance, ServerStates, acceptance
from analysis.reports.stories.timeline import Event, Moment, RequestTimeline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from analysis.diagnosis.joins import Joined, Row, Story
    from analysis.evidence.flows import Packet
    from analysis.evidence.rawrun import RawRun
    from analysis.reports.stories.packets import Carrier, PacketView, Segment
    from analysis.reports.stories.timeline import AttributedCause, Note, Queue

# What of one connection a reader may want to read.
_MOMENTS_MAX = 40


class Narrator:
    """Tells requests of one run."""

    def __init__(self, raw: RawRun, joined: Joined) -> None:
        self.raw = raw
        self.joined = joined
        self._states = ServerStates(raw)

    @cached_property
    def hosts(self) -> dict[str, str]:
        """Return the run's addresses, and whose they are."""
        addresses = self.raw.manifest.addresses
        return {address: instance for instance, found in addresses.items() for address in found}

    @cached_property
    def measure_us(self) -> int | None:
        """Return when the measurement began."""
        measured = self.raw.manifest.phase("measure")
        return measured.start_us if measured else None

    def name(self, address: str | None, port: int | None = None) -> str:
        """Return a socket by its instance's name, by its address if that is not one of the run's."""
        host = self.hosts.get(address or "", excerpt(address))
        return host if port is None else f"{host}:{port}"

    def timeline(self, story: Story, carriers: list[Carrier], cause: AttributedCause | None) -> RequestTimeline:
        """Tell one request, with the packets of the connections that carried it."""
        case = story.case
        return RequestTimeline(
            **request_head(case),
            start_us=case["time_us"],
            measure_us=self.measure_us,
            cause=cause,
            events=[moment.event for moment in self.moments(story, carriers)],
            missing=list(self._missing(story, carriers)),
            views=[self.view(carrier) for carrier in carriers if carrier.packets],
        )

    def moments(self, story: Story, carriers: list[Carrier]) -> list[Moment]:
        """Return what happened to a request, in the order of time."""
        case = story.case
        first_hop = [carrier for carrier in carriers if carrier.is_first_hop and carrier.packets]
        dial_notes = () if first_hop else self._notes(self.hosts.get(_host(case["dial_remote"])), case["dial_time_us"])
        accepted = self._acceptances(story)
        found = [
            *observers.client_moments(case, self._close(case), dial_notes, self._records_of(case), self._beside(case)),
            *(self._accepts(case, prefix, each) for prefix, each in accepted.items()),
            *(moment for carrier in carriers for moment in self._packets(carrier)),
            *self._handler(case, carriers, accepted),
            *observers.proxy_moments(
                story, _asked_us(case, first_hop), self.name, self._try_notes, self._logs_of(story.line)
            ),
            *self._own_line(case),
            *observers.action_moments(case, self.raw.manifest.actions, self._servers(case)),
        ]
        return sorted(found, key=lambda moment: moment.event.time_us)

    def _records_of(self, case: Row) -> tuple[tuple[str, str], tuple[str, str]]:
        """Return where a request and its dial stand in what the client wrote; a file of results has both in one row."""
        instance, places = case["instance"], self.raw.places
        results = {each: file for each, file, _ in self.raw.manifest.logged(result_files.FORMATS)}
        if file := results.get(instance):
            shown = places.shown(places.role(instance, file))
            return (shown, f"row {case['id']}"), (shown, f"row {case['dial']}")
        requests, dials = (places.shown(places.role(instance, name)) for name in ("requests.jsonl", "dials.jsonl"))
        return (requests, f"id {case['id']}"), (dials, f"id {case['dial']}")

    def _logs_of(self, line: Row | None) -> tuple[str, str]:
        """Return the files of a proxy's access log and of its error log."""
        if line is None:
            return "", ""
        places, instance = self.raw.places, line["instance"]
        return self._log_of(instance), places.shown(places.role(instance, "error.log"))

    def _log_of(self, instance: str) -> str:
        """Return the file of an instance's access log."""
        declared = {each: file for each, file, _ in self.raw.manifest.declared_logs()}
        return self.raw.places.shown(self.raw.places.log(instance, declared.get(instance, "access.jsonl")))

    def _own_line(self, case: Row) -> Iterator[Moment]:
        """Tell what the server that answered logged of the request itself."""
        if case["own_line"] is None:
            return
        took_us, instance = case["own_took_us"], case["own_instance"]
        took = "" if took_us is None else f", after {took_us // 1000:,} ms by its own account"
        text = f"logs status {case['own_status']}{took}"
        place = f"line {case['own_line']}"
        resolution_us = case["own_resolution_us"] or 1000
        log = self._log_of(instance)
        yield Moment(Event(case["own_time_us"], instance, text, log, place, resolution_us=resolution_us))

    def view(self, carrier: Carrier) -> PacketView:
        """Return how to see the packets of a carrier."""
        name = " → ".join(self.name(*end) for end in (carrier.connection.client, carrier.connection.server))
        return build_view(name, carrier, capture_file(self.raw.places, carrier.observer))

    def _close(self, case: Row) -> Row | None:
        """Return the end of a request's connection at the client, if this was the last request over it."""
        if next_request_us(self.joined, case) is not None:
            return None
        query = "SELECT * FROM closes WHERE instance = $instance AND id = $dial"
        return next(iter(self.joined.rows(query, instance=case["instance"], dial=case["dial"])), None)

    def _beside(self, case: Row) -> int:
        """Return how many other requests a request's connection carried when it was sent, by HTTP/2 or gRPC."""
        if case["protocol"] not in ("http2", "grpc"):
            return 0
        key = {column: case[column] for column in ("instance", "id", "dial")}
        found = self.joined.rows(sql(__name__, "beside_request"), **key, sent_us=case["time_us"] + case["blocked_us"])
        return int(found[0]["count"])

    def _servers(self, case: Row) -> set[str]:
        """Return the servers that a request had to do with, as far as that is known."""
        hosts = (self.hosts.get(_host(case[key])) for key in ("dial_remote", "try_server"))
        return {each for each in (case["flow_to_instance"], case["up_to_instance"], *hosts) if each is not None}

    def _packets(self, carrier: Carrier) -> list[Moment]:
        server = carrier.flow["to_instance"]

        def seen(syn: int, time_us: int) -> tuple[tuple[Note, ...], Queue | None]:
            # One capture's notes are enough, and a program's state changes little from SYN to SYN.
            if carrier.is_repeated or server is None:
                return (), None
            return self._notes(server, time_us, with_program=syn == 1), self._states.queue(server, time_us)

        ends = carrier.connection.client, carrier.connection.server
        source = carrier.observer, capture_file(self.raw.places, carrier.observer)
        found = packet_moments(carrier.packets, [self.name(*end) for end in ends], *source, seen)
        hosts = self.name(ends[0][0]), self.name(ends[1][0])
        told = [
            # If a connection was captured at both ends, the server's capture is enough for a ladder.
            replace(each, label=None)
            if carrier.is_repeated
            else replace(each, ends=hosts if each.segment and each.segment.from_client else hosts[::-1])
            for each in found
        ]
        return shorten(told)

    def _try_notes(self, each: Row) -> tuple[Note, ...]:
        """Return what a server said of itself as the proxy tried it, if no packet tells of that."""
        known = each["observer"] is not None
        return () if known else self._notes(self.hosts.get(each["server_address"]), each["start_us"])

    def _notes(self, server: str | None, time_us: int | None, *, with_program: bool = True) -> tuple[Note, ...]:
        if server is None or time_us is None:
            return ()
        program = self._states.program_note(server, time_us) if with_program else None
        return tuple(note for note in (self._states.queue_note(server, time_us), program) if note is not None)

    def _acceptances(self, story: Story) -> dict[str, Acceptance]:
        """Return when each server accepted a connection made for the request, by the prefix of its columns."""
        case, line = story.case, story.line
        # The stamp is cut down to the millisecond.
        read_us = None if line is None else 1000 * (line["time_ms"] - round(1000 * (line["request_time"] or 0)) + 1)
        found = {
            "flow": None if case["reused"] else acceptance(case, "flow", read_us),
            "up": acceptance(case, "up", None),
        }
        return {prefix: accepted for prefix, accepted in found.items() if accepted is not None}

    def _accepts(self, case: Row, prefix: str, accepted: Acceptance) -> Moment:
        server = case[f"{prefix}_to_instance"]
        at_us = accepted.earliest_us if accepted.latest_us is None else accepted.latest_us
        note = self._states.program_note(server, at_us)
        told = self._told_accept(case[f"{prefix}_observer"], case[f"{prefix}_id"])
        if told is not None:
            return observers.told_acceptance_moment(told, server, case, self._states.events_source(server))
        source = self._states.samples_source(server)
        return observers.acceptance_moment(accepted, server, case, source, (note,) if note else ())

    def _told_accept(self, observer: str, number: int) -> Row | None:
        """Return when a connection was accepted, by the server's kernel; None if it did not tell."""
        query = "SELECT * FROM told_accepts WHERE observer = $observer AND id = $id"
        return next(iter(self.joined.rows(query, observer=observer, id=number)), None)

    def _handler(self, case: Row, carriers: list[Carrier], accepted: dict[str, Acceptance]) -> Iterator[Moment]:
        """Tell how long the server that answers took."""
        manifest = self.raw.manifest
        if manifest.origin is None or manifest.kind_of(manifest.origin) != "server":
            return
        for prefix in ("flow", "up"):
            server, key = case[f"{prefix}_to_instance"], (case[f"{prefix}_observer"], case[f"{prefix}_id"])
            carrier = next((each for each in carriers if (each.flow["observer"], each.flow["id"]) == key), None)
            if carrier is not None and server in manifest.of_role(manifest.origin) and not _hides_turns(case, carrier):
                file = capture_file(self.raw.places, carrier.observer)
                yield from observers.handler_moments(
                    carrier.packets, accepted.get(prefix), case, server, file, entered=case[f"{prefix}_entered"]
                )

    def _missing(self, story: Story, carriers: list[Carrier]) -> Iterator[str]:
        case = story.case
        captured = any(reduction.rows is not None for reduction in self.raw.reductions.values())
        if case["dial_time_us"] is None:
            yield "its connection: no dial is recorded for it"
        elif case["dial_error_kind"] == "address-not-available":
            yield "any packet: no SYN was sent, the client's kernel had no port for it"
        elif captured and case["flow_id"] is None:
            yield "its packets: none of the connections in the captures is certainly its own"
        if beside := self._beside(case):
            others = format_count(beside, "other request")
            yield f"its packets: its connection carried {others} at the same time, and TLS hides which are whose"
        yield from self._untold(case, carriers)
        path = self.raw.manifest.path
        proxy = next((role for role in path if self.raw.manifest.kind_of(role) == "proxy"), None)
        if proxy is None:
            return
        if story.line is None and case["remote"] is not None:
            yield f"{proxy}'s part: no line of its access log is certainly the request's"
        # The gateway's log names the dial of each try, also of one that failed; what has no packets sent none.
        unknown = [
            each["try"]
            for each in story.tries
            if each["server_port"] is not None and each["observer"] is None and each["dial"] is None
        ]
        if captured and unknown:
            tries = " and ".join(map(str, unknown))
            yield f"which of {proxy}'s connections carried try {tries}: its log does not name the port that it had"

    def _untold(self, case: Row, carriers: list[Carrier]) -> Iterator[str]:
        """Say what the packets of a request's connections do not tell."""
        for carrier in carriers:
            if not carrier.packets:
                file = capture_file(self.raw.places, carrier.observer)
                yield f"its packets: {file} has nothing of that time on its connection"
            elif not carrier.is_repeated and (why := _hides_turns(case, carrier)):
                server = self.name(*carrier.connection.server)
                yield f"when {server} had the request and began to answer, by its packets: {why}"


def _hides_turns(case: Row, carrier: Carrier) -> str | None:
    """Return why the packets of a connection do not tell when a request came and its answer left; None if they do."""
    if carrier.is_first_hop and case["protocol"] in ("http2", "grpc"):
        return "HTTP/2 sends frames of its own beside those of requests"
    if handshake_length(carrier.packets):
        return "TLS encrypts both, and its tickets, which come after the handshake, look like data"
    return None


def request_head(case: Row) -> Row:
    """Return what heads the story of a request."""
    return {
        "request": f"{case['instance']}/{case['id']}",
        "asked": " ".join(excerpt(case[part]) for part in ("method", "url") if case[part]),
        "outcome": case["outcome"],
        "total_us": case["total_us"],
    }


def packet_moments(
    packets: Sequence[Packet],
    ends: Sequence[str],
    observer: str,
    file: str,
    seen: Callable[[int, int], tuple[tuple[Note, ...], Queue | None]],
) -> list[Moment]:
    """Tell the packets of one connection, in the order of time.

    `ends` are the names of its client's socket and of its server's. `seen` gives what else was seen at a SYN's time, by
    its number and its time: notes, and the accept queue.
    """
    found = split_segments(packets)
    in_all, told = Counter(each.kind for each in found), Counter[str]()
    moments: list[Moment] = []
    for each in found:
        told[each.kind] += 1
        number, count = told[each.kind], in_all[each.kind]
        notes, queue = seen(number, each.time_us) if each.kind == "syn" else ((), None)
        place = f"{'frame' if each.packets == 1 else 'frames'} {each.frames}"
        event = Event(each.time_us, f"wire@{observer}", _segment_text(each, ends, number, count), file, place, notes)
        moments.append(Moment(event, _segment_label(each, number, count), each, queue=queue))
    return sorted(moments, key=lambda moment: moment.event.time_us)


def _segment_text(segment: Segment, ends: Sequence[str], number: int, count: int) -> str:
    """Return what a segment is, the `number`th of `count` of its kind."""
    sender, other = ends if segment.from_client else ends[::-1]
    again = " again" if segment.again else ""
    match segment.kind:
        case "syn":
            of = f" {number} of {count}" if count > 1 else ""
            return f"SYN{of}: {sender} → {other}{', unanswered' if segment.lost else ''}"
        case "syn-ack":
            return f"{sender} answers: SYN-ACK{again}{f' ({number})' if again else ''}"
        case "ack":
            return f"ACK: {sender} believes it is connected"
        case "fin":
            return f"{sender} closes its side (FIN){again}"
        case "rst":
            return f"{sender} resets the connection (RST)"
        case "data":
            lasted = format_us(segment.last_us - segment.time_us)
            within = f" in {segment.packets} segments within {lasted}" if segment.packets > 1 else ""
            secured = f", TLS: {segment.tls}" if segment.tls else ""
            return f"{sender} sends {format_count(segment.data_bytes, 'byte')}{again}{within}{secured}"


def _segment_label(segment: Segment, number: int, count: int) -> str:
    """Return what a segment is in a ladder, whose lanes say who sends."""
    again = ", again" if segment.again else ""
    if segment.kind == "syn" and count > 1:
        return f"SYN {number} of {count}"
    if segment.kind == "data":
        parts = f" in {segment.packets} packets" if segment.packets > 1 else ""
        # What a ClientHello asks for is too long for a picture.
        secured = f"{re.split(' for | offers ', segment.tls)[0]}, " if segment.tls else ""
        return f"{secured}{format_count(segment.data_bytes, 'byte')}{again}{parts}"
    return segment.kind.upper() + again


def shorten(moments: Sequence[Moment]) -> list[Moment]:
    """Leave out what is in the middle of more moments than one reads, and say so."""
    if len(moments) <= _MOMENTS_MAX:
        return list(moments)
    head = _MOMENTS_MAX // 2
    tail = len(moments) - (_MOMENTS_MAX - head - 1)
    first, last = moments[head].event, moments[tail - 1].event
    text = f"… {tail - head} more such lines until {format_us(last.time_us - first.time_us)} later"
    shown = [each for each in moments[head:tail] if each.label is not None]
    gap = Moment(replace(first, text=text, notes=()), left_out=len(shown))
    return [*moments[:head], gap, *moments[tail:]]


def _host(remote: str | None) -> str:
    """Return the address of a remote end, as `[::1]:8080`."""
    return (remote or "").rpartition(":")[0].strip("[]")


def _asked_us(case: Row, carriers: Iterable[Carrier]) -> int:
    """Return when a request came to its first server, as early as that may be."""
    found = [
        packet.time_us
        for carrier in carriers
        for packet in carrier.packets[handshake_length(carrier.packets) :]
        if packet.from_client and packet.data_bytes
    ]
    return min(found, default=int(case["time_us"]))
