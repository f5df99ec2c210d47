"""The links of a path: how far a role is from the next one, and what gets lost on the way; `network:` in a scenario.

A link is one direction: from a role to its neighbour. `network.<from>.<to>.<knob>` is a knob's full name.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import Field

from formats.field_types import Port
from formats.knob_types import Duration, KnobValue, Percent, Rate, Unit, format_knob_value
from formats.predictions import Part
from lab.errors import Problem
from lab.scenarios.knobs import KnownKnob

KEY = "network"


class Link(Part):
    """One direction of the way between two neighbours on the path."""

    delay: Annotated[Duration, Field(ge=0, le=10_000, description="How long each packet takes")] = 0
    jitter: Annotated[
        Duration, Field(ge=0, le=10_000, description="How far a packet's delay may be from that, either way")
    ] = 0
    loss: Annotated[Percent, Field(ge=0, description="Share of the packets that are lost")] = 0.0
    loss_burst: Annotated[
        int, Field(ge=1, le=1000, description="How many packets in succession are lost, on average; 1 = by chance")
    ] = 1
    rate: Annotated[Rate | None, Field(description="What the link carries; by default without a limit")] = None
    queue: Annotated[
        int, Field(ge=1, le=10_000, description="Packets that the link holds, those on the way included")
    ] = 1000
    reorder: Annotated[
        Percent, Field(ge=0, le=25, description="Share of the packets that have no delay, and overtake others")
    ] = 0.0
    forget_idle: Annotated[
        Duration,
        Field(ge=0, description="After how long without a packet a middlebox forgets a connection; 0s = never"),
    ] = 0
    forget: Annotated[
        Literal["silent", "reset"], Field(description="What becomes of its packets then: dropped, or answered with RST")
    ] = "silent"
    drop_syns: Annotated[
        int, Field(ge=0, le=100, description="How many SYNs of each connection are dropped, from the first on")
    ] = 0
    drop_acks: Annotated[
        int, Field(ge=0, le=100, description="How many packets that end a handshake are dropped, from the first on")
    ] = 0
    drop_port: Annotated[Port, Field(description="Packets to this port are dropped; 0 = none")] = 0


def link_schema() -> dict[str, Any]:
    """Return the JSON schema of a link's knobs, for editors."""
    return dict(Link.model_json_schema()["properties"])


_UNITS: Mapping[str, Unit] = {
    "delay": "ms",
    "jitter": "ms",
    "loss": "%",
    "rate": "kbit/s",
    "reorder": "%",
    "forget_idle": "ms",
}
_NAME = re.compile(r"network\.(?P<from>[a-z0-9-]+)\.(?P<to>[a-z0-9-]+)\.(?P<knob>[a-z_]+)")
# From, then to.
Links = dict[str, dict[str, Link]]
# What the lab's own way of holding packets carried on two processors beside other programs (docs/network.md).
HELD_PACKETS_PER_SECOND = 10_000
HELD_KBIT = 100_000


def is_network_knob(name: str) -> bool:
    """Return whether a name is that of a link's knob; whether the roles exist is their scenario's to say."""
    match = _NAME.fullmatch(name)
    return match is not None and match["knob"] in Link.model_fields


def link_values(links: Links) -> dict[str, KnobValue]:
    """Return every knob of each link under its full name; a rate without a limit is 0."""
    return {
        f"{KEY}.{sender}.{to}.{knob}": 0 if value is None else value
        for sender, by_role in links.items()
        for to, link in by_role.items()
        for knob, value in link
    }


def known_link_knobs(links: Links) -> dict[str, KnownKnob]:
    """Return what is known of the knobs of each link."""
    return {
        f"{KEY}.{sender}.{to}.{knob}": KnownKnob(
            f"{KEY}.{sender}.{to}", knob, info.default or 0, info.description or "", unit=_UNITS.get(knob)
        )
        for sender, by_role in links.items()
        for to in by_role
        for knob, info in Link.model_fields.items()
    }


def link_problems(path: list[str], links: Links) -> Iterator[Problem]:
    """Yield what no link can do; each problem's place is the full name of a knob, or of a link."""
    neighbours = {frozenset(pair) for pair in pairwise(path)}
    for sender, by_role in links.items():
        for to, link in by_role.items():
            name = f"{KEY}.{sender}.{to}"
            if absent := [role for role in (sender, to) if role not in path]:
                what = f"{name} is set, but {absent[0]} is not on the path [{', '.join(path)}]"
                yield Problem(what, name, f"leave it out, or put {absent[0]} on the path")
            elif frozenset((sender, to)) not in neighbours:
                what = f"{name} is set, but no packet goes from {sender} to {to} on the path [{', '.join(path)}]"
                yield Problem(what, name, "name two roles that stand beside each other on the path")
            yield from _values(name, link)


def _values(name: str, link: Link) -> Iterator[Problem]:
    shown = format_knob_value(link.delay, "ms")
    if link.jitter > link.delay:
        what = f"{name}.jitter ({format_knob_value(link.jitter, 'ms')}) exceeds its delay ({shown})"
        yield Problem(what, f"{name}.jitter", "lower the jitter, or raise the delay")
    if link.reorder and not link.delay:
        what = f"{name}.reorder lets packets overtake others that are delayed, and its delay is 0s"
        yield Problem(what, f"{name}.reorder", "set a delay")
    if link.loss_burst > 1 and not link.loss:
        yield Problem(f"{name}.loss_burst is set, but its loss is 0%", f"{name}.loss_burst", "set a loss")
    if link.forget == "reset" and not link.forget_idle:
        yield Problem(f"{name}.forget is set, but its forget_idle is 0s", f"{name}.forget", "set forget_idle")
