"""When a server accepted a request's connection, and how long it then took: bounds, where the evidence gives bounds."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from analysis.formatting import format_us, format_us_range
from analysis.reports.stories.parts import Event

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from analysis.diagnosis.joins import Row
    from analysis.evidence.packets import Packet
    from analysis.reports.stories.parts import Note

# The lab's backend takes from the URL how long its handler works.
_ASKED_MS = re.compile(r"/api/delay\?(?:[^#]*&)?ms=([0-9]{1,9})(?:[&#]|$)")


@dataclass(frozen=True, slots=True)
class Acceptance:
    """When a server took a connection out of its accept queue, Unix epoch.

    Attributes:
        queued_us: when it came into the queue.
        earliest_us: when it was accepted at the earliest.
        latest_us: the same at the latest; None if it was not, as long as the queue was sampled.
    """

    queued_us: int
    earliest_us: int
    latest_us: int | None


def acceptance(case: Row, prefix: str, served_us: int | None) -> Acceptance | None:
    """The bounds that the queue's samples and the server's own records give; None if the samples give none.

    Args:
        case: the request's row of analysis.diagnosis.joins.requests.
        prefix: which connection: `flow`, the client's, or `up`, the proxy's.
        served_us: when the server surely had the request, None if it did not log that.
    """
    queued_us, after_us, before_us = (
        case[f"{prefix}_{column}"] for column in ("queued_us", "accepted_after_us", "accepted_before_us")
    )
    if queued_us is None or after_us is None or case[f"{prefix}_perhaps_unknown"]:
        return None
    # A server sends nothing over a connection before it accepted it.
    answered_us = case[f"{prefix}_server_first_data_time_us"]
    latest_us = min((each for each in (before_us, answered_us, served_us) if each is not None), default=None)
    return Acceptance(queued_us, after_us if latest_us is None else min(after_us, latest_us), latest_us)


def acceptance_event(found: Acceptance, server: str, end_us: int, samples: str, notes: tuple[Note, ...]) -> Event:
    """Tell when a server accepted a connection: they leave the queue in the order in which they came.

    Args:
        found: the bounds.
        server: its name.
        end_us: when the request ended.
        samples: the file of its samples.
        notes: what else was seen.
    """
    source = samples, "the ticks around each moment"
    if found.latest_us is None or found.earliest_us >= end_us:
        waited = format_us(end_us - found.queued_us)
        text = f"has not accepted the connection yet: it is in the accept queue, for {waited} now"
        return Event(end_us, server, text, *source, notes)
    waited = format_us_range(found.earliest_us - found.queued_us, found.latest_us - found.queued_us)
    text = f"has accepted the connection by now; it was in the accept queue for {waited}"
    return Event(found.latest_us, server, text, *source, notes)


def handler_events(
    packets: Sequence[Packet], accepted: Acceptance | None, case: Row, server: str, file: str
) -> Iterator[Event]:
    """Tell how long a server had a request before it began to answer.

    Args:
        packets: of the request, in the order of the capture.
        accepted: when the server took the connection, None if that is not known or long ago.
        case: the request's row of analysis.diagnosis.joins.requests.
        server: its name.
        file: the capture.
    """
    asked = next((packet for packet in packets if packet.from_client and packet.data_bytes), None)
    if asked is None or (accepted and accepted.latest_us is None):
        return
    answer = next(
        (packet for packet in packets if not packet.from_client and packet.data_bytes and packet.number > asked.number),
        None,
    )
    until_us = case["end_us"] if answer is None else answer.time_us
    bounds = (accepted.earliest_us, accepted.latest_us or until_us) if accepted else (asked.time_us, asked.time_us)
    begun_us = [min(max(asked.time_us, bound), until_us) for bound in bounds]
    took = format_us_range(until_us - begun_us[1], until_us - begun_us[0])
    wanted = _ASKED_MS.search(case["url"] or "")
    asks = f", of which the URL asks the handler to take {int(wanted[1]):,} ms" if wanted else ""
    if answer is None:
        text, place = f"has not answered, {took} after it had both the connection and the request{asks}", ""
    else:
        text = f"begins to answer, {took} after it had both the connection and the request{asks}"
        place = f" and {answer.number}"
    yield Event(until_us, server, text, file, f"frame {asked.number}{place}")
