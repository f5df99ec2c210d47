"""Puts one request's story together from what each observer recorded."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from analysis.formatting import excerpt
from analysis.reports.stories import actions, at_client, at_proxy, at_server, server_gauges, views, wire
from analysis.reports.stories.parts import RequestTimeline

if TYPE_CHECKING:
    from collections.abc import Iterator

    from analysis.diagnosis.joins import Row, Story
    from analysis.evidence.rawrun import RawRun
    from analysis.reports.stories.at_server import Acceptance
    from analysis.reports.stories.carried import Carrier
    from analysis.reports.stories.parts import AttributedCause, Event, Note, View


@dataclass
class Narrator:
    """Tells of the requests of one run."""

    raw: RawRun

    @cached_property
    def hosts(self) -> dict[str, str]:
        """The run's addresses, and whose they are."""
        addresses = self.raw.manifest.addresses
        return {address: instance for instance, found in addresses.items() for address in found}

    @cached_property
    def measure_us(self) -> int | None:
        """When the measurement began."""
        phases = self.raw.manifest.phases
        return next((phase.start_us for phase in phases if phase.name == "measure"), None)

    def name(self, address: str | None, port: int | None) -> str:
        """A socket by its instance's name, by its address if that is not one of the run's."""
        host = self.hosts.get(address or "", excerpt(address))
        return host if port is None else f"{host}:{port}"

    def tell(
        self, story: Story, carriers: list[Carrier], close: Row | None, cause: AttributedCause | None
    ) -> RequestTimeline:
        """Tell one request.

        Args:
            story: its records.
            carriers: the connections that carried it, with their packets.
            close: the end of the client's connection, if this was the last request over it.
            cause: why it failed or was slow.
        """
        case = story.case
        first_hop = [carrier for carrier in carriers if carrier.is_first_hop and carrier.packets]
        remote = (case["dial_remote"] or "").rpartition(":")[0].strip("[]")
        dial_notes = () if first_hop else self._server_notes(self.hosts.get(remote), case["dial_time_us"])
        accepted = self._acceptances(story)
        events: list[Event] = [
            *at_client.client_events(case, close, dial_notes, self.raw.places),
            *(self._accepts(case, prefix, each) for prefix, each in accepted.items()),
            *(event for carrier in carriers for event in self._packets(carrier)),
            *self._handler(case, carriers, accepted),
            *at_proxy.proxy_events(story, _asked_us(case, first_hop), self.name, self._try_notes, self.raw.places),
            *actions.action_events(case, self.raw.manifest.actions, self._servers(case)),
        ]
        return RequestTimeline(
            request=f"{case['instance']}/{case['id']}",
            asked=f"{excerpt(case['method'])} {excerpt(case['url'])}",
            outcome=case["outcome"],
            total_us=case["total_us"],
            start_us=case["time_us"],
            measure_us=self.measure_us,
            cause=cause,
            events=sorted(events, key=lambda event: event.time_us),
            missing=list(self._missing(story, carriers)),
            views=[self._view(carrier) for carrier in carriers if carrier.packets],
        )

    def _servers(self, case: Row) -> set[str]:
        """The servers that a request had to do with, as far as that is known."""
        addresses = (
            address.rpartition(":")[0].strip("[]") for key in ("dial_remote", "try_server") if (address := case[key])
        )
        found = {case["flow_to_instance"], case["up_to_instance"], *map(self.hosts.get, addresses)}
        return {server for server in found if server is not None}

    def _packets(self, carrier: Carrier) -> list[Event]:
        server = carrier.flow["to_instance"]

        def notes(syn: int, time_us: int) -> tuple[Note, ...]:
            # One capture's notes are enough, and a program's state changes little from SYN to SYN.
            return () if carrier.is_repeated else self._server_notes(server, time_us, with_program=syn == 1)

        told = wire.wire_events(carrier.packets, self._ends(carrier), carrier.observer, self._file(carrier), notes)
        return wire.shorten(told)

    def _try_notes(self, each: Row) -> tuple[Note, ...]:
        """What a server said of itself as the proxy turned to it, if no packet tells of that."""
        known = each["observer"] is not None
        return () if known else self._server_notes(self.hosts.get(each["server_address"]), each["start_us"])

    def _server_notes(self, server: str | None, time_us: int | None, *, with_program: bool = True) -> tuple[Note, ...]:
        if server is None or time_us is None:
            return ()
        return tuple(
            filter(
                None,
                [
                    server_gauges.accept_queue(self.raw, server, time_us),
                    server_gauges.program(self.raw, server, time_us) if with_program else None,
                ],
            )
        )

    def _acceptances(self, story: Story) -> dict[str, Acceptance]:
        """When each server accepted a connection that was made for the request, by the prefix of its columns."""
        case, line = story.case, story.line
        # The stamp is cut down to the millisecond.
        read_us = None if line is None else 1000 * (line["time_ms"] - round(1000 * (line["request_time"] or 0)) + 1)
        found = {
            "flow": None if case["reused"] else at_server.acceptance(case, "flow", read_us),
            "up": at_server.acceptance(case, "up", None),
        }
        return {prefix: accepted for prefix, accepted in found.items() if accepted is not None}

    def _accepts(self, case: Row, prefix: str, accepted: Acceptance) -> Event:
        server = case[f"{prefix}_to_instance"]
        at_us = accepted.earliest_us if accepted.latest_us is None else accepted.latest_us
        said = server_gauges.program(self.raw, server, at_us)
        samples = server_gauges.samples_file(self.raw, server)
        return at_server.acceptance_event(accepted, server, case["end_us"], samples, (said,) if said else ())

    def _handler(self, case: Row, carriers: list[Carrier], accepted: dict[str, Acceptance]) -> Iterator[Event]:
        """How long the server that answers took."""
        origin = self.raw.manifest.origin
        if origin is None or self.raw.manifest.kind_of(origin) != "server":
            return
        for prefix in ("flow", "up"):
            server = case[f"{prefix}_to_instance"]
            carrier = next((each for each in carriers if self._is_of(each, case, prefix)), None)
            if carrier is not None and server in self.raw.manifest.of_role(origin):
                file = self._file(carrier)
                yield from at_server.handler_events(carrier.packets, accepted.get(prefix), case, server, file)

    @staticmethod
    def _is_of(carrier: Carrier, case: Row, prefix: str) -> bool:
        return (carrier.flow["observer"], carrier.flow["id"]) == (case[f"{prefix}_observer"], case[f"{prefix}_id"])

    def _ends(self, carrier: Carrier) -> tuple[str, str]:
        return self.name(*carrier.connection.client), self.name(*carrier.connection.server)

    def _file(self, carrier: Carrier) -> str:
        return wire.file_of(self.raw.places, carrier.observer)

    def _view(self, carrier: Carrier) -> View:
        name = " → ".join(self._ends(carrier))
        return views.build_view(name, carrier.connection, carrier.packets, self._file(carrier))

    def _missing(self, story: Story, carriers: list[Carrier]) -> Iterator[str]:
        case = story.case
        captured = any(reduction.rows is not None for reduction in self.raw.reductions.values())
        if case["dial_time_us"] is None:
            yield "its connection: no dial is recorded for it"
        elif case["dial_error_kind"] == "address-not-available":
            yield "any packet: no SYN was sent, the client's kernel had no port for it"
        elif captured and case["flow_id"] is None:
            yield "its packets: none of the connections in the captures is certainly its own"
        for carrier in carriers:
            if not carrier.packets:
                yield f"its packets: {self._file(carrier)} has nothing of that time on its connection"
        proxy = next((name for name, role in self.raw.manifest.roles.items() if role.kind == "proxy"), None)
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


def _asked_us(case: Row, carriers: list[Carrier]) -> int:
    """When a request came to its first server, as early as that may be."""
    found = [
        packet.time_us for carrier in carriers for packet in carrier.packets if packet.from_client and packet.data_bytes
    ]
    return min(found, default=int(case["time_us"]))
