"""What ladders.json consists of."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from analysis.output import Written

FILE = Path("derived") / "ladders.json"
SCHEMA: Literal["connlab.ladders/1"] = "connlab.ladders/1"

Kind = Literal["good", "failed", "slow", "slowest"]


class Queue(Written):
    """A server's accept queue at its ticks around a moment; of several listeners the fullest one's."""

    server: str
    depth_before: int
    depth_after: int
    limit: Annotated[int, Field(description="It is full when it holds one more")]
    overflows: Annotated[
        int | None,
        Field(description="By how much TcpExt.ListenOverflows grew from the one to the other; null: unknown"),
    ]


class Step(Written):
    """A packet, packets of one side that follow each other, or something that an end did."""

    after_us: Annotated[int, Field(description="Since the request began")]
    from_: Annotated[str, Field(alias="from", description="The lane where it begins")]
    to: Annotated[str | None, Field(description="The lane where it arrives; null for what happens at one end")]
    kind: Literal["syn", "syn-ack", "ack", "data", "fin", "rst", "event"]
    text: Annotated[str, Field(description="Its flags, or what happened")]
    again: Annotated[bool, Field(description="Whether it was sent before")] = False
    lost: Annotated[bool, Field(description="A SYN that nothing answered")] = False
    frames: Annotated[str | None, Field(description="Its number in the capture, as in Wireshark")] = None
    queue: Annotated[Queue | None, Field(description="The server's accept queue as the SYN came")] = None


class Packets(Written):
    """How to see a connection's packets."""

    connection: str
    capture: Annotated[str, Field(description="Below the run's folder")]
    wireshark: Annotated[str, Field(description="A display filter")]


class Ladder(Written):
    """One request and the connections that carried it."""

    kind: Annotated[Kind, Field(description="Why it was chosen")]
    cause: str | None
    count: Annotated[int, Field(description="How many requests are like it")]
    request: str
    asked: Annotated[str, Field(description="Method and URL, unprintable characters escaped")]
    outcome: Literal["ok", "slow", "failed"]
    total_us: int
    began_us: Annotated[int, Field(description="Since the measurement began")]
    evidence: Annotated[str | None, Field(description="What proves the cause")]
    lanes: Annotated[list[str], Field(description="The ends, from the client to the backend")]
    steps: Annotated[list[Step], Field(description="In the order of time")]
    left_out: Annotated[int, Field(description="Steps in the middle that are too many to show")]
    packets: list[Packets]


class Ladders(Written):
    """The connections that tell a run's story."""

    contract: Annotated[Literal["connlab.ladders/1"], Field(alias="schema")]
    scenario: str
    run: str
    ladders: list[Ladder]
    lacks: Annotated[list[str], Field(description="What the captures lack")]
