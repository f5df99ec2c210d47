"""Tells one request's packets and events as the steps of a ladder."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from analysis.database import sql
from analysis.evidence.samples import TICK_SLACK_US
from analysis.formatting import counted, excerpt
from analysis.reports.stories import at_server, segments, views, wire
from analysis.reports.stories.ladders_file import Ladder, Packets, Queue, Step
from formats.sanitize import visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from analysis.database import Integers
    from analysis.diagnosis.joins import Joined, Row, Story
    from analysis.evidence.rawfiles import Places
    from analysis.reports.stories.carried import Carrier
    from analysis.reports.stories.choose import ChosenRequest
    from analysis.reports.stories.segments import Segment
    from formats.manifest import Manifest

# What of one request a reader may want to see.
_STEPS_MAX = 40

_GAVE_UP = {
    "timeout": "gives up connecting",
    "refused": "is refused",
    "reset": "is reset while connecting",
    "address-not-available": "has no port to connect from",
    "unreachable": "finds no way there",
    "canceled": "ends while connecting",
    "half-open": "never completes the handshake, on purpose",
}


@dataclass
class Teller:
    """Tells requests of one run."""

    joined: Joined
    manifest: Manifest
    places: Places
    _ticks_of: dict[str, dict[str, Integers]] = field(default_factory=dict, init=False)

    @cached_property
    def _hosts(self) -> dict[str, str]:
        return {address: instance for instance, found in self.manifest.addresses.items() for address in found}

    @cached_property
    def _measure_us(self) -> int:
        phases = self.manifest.phases
        return next((phase.start_us for phase in phases if phase.name == "measure"), 0)

    def ladder(self, choice: ChosenRequest, story: Story, carriers: list[Carrier]) -> Ladder:
        """Tell a request.

        Args:
            choice: why it was chosen.
            story: its records.
            carriers: the connections that carried it, with their packets.
        """
        case = story.case
        # If a connection was captured at both ends, the server's capture is enough.
        told = [carrier for carrier in carriers if not carrier.is_repeated and carrier.packets]
        steps = sorted([*self._events(story), *self._packets(told, case["time_us"])], key=lambda step: step.after_us)
        shown_steps, left_out = _shorten(steps)
        return Ladder(
            kind=choice.kind,
            cause=choice.cause,
            count=choice.count,
            request=f"{case['instance']}/{case['id']}",
            asked=f"{excerpt(case['method'])} {excerpt(case['url'])}",
            outcome=case["outcome"],
            total_us=case["total_us"],
            began_us=case["time_us"] - self._measure_us,
            evidence=self._evidence(choice),
            lanes=self._lanes(case, told),
            steps=shown_steps,
            left_out=left_out,
            packets=[self._view(carrier) for carrier in told],
        )

    def _evidence(self, choice: ChosenRequest) -> str | None:
        instance, id_ = choice.key
        rows = self.joined.rows(
            "SELECT evidence FROM attributed WHERE instance = $instance AND id = $id", instance=instance, id=id_
        )
        return visible(rows[0]["evidence"]) if rows and rows[0]["evidence"] else None

    def _lanes(self, case: Row, carriers: list[Carrier]) -> list[str]:
        """The ends in the order of the path; without packets, those that the request was between."""
        ends = {case["instance"], self._host((case["dial_remote"] or "").rpartition(":")[0].strip("[]"))}
        for carrier in carriers:
            ends |= {self._host(carrier.connection.client[0]), self._host(carrier.connection.server[0])}
        order = [instance for role in self.manifest.path for instance in self.manifest.of_role(role)]
        return [each for each in order if each in ends] + sorted(each for each in ends - set(order) if each)

    def _host(self, address: str) -> str:
        return self._hosts.get(address, excerpt(address))

    def _packets(self, carriers: list[Carrier], begin_us: int) -> Iterator[Step]:
        for carrier in carriers:
            client, server = self._host(carrier.connection.client[0]), self._host(carrier.connection.server[0])
            found = segments.split_segments(carrier.packets)
            syns = [segment for segment in found if segment.kind == "syn"]
            for segment in found:
                ends = (client, server) if segment.from_client else (server, client)
                yield Step(
                    after_us=segment.time_us - begin_us,
                    from_=ends[0],
                    to=ends[1],
                    kind=segment.kind,
                    text=_text(segment, syns),
                    again=segment.again,
                    lost=segment.lost,
                    frames=segment.frames,
                    queue=self._queue(server, segment.time_us) if segment.kind == "syn" else None,
                )

    def _queue(self, server: str, time_us: int) -> Queue | None:
        ticks = self._ticks(server)
        before = np.flatnonzero(ticks["time_us"] <= time_us - TICK_SLACK_US)
        after = np.flatnonzero(ticks["time_us"] >= time_us + TICK_SLACK_US)
        if not before.size or not after.size:
            return None
        last, next_ = before[-1], after[0]
        return Queue(
            server=server,
            depth_before=int(ticks["depth"][last]),
            depth_after=int(ticks["depth"][next_]),
            limit=int(ticks["queue_limit"][next_]),
            overflows=int(ticks["overflows"][next_] - ticks["overflows"][last]),
        )

    def _ticks(self, server: str) -> dict[str, Integers]:
        """The accept queue of a server at each tick, in their order."""
        if server not in self._ticks_of:
            found = self.joined.execute(sql(__name__, "queue_of_server"), server=server).fetchnumpy()
            self._ticks_of[server] = {name: np.asarray(values, dtype=np.int64) for name, values in found.items()}
        return self._ticks_of[server]

    def _events(self, story: Story) -> Iterator[Step]:
        case, client = story.case, story.case["instance"]
        yield _event(case, case["time_us"], client, "begins the request")
        if not case["reused"] and case["dial_error_kind"] is not None:
            ended_us = case["dial_time_us"] + case["dial_duration_us"]
            yield _event(case, ended_us, client, _GAVE_UP.get(case["dial_error_kind"], "fails to connect"))
        for prefix in ("flow", "up"):
            accepted = None if prefix == "flow" and case["reused"] else at_server.acceptance(case, prefix, None)
            if accepted is not None and accepted.latest_us is not None and accepted.latest_us <= case["end_us"]:
                text = "has it out of the accept queue by now"
                yield _event(case, accepted.latest_us, case[f"{prefix}_to_instance"], text)
        if story.line is not None:
            text = f"logs it with status {story.line['status']}"
            yield _event(case, 1000 * story.line["time_ms"], story.line["instance"], text)
        yield _event(case, case["end_us"], client, _end(case))

    def _view(self, carrier: Carrier) -> Packets:
        connection = carrier.connection
        ends = (f"{self._host(address)}:{port}" for address, port in (connection.client, connection.server))
        file = wire.file_of(self.places, carrier.observer)
        view = views.build_view(" → ".join(ends), connection, carrier.packets, file)
        return Packets(connection=view.connection, capture=view.capture, wireshark=view.wireshark)


def _event(case: Row, time_us: int, lane: str, text: str) -> Step:
    return Step(after_us=time_us - case["time_us"], from_=lane, to=None, kind="event", text=text)


def _end(case: Row) -> str:
    if case["status"]:
        return f"has the answer: status {case['status']}"
    return "ends the request without an answer" + (f" (k6's error {case['error_code']})" if case["error_code"] else "")


def _text(segment: Segment, syns: list[Segment]) -> str:
    again = ", again" if segment.again else ""
    if segment.kind == "syn" and len(syns) > 1:
        return f"SYN {syns.index(segment) + 1} of {len(syns)}"
    if segment.kind == "data":
        parts = f" in {segment.packets} packets" if segment.packets > 1 else ""
        return f"{counted(segment.data_bytes, 'byte')}{again}{parts}"
    return segment.kind.upper() + again


def _shorten(steps: list[Step]) -> tuple[list[Step], int]:
    if len(steps) <= _STEPS_MAX:
        return steps, 0
    half = _STEPS_MAX // 2
    return [*steps[:half], *steps[-half:]], len(steps) - 2 * half
