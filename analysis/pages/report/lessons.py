"""What each cause means, in words for someone who meets it for the first time, and the knobs that bear on it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Lesson:
    """One cause of the ledger's closed list.

    Attributes:
        label: two or three words.
        because: continues a sentence after "because"; `{client}` and `{server}` are the roles of the hop.
        where: where on the path it happened.
        explains: how that comes about, one paragraph each.
        knobs: what may be turned, the most telling first, and what each does; of these,
            those count that belong to a role at the hop.
    """

    label: str
    because: str
    where: str
    explains: tuple[str, ...]
    knobs: dict[str, str]


_BEFORE = "Between {client} and {server}, before there was a connection."
_ON = "On the connection between {client} and {server}."

_PLACES = {
    "backend.max_connections": "how many connections Tomcat serves at once",
    "backend.accept_count": "how many more may wait in the accept queue (no more than net.core.somaxconn)",
    "backend.keep_alive_timeout": "how long an idle client keeps its place",
    "nginx.listen_backlog": "how many connections may wait for nginx",
}
_QUEUE = (
    "Before a program sees a new connection, the kernel of its machine completes it and puts it into the accept queue"
    " of the listening socket. There it waits until the program accepts it. The queue has a limit, and holds one"
    " connection more than that."
)
_SILENCE = (
    "When the queue is full, the kernel throws away the first packet of a new connection, the SYN, and says nothing."
    " The client cannot tell that from a slow network: it sends the SYN again after longer and longer pauses, until one"
    " finds a place or its connect time-out ends. No log of the server tells of it. Only the kernel counts it, as"
    " TcpExt.ListenOverflows."
)

LESSONS: dict[str, Lesson] = {
    "accept-queue-drop": Lesson(
        "accept queue full",
        "{server} had no place for another connection: its accept queue was full each time {client} tried",
        _BEFORE,
        (_QUEUE, _SILENCE),
        _PLACES,
    ),
    "accept-queue-reset": Lesson(
        "reset at a full queue",
        "{server} answered the SYN of {client}, then had no place in its accept queue and broke the connection off",
        _BEFORE,
        (
            _QUEUE,
            (
                "The kernel asks for room twice: when the SYN comes, and when the handshake's last packet does. Clients"
                " that send their SYNs at the same moment may all find room the first time, and only some of them the"
                " second. The setting tcp_abort_on_overflow tells the kernel to break the others off with a reset"
                " (RST); without it, the kernel stays silent and they try again."
            ),
        ),
        {**_PLACES, "kernel.{server}.net.ipv4.tcp_abort_on_overflow": "whether the kernel resets or stays silent"},
    ),
    "syn-queue-drop": Lesson(
        "SYN queue full",
        "{server} had no place for another half-open connection: its SYN queue was full each time {client} sent a SYN",
        _BEFORE,
        (
            (
                "A connection that has been answered, and not yet completed by its client, waits in the listening"
                " socket's SYN queue. That has the same limit as the accept queue, and holds one more. Clients that"
                " never complete their connections fill it, and the kernel throws away the SYNs of all others, as"
                " TcpExt.TCPReqQFullDrop, and says nothing."
            ),
            (
                "With tcp_syncookies the kernel needs no place: it writes what it must know into the number of its"
                " answer, and makes the connection when that number comes back."
            ),
        ),
        {
            "kernel.{server}.net.ipv4.tcp_syncookies": "whether the kernel answers with cookies when the queue is full",
            "backend.accept_count": "how many half-open connections there may be (no more than net.core.somaxconn)",
            "nginx.listen_backlog": "how many half-open connections there may be (no more than net.core.somaxconn)",
        },
    ),
    "waited-for-syn-retry": Lesson(
        "served after a lost SYN",
        "the first SYN of {client} to {server} got lost, and only a later one was answered",
        _BEFORE,
        (
            _QUEUE,
            _SILENCE,
            (
                "Here a later SYN found a place. The user waited for whole seconds and saw no error, and most tools do"
                " not count that time."
            ),
        ),
        _PLACES,
    ),
    "waited-for-ack-retry": Lesson(
        "served after a lost ACK",
        "the accept queue of {server} was full when the handshake's last packet came, and only a later one was taken",
        _BEFORE,
        (
            _QUEUE,
            (
                "A connection takes its place in the queue with the last packet of the handshake, the client's ACK."
                " Here the queue had filled up since the SYN, so the kernel threw the ACK away. The client believes"
                " that the connection stands; the server's kernel, or the client's data sent again, has to bring it"
                " about later."
            ),
        ),
        _PLACES,
    ),
    "waited-in-accept-queue": Lesson(
        "waited in the accept queue",
        "the connection lay in the accept queue of {server} until the server had a place for it",
        "At {server}, after the connection was made and before the server accepted it.",
        (
            _QUEUE,
            (
                "The client sees a connection that is open and sends its request; nothing answers until the program"
                " takes the connection out of the queue."
            ),
        ),
        _PLACES,
    ),
    "server-paused": Lesson(
        "server paused",
        "the lab had paused a server that had the request",
        "At a server on the way, after the connection had been accepted.",
        (
            (
                "A process that is paused does nothing, and its kernel goes on without it: connections are completed"
                " and requests are acknowledged. For the client that is a server which is silent."
            ),
        ),
        {},
    ),
    "connect-timeout": Lesson(
        "no answer to the SYN",
        "{server} never answered the SYNs of {client}, and not because of a full accept queue",
        _BEFORE,
        ("The SYNs, or the answers to them, got lost on the way: the server's kernel dropped none of them.",),
        {
            "load.connect_timeout": "how long a client waits for a connection",
            "nginx.proxy_connect_timeout": "how long nginx waits for one",
        },
    ),
    "connection-refused": Lesson(
        "refused",
        "nothing listened at {server}, and its kernel refused the connection",
        _BEFORE,
        ("A port on which no program listens answers a SYN with a reset (RST): the client knows it at once.",),
        {},
    ),
    "ephemeral-ports-exhausted": Lesson(
        "no port left",
        "{client} had no port left for another connection to {server}",
        "At {client}, before any packet was sent.",
        (
            (
                "Each connection to one server takes a port of its own out of a range. The side that closes a"
                " connection first keeps its port for another 60 seconds, in the state TIME_WAIT. Who opens and closes"
                " connections fast enough has the whole range in TIME_WAIT, and its kernel refuses to connect"
                " (EADDRNOTAVAIL)."
            ),
            "Keeping connections, rather than opening a new one for each request, is what helps most.",
        ),
        {
            "load.keep_alive": "whether clients keep their connections",
            "nginx.upstream_keepalive": "how many connections nginx keeps to the backends",
            "gateway.max_idle_conns": "how many idle connections the gateway keeps at all; the smaller limit counts",
            "gateway.max_idle_conns_per_host": "how many of these for each backend",
            "kernel.{client}.net.ipv4.ip_local_port_range": "the ports that there are to connect from",
            "kernel.{client}.net.ipv4.tcp_tw_reuse": "whether a port in TIME_WAIT may be used again after a second",
        },
    ),
    "proxy-connections-exhausted": Lesson(
        "proxy out of connections",
        "nginx had none of its worker_connections left",
        "At nginx, which had to close connections or answer with an error.",
        (
            (
                "Each nginx worker has a fixed number of places for connections, and a request that it passes on takes"
                " two: one for the client, one for the backend. When they are gone, it closes the client's connection"
                " without an answer or answers with an error (5xx)."
            ),
        ),
        {
            "nginx.worker_connections": "the places of each worker",
            "nginx.worker_processes": "how many workers there are",
            "nginx.upstream_keepalive": "how many connections to the backends are kept; they take places too",
        },
    ),
    "stale-keepalive": Lesson(
        "kept connection was closed",
        "{server} closed an idle connection in the moment in which {client} used it again",
        _ON,
        (
            (
                "A kept connection may be closed by the server at any time. If a request is on its way just then,"
                " nothing answers it. The side that sends requests should be the first to give an idle connection up."
            ),
        ),
        {
            "backend.keep_alive_timeout": "how long Tomcat keeps an idle connection",
            "nginx.upstream_keepalive_timeout": "how long nginx keeps one to a backend",
            "nginx.keepalive_timeout": "how long nginx keeps one of a client",
        },
    ),
    "reset-by-peer": Lesson(
        "reset",
        "{server} broke the connection off (RST) before it answered",
        _ON,
        ("A reset ends a connection at once: what was under way on it is lost, and the client gets an error.",),
        {},
    ),
    "closed-without-answer": Lesson(
        "closed without an answer",
        "{server} closed the connection without an answer",
        _ON,
        ("The server ended the connection in an orderly way (FIN), but sent nothing before.",),
        {},
    ),
    "no-live-upstream": Lesson(
        "no server left to try",
        "the proxy had left all servers out after earlier failures, and answered 502",
        "At the proxy, which asked no server.",
        (
            (
                "nginx leaves a server out for fail_timeout after max_fails failed tries, if there are several. When"
                " it has left out all, it answers 502 at once, however well the servers are by then."
            ),
        ),
        {
            "nginx.max_fails": "how many failed tries leave a server out",
            "nginx.fail_timeout": "for how long",
            "backend.accept_count": "how many connections may wait at each server",
        },
    ),
    "upstream-timeout": Lesson(
        "backend too slow for the proxy",
        "the proxy waited for the backend as long as it may, and answered 504",
        "Between the proxy and the backend.",
        ("A proxy gives a backend up when its own time-out ends, however near the answer is.",),
        {"nginx.proxy_read_timeout": "how long nginx waits for a backend's answer"},
    ),
    "upstream-failed": Lesson(
        "backend broke off",
        "the backend broke off while the proxy waited for its answer, and the proxy answered 502",
        "Between the proxy and the backend.",
        ("A proxy that gets no whole answer from a backend tells the client so, with the status 502.",),
        {},
    ),
    "error-status": Lesson(
        "answered with an error",
        "the server answered with an error",
        "At the server, which answered.",
        ("The connection and the exchange were sound; the answer itself says that something failed.",),
        {},
    ),
    "waited-for-a-connection": Lesson(
        "waited for a connection",
        "the request waited at {client} until one of its connections to {server} was free",
        "At {client}, before the request went on to {server}.",
        ("Where all connections are in use and there may be no more of them, further requests wait.",),
        {"{client}.max_conns_per_host": "how many connections to each backend there may be; 0 sets no limit"},
    ),
    "waited-for-another-server": Lesson(
        "tried another server first",
        "the proxy had tried another server in vain",
        "Between the proxy and the backends.",
        (
            (
                "A proxy that may try the next server hides the first one's failure: the client sees no error, only"
                " the time that the proxy waited for the first."
            ),
        ),
        {
            "nginx.proxy_connect_timeout": "how long nginx tries to connect to one server",
            "nginx.proxy_next_upstream": "after which failures it tries another",
        },
    ),
    "waited-for-a-thread": Lesson(
        "waited for a thread",
        "all threads of {server} were busy",
        "At {server}, after it had accepted the connection.",
        ("Tomcat works on as many requests at once as it has threads; further ones wait, with their connection open.",),
        {
            "backend.threads_max": "how many requests Tomcat works on at once",
            "backend.virtual_threads": "whether each request gets a thread of its own",
        },
    ),
    "slow-handler": Lesson(
        "the server's own work",
        "the server worked on it for that long",
        "At {server}, in its handler.",
        ("The connection was made and taken at once; the time went by in the program itself.",),
        {"load.handler_delay": "how long the handler takes"},
    ),
    "generator-starved": Lesson(
        "the client was late",
        "the client was late to take an answer that was there: the machine was too busy",
        "At {client}, the load generator.",
        ("The processors of this machine had no time left. Then the load generator measures itself.",),
        {"load.users": "how many users there are"},
    ),
    "unexplained": Lesson(
        "unexplained",
        "of a reason that nothing on record proves",
        "Not known.",
        ("The ledger gives a cause only where records prove one; section 5 says what is missing.",),
        {},
    ),
}


def of_cause(cause: str) -> Lesson:
    """The lesson of a cause; of one that this version does not know, its name."""
    plain = cause.replace("-", " ")
    return LESSONS.get(cause, Lesson(plain, f"of “{plain}”", "See section 5.", (), {}))
