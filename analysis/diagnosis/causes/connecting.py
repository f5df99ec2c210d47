"""Causes of requests that had no connection: no port, no place in a queue, no answer, a refusal."""

from __future__ import annotations

import math

from analysis.diagnosis.causes.cause import (
    BEFORE_CONNECTION,
    BEHIND,
    BEHIND_FLOW,
    CONNECT_TIMER,
    DIAL_FAILED,
    ERROR,
    FLOW,
    HOP_OF_DIAL,
    LINE,
    UP,
    UP_FLOW,
    Cause,
    syns,
)
from analysis.diagnosis.causes.remedies import (
    KNOBS,
    NO_KNOB,
    QUEUE,
    SILENCE,
    AdvisedRun,
    Remedy,
    more_places,
    set_sysctl,
)
from formats.knob_types import format_duration

_PORTS = "1024 65535"

# The client gave up, or the proxy did, before there was a connection to the backend.
_NO_UPSTREAM = "(line_line IS NOT NULL AND try_server IS NOT NULL AND try_connect_us IS NULL)"
# k6's code for a request that was ended by its own timeout. Its dial goes on, to a timeout of its own or to k6's end;
# where the connection was for this request alone, it ends with it.
_GAVE_UP = "error_code = 1050"
# A service that asks another server answered with an error while it held every port towards that server.
_SERVICE_HAD_NO_PORT = "coalesce(behind_held >= behind_ports, false)"
_NO_CONNECTION = f"(remote IS NULL AND (dial_error_kind = 'timeout' OR dial_error_kind = 'canceled' AND {_GAVE_UP}))"


_ASKS_AGAIN_MS = 1000


def _ask_again(run: AdvisedRun) -> Remedy | str:
    """Let nginx ask again for a name that leads elsewhere now; else no setting helps where nothing listens."""
    moves = [each for each in run.manifest.actions if each.do == "dns" and each.start_us is not None]
    knob = "nginx.resolver_valid"
    now_ms = run.integer(knob) if moves and knob in run.manifest.knobs else _ASKS_AGAIN_MS
    if 0 < now_ms <= _ASKS_AGAIN_MS:
        return NO_KNOB
    last = moves[-1]
    kept = "asks once, at its start" if not now_ms else f"keeps an answer for {format_duration(now_ms)}"
    why = f"the name {last.name} leads to {last.instance}, and nginx went on to {last.was}: it {kept}"
    return Remedy(knob, format_duration(_ASKS_AGAIN_MS), why)


def _logged(number: int) -> str:
    """Return SQL for: the proxy's error log has this error number. The gateway's own record of a dial is more exact."""
    return f"(NOT coalesce(try_names_dial, false) AND error_text LIKE '%({number}: %')"


# No RST came to the proxy's SYN, and no other answer: an ICMP message refused it.
_UP_UNANSWERED = "up_id IS NOT NULL AND NOT up_refused AND NOT up_answered"
# A proxy that logs no error number: its try failed long before any timeout, and before a second SYN.
_FAILED_AT_ONCE = (
    "(NOT coalesce(try_names_dial, false) AND coalesce(try_status, line_status) IN (502, 503)"
    " AND try_response_us < 100000)"
)
_UP_BY_ICMP = (
    f"({_UP_UNANSWERED} AND (try_dial_error_kind = 'refused' OR {_logged(111)} OR coalesce({_FAILED_AT_ONCE}, false)))"
)


def _overflow(prefix: str) -> str:
    """Return SQL for: each of a connection's SYNs met a full queue."""
    return f"""(NOT {prefix}_established AND NOT {prefix}_refused AND {prefix}_syns_lost = {prefix}_syn_count
                AND {prefix}_syns_overflowed = {prefix}_syns_lost)"""


def _overflow_says(prefix: str) -> str:
    return f"""{syns(prefix)} || format(', none answered; around each, {{}} of {{}} held {{}} (limit {{}})'
               || ' and its kernel counted an overflow',
               CASE WHEN {prefix}_queue IS NOT NULL
                    THEN format('accept queue {{}} of the {{}}', {prefix}_queue, {prefix}_queues)
                    WHEN {prefix}_queues > 1 THEN format('one of the {{}} accept queues', {prefix}_queues)
                    ELSE 'the accept queue' END, {prefix}_to_instance,
               if({prefix}_depth_min = {prefix}_depth_max, {prefix}_depth_max::VARCHAR,
                  format('{{}} to {{}}', {prefix}_depth_min, {prefix}_depth_max)), {prefix}_queue_limit)"""


def _crowded_out(prefix: str) -> str:
    """Return SQL for: each of a connection's SYNs met a full SYN queue."""
    return f"""(NOT {prefix}_established AND NOT {prefix}_refused AND {prefix}_syns_lost = {prefix}_syn_count
                AND {prefix}_syns_syn_queue_full = {prefix}_syns_lost)"""


def _crowded_out_says(prefix: str) -> str:
    return f"""{syns(prefix)} || format(', none answered; around each, the kernel of {{}} counted a SYN that its queue'
               || ' of half-open connections had no place for', {prefix}_to_instance)"""


def _unnoticed(prefix: str) -> str:
    """Return SQL for: the handshake's last ACK met a full queue, and so did all data; the server knew nothing of it."""
    return f"""coalesce({prefix}_established AND NOT {prefix}_entered AND NOT {prefix}_aborted
                        AND {prefix}_ack_dropped_min > 0, false)"""


def _unnoticed_says(prefix: str) -> str:
    return f"""format('the ACK of {{}}, and all data, {{}} packets, met a full accept queue of {{}}',
        moment({prefix}_handshake_ack_time_us), {prefix}_ack_dropped_min, {prefix}_to_instance)"""


def _aborted_says(prefix: str) -> str:
    return f"""format('the ACK of {{}} met a full accept queue of {{}}, whose kernel answered with RST',
        moment({prefix}_handshake_ack_time_us), {prefix}_to_instance)"""


def _silent(prefix: str) -> str:
    """No SYN was answered, and the server's kernel dropped none at its listener."""
    return f"""(NOT {prefix}_established AND NOT {prefix}_refused
                AND {prefix}_syns_not_dropped = {prefix}_syns_lost)"""


def _answer_lost(prefix: str) -> str:
    """Return SQL for: the server answered a SYN, nothing came back for that, and its kernel had dropped none."""
    return f"""({prefix}_answered AND NOT {prefix}_established
                AND coalesce({prefix}_syns_not_dropped, 0) = {prefix}_syns_lost)"""


def _lost_says(prefix: str) -> str:
    """Return SQL for what became of a connection's SYNs that no full queue dropped."""
    return f"""{syns(prefix)} || if({prefix}_answered,
            format(', {{}} answered at {{}}, and no ACK came: its answers got lost on the way back',
                   {prefix}_to_instance, moment({prefix}_answered_us)),
            ', none answered, none dropped by the server''s kernel')"""


# The proxy gave up before it was connected. Nobody knows which connection was its own, or none came to the capture; but
# of all that it may have been, SYNs or answers got lost on the way.
_NONE_CAME = (
    f"({_NO_UPSTREAM} AND captured_behind AND up_id IS NULL AND doubt_silent = doubt_possible"
    " AND (try_status = 504 OR try_dial_error_kind = 'timeout'))"
)


def _before_socket(prefix: str) -> str:
    """Return SQL for: its SYNs came to the server's interface, and no answer left there, the first time or again."""
    return f"({_silent(prefix)} AND {prefix}_synacks_again = 0 AND {prefix}_cookies_sent = 0)"


def _before_socket_says(prefix: str) -> str:
    return f"""{syns(prefix)} || format(' came to the interface of {{}}, none answered; its kernel counted no drop,'
               || ' and no SYN-ACK left, neither at first nor a second later; ', {prefix}_to_instance)
               || CASE WHEN {prefix}_untracked > 0
                       THEN format('it dropped {{}} packets meanwhile, for its table of connections (nf_conntrack) had'
                                   || ' no place', {prefix}_untracked)
                       WHEN {prefix}_tracked >= {prefix}_tracked_max
                       THEN format('its table of connections (nf_conntrack) was full: {{}} of {{}}', {prefix}_tracked,
                                   {prefix}_tracked_max)
                       ELSE 'no counter says what dropped them' END"""


def _ports(run: AdvisedRun) -> Remedy | str | None:
    if run.behind:
        service, server = run.behind
        if pool := run.limit(service, "pool") and _pool(run, service):
            return pool
        return (
            f"{service} opens new connections to {server} and closes them, and each then holds its port for 60 s: let"
            f" {service} keep its connections to {server} (a pool, or keep-alive). More ports, or"
            " net.ipv4.tcp_tw_reuse, only put the failure off"
        )
    # A client that keeps its connections to the proxy opens few of them: then the proxy lacks ports.
    role = run.proxy if run.proxy and run.keeps_connections else run.client
    if pool := _pool(run, role):
        return pool
    why = "64,512 ports instead of the range that was held in TIME_WAIT"
    return set_sysctl(run, f"kernel.{role}.net.ipv4.ip_local_port_range", _PORTS, why)


def _pool(run: AdvisedRun, role: str) -> Remedy | None:
    """Return a pool with room for all; None where that is not what the role lacks."""
    room = {"pool": run.at_once, "server_pool": math.ceil(run.at_once / run.backends)}
    wanted = {knob: most for what, most in room.items() if (knob := run.limit(role, what)) is not None}
    # With 0 a pool keeps none, or any number.
    small = [name for name, most in wanted.items() if 0 < run.integer(name) < most]
    unused = run.limit(role, "no_pool")
    if not small or (unused is not None and run.knob(unused) is True):
        return None
    first, *rest = sorted(small, key=run.integer)
    why = (
        f"{run.at_once} requests may be in progress at once; the pool keeps {run.integer(first)} of their connections:"
        " every other connection is closed after its request and holds its port for 60 s"
    )
    besides = {name: str(wanted[name]) for name in rest}
    if besides:
        others = " and ".join(f"{name} to {value}" for name, value in besides.items())
        why += f"; {others} too, because the smaller limit counts"
    return Remedy(first, str(wanted[first]), why, besides)


def _lost_packets(run: AdvisedRun) -> str:
    """Return where to look for what loses packets, and the timer that ended the dial."""
    client, server = run.hop
    return f"look for what loses packets between {client} and {server}, with a capture at both ends{run.dial_timer}"


def _cookies(run: AdvisedRun) -> Remedy | None:
    why = "the kernel then answers SYNs for which its queue has no place"
    return set_sysctl(run, f"kernel.{run.crowded}.net.ipv4.tcp_syncookies", "1", why)


CAUSES = (
    Cause(
        name="ephemeral-ports-exhausted",
        meaning="The side that connects had no free local port for another connection to this server.",
        proof=(
            "The dial failed with EADDRNOTAVAIL, and the capture shows that connections held as many ports as"
            " `net.ipv4.ip_local_port_range` has. Connections in TIME_WAIT count, too. At a proxy: its"
            " own record of the dial says the same, its error log reports the error, or its access log has a try"
            " without a local port and the capture shows the same. Where the scenario declares the log's format: the"
            " try of an answer with 5xx has no connection. At a service that asks another server: it answered"
            " with a server's error (5xx), and while it had the request, the capture shows the same of its connections"
            " to that server."
        ),
        when=(
            "outcome = 'failed' AND (((dial_error_kind = 'address-not-available'"
            " OR try_dial_error_kind = 'address-not-available' OR line_gave_up = 'no-port'"
            " OR line_guessed IS NOT NULL AND line_status >= 500 AND up_id IS NULL)"
            " AND shortage_held >= shortage_ports AND NOT torn)"
            f" OR (try_connect_us IS NULL AND {_logged(99)})"
            f" OR ({_SERVICE_HAD_NO_PORT} AND NOT torn))"
        ),
        says=f"""if({_SERVICE_HAD_NO_PORT}, {BEHIND} || format('; {{}} of its {{}} ports towards {{}} were held,'
                || ' {{}} in TIME_WAIT', behind_held, behind_ports, behind_to_instance, behind_waiting)
                || coalesce(format('; its kernel counted {{}} sockets in TIME_WAIT',
                                   behind_waiting_sampled), ''),
            if(dial_error_kind = 'address-not-available', {DIAL_FAILED}, {LINE})
            || coalesce(format('; {{}} of {{}} ports were held, {{}} in TIME_WAIT', shortage_held, shortage_ports,
                               shortage_waiting), '') || {ERROR})""",
        seen=True,
        label="no port left",
        symptom="fails at once: cannot assign requested address",
        look="`ss -s` at the side that connects: sockets in TIME_WAIT; its range of ports",
        because="{client} had no port left for another connection to {server}",
        where="At {client}, before any packet was sent.",
        hop=HOP_OF_DIAL,
        explains=(
            "Each connection to one server takes a port of its own out of a range. The side that closes a connection"
            " first keeps its port for another 60 seconds, in the state TIME_WAIT. A program that opens and closes"
            " connections fast enough has the whole range in TIME_WAIT, and its kernel refuses to connect"
            " (EADDRNOTAVAIL).\n\n"
            "It helps most to keep connections instead of opening a new one for each request."
        ),
        knobs={
            "load.keep_alive": "whether clients keep their connections",
            "{client}.pool": "how many idle connections {client} keeps to its servers",
            "{client}.server_pool": "how many of these for each server; the smaller limit counts",
            "kernel.{client}.net.ipv4.ip_local_port_range": "the ports that there are to connect from",
            "kernel.{client}.net.ipv4.tcp_tw_reuse": "whether a port in TIME_WAIT may be used again after a second",
        },
        remedy=_ports,
        lesson="one-port",
    ),
    Cause(
        name="connection-refused",
        meaning="Nothing listened at the address that the client or the proxy dialled.",
        proof=(
            "The dial failed as `refused`, and the server answered its SYN with RST. At a proxy: the server answered"
            " the proxy's connection with RST, or the proxy recorded the refusal. At a service that asks another"
            " server: it answered with a server's error (5xx) after that server had refused its connection."
        ),
        when=(
            "outcome = 'failed' AND ((dial_error_kind = 'refused' AND flow_refused)"
            f" OR ({_NO_UPSTREAM} AND NOT {_UP_BY_ICMP}"
            f" AND (up_refused OR try_dial_error_kind = 'refused' OR {_logged(111)}))"
            " OR coalesce(behind_refused, false))"
        ),
        says=f"""if(coalesce(behind_refused, false), {BEHIND_FLOW} || ': it was answered with RST at '
            || moment(behind_answered_us), if(dial_error_kind = 'refused',
            {DIAL_FAILED} || '; ' || {FLOW} || ': the server answered with RST at '
            || moment(flow_answered_us), {LINE}) || {ERROR})""",
        seen=True,
        label="refused",
        symptom="fails at once: connection refused",
        look="`ss -lnt` at the server: does anything listen? Does its name still lead there?",
        because="nothing listened at {server}, and its kernel refused the connection",
        where=BEFORE_CONNECTION,
        hop=HOP_OF_DIAL,
        explains="A port on which no program listens answers a SYN with a reset (RST): the client knows it at once.",
        remedy=_ask_again,
        lesson="backend-restart",
    ),
    Cause(
        name="unreachable",
        meaning=(
            "The dial ended by an ICMP message, or because there was no route: a router or a packet filter said that"
            " the server cannot be reached, or nobody answered for its address."
        ),
        proof=(
            "The dial failed as `unreachable` (EHOSTUNREACH or ENETUNREACH). Or it failed as `refused`, and no RST"
            " came: the capture at the server has its SYN, and no answer; so an ICMP message refused it. At a proxy:"
            " its error log or its own record of the dial says the same."
        ),
        when=(
            "outcome = 'failed' AND (dial_error_kind = 'unreachable'"
            " OR (dial_error_kind = 'refused' AND captured AND flow_id IS NOT NULL AND NOT flow_refused"
            " AND NOT flow_answered)"
            f" OR ({_NO_UPSTREAM} AND (try_dial_error_kind = 'unreachable' OR {_logged(113)} OR {_logged(101)}"
            f" OR {_UP_BY_ICMP})))"
        ),
        says=f"""if(dial_error_kind IN ('unreachable', 'refused'), {DIAL_FAILED} || coalesce('; ' || {FLOW} || ': '
            || {syns("flow")} || format(' came to the interface of {{}}, and no packet of TCP answered',
                                       flow_to_instance), '; no SYN of it is in the capture'), {LINE} || {ERROR})""",
        label="unreachable",
        symptom="fails at once, or after 3 s: no route to host, network is unreachable",
        look="`nstat IcmpInDestUnreachs` at the client; `ip neigh`: FAILED; rules with `reject`",
        because="an ICMP message, or the lack of a route, told {client} that {server} cannot be reached",
        where=BEFORE_CONNECTION,
        hop=HOP_OF_DIAL,
        explains=(
            "A router without a route, a host that nobody answers for (after 3 s), and a packet filter that rejects"
            " instead of dropping say so by ICMP. The client's kernel then ends the dial at once: EHOSTUNREACH,"
            " ENETUNREACH, or, for ICMP's port unreachable, ECONNREFUSED, as if nothing listened."
        ),
        remedy=(
            "look for what sent the ICMP message (a capture of `icmp` at the client names its sender), or for a wrong"
            " address or route; no setting of the programs does it"
        ),
        lesson="filter-before-socket",
    ),
    Cause(
        name="accept-queue-drop",
        meaning=(
            "The server's accept queue was full at each SYN of the client or the proxy; or at the last ACK of the"
            " handshake and at all data after it."
        ),
        proof=(
            "The dial or its request timed out, no SYN was answered, and around each lost SYN the server's kernel"
            " counted at least as many `TcpExt.ListenOverflows` as SYNs were lost there. Or the server answered the SYN"
            " but never reacted to the ACK and to any data, so that only the client had a connection, and the server's"
            " kernel counted overflows. At a proxy: the same for its connection. At a service that asks another server:"
            " the same for its connection, before it answered with a server's error (5xx)."
        ),
        when=(
            f"outcome = 'failed' AND (({_NO_CONNECTION} AND {_overflow('flow')})"
            f" OR ({_NO_UPSTREAM} AND {_overflow('up')})"
            f" OR (status = 0 AND {_unnoticed('flow')}) OR (status IN (502, 504) AND {_unnoticed('up')})"
            f" OR (behind_id IS NOT NULL AND {_overflow('behind')}))"
        ),
        says=f"""if(behind_id IS NOT NULL, {BEHIND_FLOW} || ': ' || {_overflow_says("behind")},
            if({_unnoticed("flow")}, {FLOW} || ': ' || {_unnoticed_says("flow")},
            if({_unnoticed("up")}, {LINE} || '; ' || {UP} || '; ' || {UP_FLOW} || ': ' || {_unnoticed_says("up")},
            if({_NO_CONNECTION}, {DIAL_FAILED} || '; ' || {FLOW} || ': ' || {_overflow_says("flow")},
            {LINE} || '; ' || {UP} || '; ' || {UP_FLOW} || ': ' || {_overflow_says("up")}))))""",
        label="accept queue full",
        symptom="connect timeout, though the server looks idle",
        look="`ss -lnt` at the server: Recv-Q above Send-Q; `netstat -s`: the listen queue overflowed",
        because="{server} had no place for another connection: its accept queue was full each time {client} tried",
        where=BEFORE_CONNECTION,
        hop=HOP_OF_DIAL,
        explains=f"{QUEUE}\n\n{SILENCE}",
        knobs=KNOBS,
        remedy=more_places,
        accept_queue="full",
        lesson="accept-queue-overflow",
    ),
    Cause(
        name="accept-queue-reset",
        meaning=(
            "The server's accept queue had room for the SYN but not for the last ACK of the handshake, and the server's"
            " kernel reset the connection."
        ),
        proof=(
            "The client completed the handshake. After its SYN-ACK the server sent only a RST without the ACK flag; a"
            " socket never sends such a RST. The server's `net.ipv4.tcp_abort_on_overflow` is 1, and its kernel counted"
            " overflows. At a proxy: the same for its connection."
        ),
        when=(
            "outcome = 'failed' AND ((status = 0 AND coalesce(flow_aborted, false))"
            " OR (status IN (502, 504) AND coalesce(up_aborted, false)))"
        ),
        says=f"""if(coalesce(flow_aborted, false), {FLOW} || ': ' || {_aborted_says("flow")},
            {LINE} || '; ' || {UP} || '; ' || {UP_FLOW} || ': ' || {_aborted_says("up")})""",
        label="reset at a full queue",
        symptom="connection reset right after connecting",
        look="`sysctl net.ipv4.tcp_abort_on_overflow` at the server; `netstat -s`: the listen queue overflowed",
        because=(
            "{server} answered the SYN of {client}, then had no place in its accept queue and reset the connection"
        ),
        where=BEFORE_CONNECTION,
        hop=HOP_OF_DIAL,
        explains=(
            f"{QUEUE}\n\n"
            "The kernel asks for room twice: when the SYN comes, and when the handshake's last packet does. Clients"
            " that send their SYNs at the same moment may all find room the first time, and only some of them the"
            " second. With the setting tcp_abort_on_overflow the kernel resets the others (RST); without it, the kernel"
            " stays silent and they try again."
        ),
        knobs={**KNOBS, "kernel.{server}.net.ipv4.tcp_abort_on_overflow": "whether the kernel resets or stays silent"},
        remedy=more_places,
        accept_queue="full",
        lesson="abort-on-overflow",
    ),
    Cause(
        name="syn-queue-drop",
        meaning="The server's queue of half-open connections was full each time the client or the proxy sent a SYN.",
        proof=(
            "The dial or its request timed out, no SYN was answered, and around each lost SYN the server's kernel"
            " counted at least as many `TcpExt.TCPReqQFullDrop` as SYNs were lost there. At a proxy: the same for its"
            " connection."
        ),
        when=(
            f"outcome = 'failed' AND (({_NO_CONNECTION} AND {_crowded_out('flow')})"
            f" OR ({_NO_UPSTREAM} AND {_crowded_out('up')}))"
        ),
        says=f"""if({_NO_CONNECTION}, {DIAL_FAILED} || '; ' || {FLOW} || ': ' || {_crowded_out_says("flow")},
            {LINE} || '; ' || {UP} || '; ' || {UP_FLOW} || ': ' || {_crowded_out_says("up")})""",
        label="SYN queue full",
        symptom="connect timeout; the accept queue is empty",
        look="`ss -tan state syn-recv` at the server; `nstat TcpExtTCPReqQFullDrop`",
        because=(
            "{server} had no place for another half-open connection: its SYN queue was full each time {client} sent a"
            " SYN"
        ),
        where=BEFORE_CONNECTION,
        hop=HOP_OF_DIAL,
        explains=(
            "After the kernel has answered a SYN, the connection waits in the listening socket's SYN queue until its"
            " client completes it. This queue has the same limit as the accept queue, and holds one more. Clients that"
            " never complete their connections fill it. Then the kernel drops the SYNs of all others without an answer;"
            " it counts them as TcpExt.TCPReqQFullDrop.\n\n"
            "With tcp_syncookies the kernel needs no place: it writes what it must know into the sequence number of its"
            " answer, and makes the connection when that number comes back."
        ),
        knobs={
            "kernel.{server}.net.ipv4.tcp_syncookies": "whether the kernel answers with cookies when the queue is full",
            "{server}.backlog": "how many half-open connections there may be (no more than net.core.somaxconn)",
        },
        remedy=_cookies,
        lesson="syn-queue",
    ),
    Cause(
        name="dropped-before-socket",
        meaning=(
            "The SYNs came to the server's network interface, and something in its kernel dropped them before the"
            " listening socket, or dropped the answer on its way out: a packet filter, or connection tracking."
        ),
        proof=(
            "The dial or its request timed out. The capture at the server has its SYNs, and no answer. The server's"
            " kernel counted no drop around any of them, sent no SYN-ACK again (`TcpExt.TCPSynRetrans`) until 1.3 s"
            " after the first one, and no cookie: an answer that got lost on the way would have been repeated by then."
            " At a proxy: the same for its connection."
        ),
        when=(
            f"outcome = 'failed' AND (({_NO_CONNECTION} AND captured AND {_before_socket('flow')})"
            f" OR ({_NO_UPSTREAM} AND {_before_socket('up')}))"
        ),
        says=f"""if({_NO_CONNECTION}, {DIAL_FAILED} || '; ' || {FLOW} || ': ' || {_before_socket_says("flow")},
            {LINE} || '; ' || {UP} || '; ' || {UP_FLOW} || ': ' || {_before_socket_says("up")})""",
        label="dropped before the socket",
        symptom="connect timeout; the SYN arrives at the server, and no counter grows",
        look="`nft list ruleset` at the server: counters of rules that drop; `conntrack -S`; `dmesg`: table full",
        because="the SYNs of {client} came to {server}, and a packet filter or connection tracking there dropped them",
        where="At {server}, between its network interface and the listening socket.",
        hop=HOP_OF_DIAL,
        explains=(
            "A capture sees a packet before the packet filter does. What the filter drops (nftables, iptables, a full"
            " table of connections, reverse path filtering) comes to no socket, so that no queue and no counter of TCP"
            " shows it. A filter may also drop the answer, before a capture there sees it.\n\n"
            "Which rule it was, its own counter says: `nft list ruleset`, where the rule has `counter`, or `iptables"
            " -nvL`. A full table is in `conntrack -S` and in the kernel's log: nf_conntrack: table full, dropping"
            " packet."
        ),
        remedy=(
            "change the packet filter in the server's namespace, or raise net.netfilter.nf_conntrack_max where the"
            " table of connections was full; no setting of the programs does it"
        ),
        lesson="filter-before-socket",
    ),
    Cause(
        name="connect-timeout",
        meaning=(
            "The client or the proxy gave up connecting, and a full queue was not the reason: its SYNs or the answers"
            " to them were lost."
        ),
        proof=(
            "The dial or its request timed out. The server's kernel counted no drop around any of its SYNs, or the"
            " server's capture has none of these SYNs; or it has the server's answers to them, and nothing that answers"
            " these. At a proxy: the same for its connection, or for all that may have been its own."
        ),
        when=(
            f"outcome = 'failed' AND (({_NO_CONNECTION} AND captured"
            f" AND (flow_id IS NULL AND dial_local IS NOT NULL OR {_silent('flow')} OR {_answer_lost('flow')}))"
            f" OR ({_NO_UPSTREAM} AND ({_silent('up')} OR {_answer_lost('up')})) OR {_NONE_CAME})"
        ),
        says=f"""if({_NO_CONNECTION}, {DIAL_FAILED} || '; '
            || coalesce({FLOW} || ': ' || {_lost_says("flow")}, 'none of its SYNs is in the capture'),
            {LINE} || '; ' || {UP} || '; ' || CASE WHEN up_id IS NOT NULL THEN {UP_FLOW} || ': ' || {_lost_says("up")}
                WHEN doubt_possible = 0 THEN 'none of its SYNs is in the capture'
                ELSE format('of {{}} connections that may have been its own, none was established, and the server''s'
                            || ' kernel dropped no SYN', doubt_possible) END
            || {CONNECT_TIMER} || {ERROR})""",
        label="no answer to the SYN",
        symptom="connect timeout; the server's kernel counts nothing",
        look="a capture at both ends: does the SYN arrive, does the answer?",
        because="{server} never answered the SYNs of {client}, and not because of a full accept queue",
        where=BEFORE_CONNECTION,
        hop=HOP_OF_DIAL,
        explains="The SYNs, or the answers to them, got lost on the way: the server's kernel dropped none of them.",
        knobs={"{client}.connect_timeout": "how long {client} waits for a connection"},
        remedy=_lost_packets,
        lesson="no-answer-to-the-syn",
    ),
)
