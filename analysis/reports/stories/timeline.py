"""What a request's story consists of: its timeline, the moments that it is made of, and its ladder in ladders.json."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from analysis.output import DerivedFile, Written

if TYPE_CHECKING:
    from analysis.reports.stories.packets import PacketView, Segment

# A request's instance and id.
Key = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Note:
    """What else was seen at the time of an event: the words, the file below the run's folder, the place in it."""

    text: str
    file: str
    place: str


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to a request.

    Attributes:
        time_us: Unix epoch; of what is known within bounds, the upper one.
        observer: whose evidence says so: an instance, or `wire@` and the instance whose capture it is.
        file: below the run's folder.
        place: in the file.
        notes: what others saw at that moment.
        resolution_us: how exactly the time was recorded.
    """

    time_us: int
    observer: str
    text: str
    file: str
    place: str
    notes: tuple[Note, ...] = ()
    resolution_us: int = 1


@dataclass(frozen=True, slots=True)
class Moment:
    """An event, and what a ladder shows of it.

    Attributes:
        label: the ladder's words; None for what a ladder leaves out.
        segment: the packets that it is, None if it is none; these have two ends.
        ends: the instances that packets go from and to.
        queue: the server's accept queue as a SYN came.
        left_out: how many moments this one stands for.
    """

    event: Event
    label: str | None = None
    segment: Segment | None = None
    ends: tuple[str, str] = ("", "")
    queue: Queue | None = None
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class AttributedCause:
    """Why a request failed or was slow, as the ledger has it: the cause, and the records that prove it."""

    name: str
    evidence: str


@dataclass(slots=True)
class RequestTimeline:
    """One request's story, as far as the evidence goes.

    Attributes:
        request: its name, as `k6-1/17`.
        asked: its method and URL.
        start_us: when it began, Unix epoch.
        measure_us: when the measurement began, None if that is not known.
        cause: None for a request that was neither slow nor failed, or if the run was not analysed.
        missing: what the evidence lacks of this request, one sentence each.
        views: one for each connection and capture.
    """

    request: str
    asked: str
    outcome: str
    total_us: int
    start_us: int
    measure_us: int | None
    cause: AttributedCause | None
    events: list[Event] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    views: list[PacketView] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Explanation:
    """The stories of some of a run's requests; `problems` are those of the run or its instruments, a sentence each."""

    run: str
    outcomes: dict[str, int]
    accounts: list[RequestTimeline]
    hosts: dict[str, str]
    problems: list[str]


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


class Ladders(DerivedFile):
    """The connections that tell a run's story."""

    file = Path("derived") / "ladders.json"

    contract: Annotated[Literal["connlab.ladders/1"], Field(alias="schema")]
    scenario: str
    run: str
    ladders: list[Ladder]
    lacks: Annotated[list[str], Field(description="What the captures lack")]
