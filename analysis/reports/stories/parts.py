"""What an explanation consists of."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Note:
    """What else was seen at the time of an event.

    Attributes:
        text: what.
        file: where that stands, below the run's folder.
        place: where in that file.
    """

    text: str
    file: str
    place: str


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to a request.

    Attributes:
        time_us: when, Unix epoch; of what is known within bounds, the upper one.
        observer: whose evidence says so: an instance, or `wire@` and the instance whose capture it is.
        text: what happened.
        file: where that stands, below the run's folder.
        place: where in that file.
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
class View:
    """How to see a connection's packets with other tools.

    Attributes:
        connection: its two ends, by name.
        capture: the capture file, below the run's folder.
        wireshark: a display filter.
        tcpdump: a command, from the run's folder.
    """

    connection: str
    capture: str
    wireshark: str
    tcpdump: str


@dataclass(frozen=True, slots=True)
class AttributedCause:
    """Why a request failed or was slow, as the ledger has it.

    Attributes:
        name: of the closed list of docs/causes.md, or `unexplained`.
        evidence: the records that prove it; what is missing, if it is unexplained.
    """

    name: str
    evidence: str


@dataclass(slots=True)
class RequestTimeline:
    """One request's story, as far as the evidence goes.

    Attributes:
        request: its name, as `k6-1/17`.
        asked: its method and URL.
        outcome: ok, slow or failed.
        total_us: from its beginning to its end.
        start_us: when it began, Unix epoch.
        measure_us: when the measurement began, None if that is not known.
        cause: None for a request that was neither slow nor failed, or if the run was not analysed.
        events: in the order of time.
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
    views: list[View] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Explanation:
    """The stories of some of a run's requests.

    Attributes:
        run: its scenario and its id.
        outcomes: how many requests there were of each outcome.
        accounts: the requests that were asked for.
        hosts: the run's addresses, and whose they are.
        problems: what is wrong with the run or its instruments, one sentence each.
    """

    run: str
    outcomes: dict[str, int]
    accounts: list[RequestTimeline]
    hosts: dict[str, str]
    problems: list[str]
