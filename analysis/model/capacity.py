"""How many connections a Tomcat takes before the kernel drops further SYNs."""

from __future__ import annotations


def listen_backlog(accept_count: int, somaxconn: int) -> int:
    """The limit of the accept queue: what Tomcat asks of listen(2), cut by net.core.somaxconn of its namespace."""
    return min(accept_count, somaxconn)


def accept_capacity(max_connections: int, backlog: int) -> int:
    """The connections that are established at once at most.

    Tomcat accepts `max_connections` and no more. The kernel then completes handshakes until its queue is *longer* than
    the backlog: sk_acceptq_is_full() in include/net/sock.h compares with >, so the queue holds one more than asked.
    """
    return max_connections + backlog + 1
