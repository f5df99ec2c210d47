"""Reads what queued inside a container, where no packet passes: at unix sockets, and at other ports than the traffic's.

In: samples.jsonl, and what a container printed. Out: the queues that held somebody at a tick, and the messages by which
a program says that a unix socket refused it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import BinaryIO

from analysis.evidence.logs import lines_of
from analysis.evidence.samples import Samples


@dataclass(frozen=True, slots=True)
class InnerQueue:
    """A listening socket at one tick: how a person names it, how many wait there, and its limit."""

    name: str
    depth: int
    limit: int

    @property
    def is_full(self) -> bool:
        """Whether it takes nobody more: it holds one more than its limit."""
        return self.depth > self.limit


def queues_at(samples: Samples, tick: int) -> Iterator[InnerQueue]:
    """Yield each queue besides that of the traffic; of unix sockets those alone that the tick tells of."""
    for socket in samples.ticks[tick].unix:
        yield InnerQueue(f"unix:{socket.path}", socket.depth, socket.limit)
    for listener in samples.ticks[tick].listeners:
        if listener.port != samples.port:
            yield InnerQueue(f"port {listener.port}", listener.depth, listener.limit)


# nginx's and Apache's: 2025/11/21 07:26:40 [error] 7#7: *12 connect() to unix:/run/app.sock failed (11: Resource …) …
# [Fri Nov 21 07:26:40.123456 2025] [proxy:error] [pid 8] (11)Resource temporarily unavailable: AH02454: HTTP: attempt
# to connect to Unix domain socket /run/app.sock (localhost:80) failed
_NGINX = re.compile(
    rb"(\d{4}/\d\d/\d\d \d\d:\d\d:\d\d) \[\w+\] \d+#\d+: .*connect\(\) to (unix:[^ ]+) failed \(11: ", re.ASCII
)
_APACHE = re.compile(
    rb"\[\w{3} (\w{3} \d\d \d\d:\d\d:\d\d)\.\d+ (\d{4})\] .*\(11\)[^:]*: AH02454: .*Unix domain socket ([^ ]+) ",
    re.ASCII,
)


def read_refusals(file: BinaryIO) -> Iterator[tuple[int, int, str]]:
    """Yield number, second (Unix epoch, in µs) and socket of each line that says: connect() to a socket got EAGAIN."""
    for number, line in lines_of(file):
        if match := _NGINX.search(line):
            when, layout, name = match[1], "%Y/%m/%d %H:%M:%S", match[2]
        elif match := _APACHE.search(line):
            when, layout, name = match[1] + b" " + match[2], "%b %d %H:%M:%S %Y", b"unix:" + match[3]
        else:
            continue
        try:
            second = datetime.strptime(when.decode(), layout).replace(tzinfo=UTC)
        except ValueError:
            continue
        yield number, round(second.timestamp()) * 1_000_000, name.decode("utf-8", "replace")
