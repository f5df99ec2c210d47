"""Who is served, when, and which SYNs are dropped: users directly at one Tomcat, simulated from the settings.

A user arrives, dials, does its calls one after the other on that connection, and keeps it open. The server has
`slots` connections (Tomcat's maxConnections); behind them the kernel's accept queue holds backlog + 1. A SYN that
meets a full queue is dropped; the client sends the next of its ladder, and fails at its connect timeout. Tomcat
closes a connection that has been idle for its keep-alive timeout, and so frees the slot for the first in the queue.

What the model leaves out: the time of transport and of the processor; requests that wait for a thread; connections
that either side closes before the calls are done. The caller refuses loads for which these matter.

Three times are known only within bounds: how late the kernel's timers, Tomcat's keep-alive clock and its acceptor
are. Where a figure depends on which it is, the figure is uncertain, and stands as None.

Nor does it know which user gets a place that becomes free while users still send SYNs: the kernel sends the SYNs that
are due in one tick of its timer together, more of them than there are places pass before the first of their connections
is in the queue, and SYN cookies let in others without a trace in it. Then all figures are uncertain.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from heapq import heappop, heappush
from itertools import product

from analysis.diagnosis.syn_ladder import Syn

# org.apache.tomcat.util.net.NioEndpoint.Poller looks for idle connections once a second (timeoutInterval), in a loop
# whose select() may itself last a second (selectorTimeout).
KEEP_ALIVE_LATE_MS = 2_000

# From the last ACK of a handshake to the acceptor's next turn. Two users who arrive closer together race with it.
ACCEPT_LATE_MS = 5


@dataclass(frozen=True, slots=True)
class Capacity:
    """One Tomcat: connections at once, the accept queue's limit, and how long an idle connection is kept."""

    slots: int
    backlog: int
    keep_alive_timeout_ms: int


@dataclass(frozen=True, slots=True)
class Load:
    """The users.

    Attributes:
        arrival_gap_ms: how long after the last each arrives.
        connect_timeout_ms: how long a user dials.
        ladder: when it sends SYNs meanwhile.
    """

    users: int
    arrival_gap_ms: int
    calls: int
    think_ms: int
    handler_ms: int
    connect_timeout_ms: int
    ladder: tuple[Syn, ...]


@dataclass(frozen=True, slots=True)
class UsersOutcome:
    """What becomes of the users; None stands for what depends on times known only within bounds.

    Attributes:
        served: users that got a connection.
        dropped_syns: SYNs that met a full accept queue.
        first_ms: of the first call of each user served, from the beginning of its dial to its answer, ascending; the
            earliest possible times, meaningless where `served` is None.
        later: calls that followed, of all users served, and how long each took.
        response_ms_max: the longest, at the latest possible times; 0 without any.
        end_ms: when the last user is done, at the latest possible times.
        contested: whether a SYN came again, or was dropped, when a place had already been set free.
    """

    served: int | None
    dropped_syns: int | None
    first_ms: tuple[int, ...]
    later: tuple[int, int]
    response_ms_max: int
    end_ms: int
    contested: bool

    @property
    def responses(self) -> int:
        """How many calls are answered."""
        return len(self.first_ms) + self.later[0]

    @property
    def response_ms(self) -> tuple[int, ...]:
        """How long each call of each user served took, ascending."""
        count, each_ms = self.later
        return tuple(sorted([*self.first_ms, *[each_ms] * count]))


@lru_cache(maxsize=8)  # several figures of one run ask for the same
def simulate(server: Capacity, load: Load) -> UsersOutcome:
    """Return what becomes of the users, trying the bounds of every time that is known only so."""
    runs = [_Course(server, load, *late).outcome() for late in product((False, True), repeat=3)]
    earliest, contested = runs[0], any(run.contested for run in runs)
    return UsersOutcome(
        served=None if contested else _agreed(run.served for run in runs),
        dropped_syns=None if contested else _agreed(run.dropped_syns for run in runs),
        first_ms=earliest.first_ms,
        later=earliest.later,
        response_ms_max=max(run.response_ms_max for run in runs),
        end_ms=max(run.end_ms for run in runs),
        contested=contested,
    )


def _agreed(numbers: Iterable[int | None]) -> int | None:
    distinct = set(numbers)
    return distinct.pop() if len(distinct) == 1 else None


class _Event(IntEnum):
    """What happens next; of events at the same time the lower comes first, so that a freed slot is free."""

    RELEASE = 0
    ACCEPT = 1
    SYN = 2


class _Course:
    """One course of events, with each of the uncertain times either at its earliest or at its latest."""

    def __init__(self, server: Capacity, load: Load, syn_late: bool, keep_alive_late: bool, accept_late: bool) -> None:  # noqa: FBT001  a product of choices, passed by position in one place
        self._server = server
        self._load = load
        self._syn_ms = [syn.latest_ms if syn_late else syn.earliest_ms for syn in load.ladder]
        self._idle_ms = server.keep_alive_timeout_ms + (KEEP_ALIVE_LATE_MS if keep_alive_late else 0)
        self._accept_ms = ACCEPT_LATE_MS if accept_late else 0
        self._events: list[tuple[int, _Event, int, int]] = []
        self._queue: deque[int] = deque()
        self._busy = 0
        self._dropped = 0
        self._failed = 0
        self._end_ms = 0
        self._released = False
        self._contested = False
        self._first_ms: list[int] = []

    def outcome(self) -> UsersOutcome:
        for user in range(self._load.users):
            self._schedule(self._arrival_ms(user), _Event.SYN, user)
        while self._events:
            time_ms, event, user, attempt = heappop(self._events)
            if event is _Event.SYN:
                self._syn(time_ms, user, attempt)
            else:
                self._accept(time_ms, event)
        return UsersOutcome(
            served=self._load.users - self._failed,
            dropped_syns=self._dropped,
            first_ms=tuple(sorted(self._first_ms)),
            later=(len(self._first_ms) * (self._load.calls - 1), self._load.handler_ms),
            # No later call takes longer than the first, which has the handler's time in it.
            response_ms_max=max(self._first_ms, default=0),
            end_ms=self._end_ms,
            contested=self._contested,
        )

    def _arrival_ms(self, user: int) -> int:
        return user * self._load.arrival_gap_ms

    def _schedule(self, time_ms: int, event: _Event, user: int = 0, attempt: int = 0) -> None:
        heappush(self._events, (time_ms, event, user, attempt))

    def _syn(self, time_ms: int, user: int, attempt: int) -> None:
        has_room = len(self._queue) <= self._server.backlog
        self._contested |= self._released and (attempt > 0 or not has_room)
        if has_room:
            self._queue.append(user)
            self._schedule(time_ms + self._accept_ms, _Event.ACCEPT)
            return
        self._dropped += 1
        following = attempt + 1
        if following < len(self._syn_ms) and self._syn_ms[following] < self._load.connect_timeout_ms:
            self._schedule(self._arrival_ms(user) + self._syn_ms[following], _Event.SYN, user, following)
        else:
            self._failed += 1
            self._end_ms = max(self._end_ms, self._arrival_ms(user) + self._load.connect_timeout_ms)

    def _accept(self, time_ms: int, event: _Event) -> None:
        if event is _Event.RELEASE:
            self._released = True
            self._busy -= 1
            self._schedule(time_ms + self._accept_ms, _Event.ACCEPT)
        elif self._queue and self._busy < self._server.slots:
            self._busy += 1
            self._serve(time_ms, self._queue.popleft())

    def _serve(self, time_ms: int, user: int) -> None:
        load = self._load
        first_answer_ms = time_ms + load.handler_ms
        self._first_ms.append(first_answer_ms - self._arrival_ms(user))
        done_ms = first_answer_ms + (load.calls - 1) * (load.think_ms + load.handler_ms)
        self._end_ms = max(self._end_ms, done_ms)
        self._schedule(done_ms + self._idle_ms, _Event.RELEASE)
