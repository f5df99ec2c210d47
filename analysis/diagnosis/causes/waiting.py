"""Causes of requests that waited: each is a part of their time, which analysis.diagnosis.attribution measures."""

from __future__ import annotations

import math
from functools import partial

from analysis.diagnosis.causes.cause import BEFORE_CONNECTION, FLOW, LAST_HOP, UP, UP_FLOW, Cause, syns
from analysis.diagnosis.causes.remedies import (
    KNOBS,
    QUEUE,
    SILENCE,
    AdvisedRun,
    Remedy,
    files_of_the_queue,
    leave_silent_clients,
    more_places,
    raise_knob,
    share_a_queue,
)


def main_part(part: str) -> str:
    """Return SQL for: the greatest proven part of the time, if all are half of it, or all that is above the bound.

    A request that failed before the bound had nothing above it.
    """
    return f"""({part} > 0 AND {part} = part_max_us
                AND (2 * parts_us >= total_us OR (total_us > bound_us AND total_us - parts_us <= bound_us)))"""


# The ends of a wait may be on two clocks. Its proof holds if it would with the wait shorter by twice what these may be
# off by, and all others longer. Of two waits that are alike but for a tenth of the whole time, either is the main part.
APART = """greatest(least(greatest((2 * parts_us - total_us) // 4, (bound_us - total_us + parts_us) // 2),
                           (part_max_us - part_next_us + total_us // 10) // 4), 0)"""


def _recovered_says(prefix: str, part: str) -> str:
    return f"""format('flow {{}}/{{}}: ', {prefix}_observer, {prefix}_id) || {syns(prefix)}
        || format(', answered at {{}} ({{}} of {{}})', moment({prefix}_answered_us), took({part}), took(total_us))"""


def _came_late_says(prefix: str, part: str) -> str:
    return f"""format('the first SYN that came to {{}} did at {{}} ({{}} of {{}})', {prefix}_to_instance,
        moment({prefix}_first_time_us), took({part}), took(total_us))"""


_NOT_DROPPED = "'; the server''s kernel dropped none of them'"


# No part explains the request: all are less than half of its time, or the greatest is the answer's way to a client that
# was not too busy to read it. With the time that the server surely had it, half is proven.
_UNREAD = """(unread_us > 0 AND (outcome = 'slow' OR error_code = 1050) AND 2 * (parts_us + unread_us) >= total_us
        AND (2 * parts_us < total_us OR lag_us = part_max_us AND lag_us <= handler_us + unread_us
             AND coalesce(idle_percent >= idle_percent_min, false)))"""


def _made_late_says(prefix: str, part: str) -> str:
    return f"""format('flow {{}}/{{}}: from the ACK of {{}} on, {{}} packets met a full accept queue of {{}}, until one'
        || ' made the connection at {{}} ({{}} of {{}})', {prefix}_observer, {prefix}_id,
        moment({prefix}_handshake_ack_time_us), {prefix}_ack_dropped_min, {prefix}_to_instance,
        moment({prefix}_queued_us), took({part}), took(total_us))"""


def _queued_says(prefix: str, part: str) -> str:
    # Samples leave a span of time; the kernel's event one moment.
    how = f"""if({prefix}_accepted_before_us = {prefix}_accepted_after_us, ' by the kernel''s event', ' or later')"""
    return f"""format(
        'flow {{}}/{{}}: complete at {{}}, in the accept queue of {{}} until {{}}{{}} ({{}} of {{}})',
        {prefix}_observer, {prefix}_id, moment({prefix}_queued_us), {prefix}_to_instance,
        moment({prefix}_accepted_after_us), {how}, took({part}), took(total_us))
        || if({prefix}_ahead_in_vain > 0, format('; of {{}} ahead of it there, the clients of at least {{}} had left:'
            || ' the server took them up in vain', {prefix}_ahead, {prefix}_ahead_in_vain), '')"""


def _handshake_says(prefix: str) -> str:
    """Return SQL for whom a TLS handshake waited for, by its packets; nothing where these do not tell."""
    hello, answer, reply, end = (
        f"{prefix}_{name}_time_us" for name in ("client_hello", "server_hello", "client_reply", "tls_end")
    )
    return f"""coalesce(format(' (by its packets, {{}} from the ClientHello to the ServerHello, then {{}} to the'
        || ' client''s reply', took({answer} - {hello}), took({reply} - {answer}))
        || if({end} > {reply}, format(', then {{}} to the server''s', took({end} - {reply})), '') || ')', '')"""


def served_at_once(run: AdvisedRun) -> Remedy | str | None:
    """Return more connections at once where requests waited in an accept queue, so that none has to."""
    server = run.hop[1]
    if told := share_a_queue(run, server) or files_of_the_queue(run, server) or leave_silent_clients(run, server):
        return told
    knob = run.limit(server, "connections")
    if knob is None and (own := run.setting(server, "workers")):
        return f"more requests must be served at once, so that connections are accepted sooner: raise {own}"
    each = math.ceil(run.at_once / run.instances(server))
    return raise_knob(run, knob, each, f"{each} connections for each {server}, none left in the queue")


def _inside(run: AdvisedRun) -> str:
    """Return which setting of the server's own program bounds what it serves at once, if the lab knows one."""
    own = run.setting(run.server, "workers")
    bound = f"; {own} bounds how many requests {run.server} serves at once, and others wait inside" if own else ""
    return f"the program took that time; the path does not show what it waited for{bound}"


def _connections(run: AdvisedRun) -> Remedy | None:
    """More connections to each server; None where no proxy limits them."""
    knob = run.limit(run.proxy, "server_connections")
    now = run.integer(knob) if knob else 0
    if not knob or not now:
        return None
    each = math.ceil(run.at_once / run.backends)
    if now >= each:
        return Remedy(knob, "0", f"no limit: {now} for each {run.server} should have been enough")
    why = f"{each} connections for each {run.server}: {run.at_once} requests may be in progress at once"
    return Remedy(knob, str(each), why)


def _threads(run: AdvisedRun) -> Remedy | None:
    connections = run.limit(run.server, "connections")
    value = min(run.at_once, run.integer(connections)) if connections else run.at_once
    return raise_knob(run, run.limit(run.server, "threads"), value, f"{value} requests may be in progress at once")


_READINGS = """if(scrapes_waiting > 0, format('all {} readings', scrapes_waiting), 'the readings before and after')
    || format(' before {} began with it', server)"""


def _data_says(part: str) -> str:
    """Return SQL for the connection on which data was late: the client's, or the proxy's."""
    return f"if({part} >= up_{part}, {FLOW}, {UP} || '; ' || {UP_FLOW})"


_wait = partial(Cause, apart=APART)

CAUSES = (
    _wait(
        name="waited-for-a-connection",
        meaning="The request waited until a connection in the client's or the proxy's pool was free.",
        proof="It used a connection that existed already, and was blocked before it got that connection.",
        when=f"{main_part('pool_us')} OR {main_part('up_pool_us')}",
        says="""if(coalesce(pool_us, 0) >= coalesce(up_pool_us, 0),
               format('blocked for {} of {} before it got dial {}/{}', took(pool_us), took(total_us), instance, dial),
               format('{} line {}: waited for {} of {} before it got dial {}/{}', line_instance, line_line,
                      took(up_pool_us), took(total_us), line_instance, try_dial))""",
        seen=True,
        label="waited for a connection",
        symptom="slow; the server is quick",
        look="the proxy's pool: connections in use beside its limit",
        because="the request waited at {client} until one of its connections to {server} was free",
        where="At {client}, before the request went on to {server}.",
        hop="coalesce(up_pool_us, 0) > coalesce(pool_us, 0)",
        explains="If all connections are in use and the limit allows no more, further requests wait.",
        knobs={"{client}.server_connections": "how many connections to each server there may be; 0 sets no limit"},
        remedy=_connections,
        lesson="gateway-pool-too-small",
    ),
    _wait(
        name="waited-for-syn-retry",
        meaning="Earlier SYNs of its connection met a full queue, and a later one was answered. No error shows this.",
        proof=(
            "In the capture the connection has more than one SYN, and the answer is to a later one. Around each lost"
            " SYN the server's kernel counted at least as many overflows, or SYNs without a place in its SYN queue, as"
            " SYNs were lost there."
        ),
        when=f"{main_part('syn_us')} OR {main_part('up_syn_us')}",
        says=f"""if(coalesce(syn_us, 0) >= coalesce(up_syn_us, 0), {_recovered_says("flow", "syn_us")},
               {UP} || '; ' || {_recovered_says("up", "up_syn_us")})""",
        label="served after a lost SYN",
        symptom="some answers whole seconds late: by 1 s, 2 s, 3 s or more",
        look="`nstat TcpExtTCPSynRetrans` at the client; `netstat -s` at the server",
        because="the first SYN of {client} to {server} got lost, and only a later one was answered",
        where=BEFORE_CONNECTION,
        hop="coalesce(up_syn_us, 0) > coalesce(syn_us, 0)",
        explains=(
            f"{QUEUE}\n\n{SILENCE}\n\n"
            "Here a later SYN found a place. The user waited for whole seconds and saw no error, and most tools do not"
            " count that time."
        ),
        knobs=KNOBS,
        remedy=more_places,
        accept_queue="full",
        lesson="nginx-backlog",
    ),
    _wait(
        name="syn-lost",
        meaning="A SYN of its connection, or the answer to it, got lost on the way, and a later one was answered.",
        proof=(
            "In the capture at the server the connection has more than one SYN, and the server's kernel dropped none of"
            " them. Or its only SYN there came a second or more after the dial began, or the proxy's try (the first"
            " retransmission's timeout), and that side's kernel sent more SYNs again (`TcpExt.TCPSynRetrans`) than all"
            " captures have. At a proxy: the same for all connections that may have been its own."
            " If no SYN is ever answered, the cause is `connect-timeout`."
        ),
        when=f"{main_part('lost_us')} OR {main_part('up_lost_us')}",
        says=f"""if(coalesce(lost_us, 0) >= coalesce(up_lost_us, 0),
            if(coalesce(flow_syns_lost, 0) > 0, {_recovered_says("flow", "lost_us")} || {_NOT_DROPPED},
               {FLOW} || format(': the dial began at {{}}, and ', moment(dial_time_us))
               || {_came_late_says("flow", "lost_us")}),
            {UP} || '; ' || CASE WHEN up_syns_lost > 0 THEN {_recovered_says("up", "up_lost_us")} || {_NOT_DROPPED}
                WHEN up_id IS NOT NULL THEN {UP_FLOW} || ': ' || {_came_late_says("up", "up_lost_us")}
                ELSE format('it was connected after {{}} of {{}}; of {{}} that may have been its own, the first SYN'
                            || ' that came did so at {{}}', took(up_lost_us), took(total_us),
                            connect_possible || if(connect_possible = 1, ' connection', ' connections'),
                            moment(connect_first_syn_us)) END)""",
        label="served after a SYN got lost on the way",
        symptom="some answers whole seconds late, and the server's counters of full queues stay",
        look="captures at both ends: which SYNs arrive? `nstat TcpExtTCPSynRetrans` at the client",
        because="a SYN of {client} to {server}, or its answer, got lost on the way",
        where=BEFORE_CONNECTION,
        hop="coalesce(up_lost_us, 0) > coalesce(lost_us, 0)",
        explains=(
            "A client that gets no answer to its SYN sends it again after a second, then less and less often. It cannot"
            " tell a lost packet from a full queue: only the server's counters and captures can."
        ),
        remedy="look for what loses packets between the two: a kept connection needs no SYN",
        lesson="lost-or-dropped",
    ),
    _wait(
        name="data-lost",
        meaning="Data of the request or of its answer got lost on the way, and came when it was sent again.",
        proof=(
            "The capture at the sender has some of it again, before the request was over; the wait is from the first"
            " time to the last. Or the request came to the server's capture 200 ms or more after the client, or the"
            " proxy, had sent it (the least timeout of a retransmission), and that side's kernel sent more data again"
            " (`Tcp.RetransSegs`) than the captures have."
        ),
        when=f"{main_part('data_us')} OR {main_part('up_data_us')}",
        says=f"""{_data_says("data_us")}
            || format(CASE WHEN NOT data_asks THEN ': the answer''s data left at {{}}, and again at {{}}'
                           WHEN outcome = 'slow' THEN ': the request''s data was sent at {{}}, and first came at {{}}'
                           WHEN data_until_us < end_us
                           THEN ': the request''s data came at {{}}, and again until {{}}; what answers it got lost'
                           ELSE ': the request''s data was sent at {{}}, and none had come by {{}}' END,
                      moment(data_from_us), moment(data_until_us))
            || format(' ({{}} of {{}})', took(greatest(data_us, up_data_us)), took(total_us))""",
        label="data got lost on the way",
        symptom="some answers 200 ms late, or more, over connections that stand; no counter of the server moves",
        look="`nstat TcpRetransSegs` on both sides; `ss -ti`: retrans, backoff; captures at both ends",
        because="data between {client} and {server} got lost on the way, and came when it was sent again",
        where="On the way between {client} and {server}.",
        hop="coalesce(up_data_us, 0) > coalesce(data_us, 0)",
        explains=(
            "A sender learns of a loss from the acknowledgements of what came later. Where nothing came later, as with"
            " a short request or the end of an answer, it waits for its timeout: 200 ms at least, and twice as long"
            " each time."
        ),
        remedy="look for what loses packets between the two: a link, a queue that is too short, a wireless hop",
        lesson="lost-data",
    ),
    _wait(
        name="delayed-ack",
        meaning=(
            "A part of the request or the answer was held back by its sender's kernel until the other side had"
            " acknowledged the part before (Nagle's algorithm), and that side's kernel took its time (delayed ACK)."
        ),
        proof=(
            "In the capture a side sends data, then nothing; 30 ms later or more the other side sends an"
            " acknowledgement without data, and at most 2 ms after it the first side sends more."
        ),
        when=f"{main_part('ack_wait_us')} OR {main_part('up_ack_wait_us')}",
        says=f"""{_data_says("ack_wait_us")}
            || format(': the first part of the {{}} was sent at {{}}, and the last one when that was acknowledged, at'
                      || ' {{}} ({{}} of {{}})', if(data_asks, 'request', 'answer'), moment(data_from_us),
                      moment(data_until_us), took(greatest(ack_wait_us, up_ack_wait_us)), took(total_us))""",
        label="waited for a delayed ACK",
        symptom="40 ms too much, over and over, on kept connections",
        look="a capture: small data, 40 ms of silence, a bare ACK, and at once the rest; `ss -ti`: no nodelay",
        because="the rest of what was sent between {client} and {server} waited for a delayed acknowledgement",
        where="In the sender's kernel, between {client} and {server}.",
        hop="coalesce(up_ack_wait_us, 0) > coalesce(ack_wait_us, 0)",
        explains=(
            "A program that writes a message in two parts lets its kernel send the first at once. The second is small,"
            " so the kernel keeps it until the first is acknowledged (Nagle's algorithm). The other side's kernel waits"
            " for some 40 ms whether its program will answer, before it sends a bare acknowledgement. A program that"
            " sets TCP_NODELAY, or writes the message at once, does not wait."
        ),
        remedy=(
            "let the sender write a whole message at once, or set TCP_NODELAY, as Go, Node.js, Java's servers, nginx"
            " and HAProxy do by themselves (Python's http.server: wbufsize = -1, or disable_nagle_algorithm = True)"
        ),
        lesson="delayed-ack",
    ),
    _wait(
        name="waited-for-ack-retry",
        meaning=(
            "The last ACK of its handshake and its data met a full accept queue, until a retransmission of the data, or"
            " the ACK of a repeated SYN-ACK, found room. No error shows this."
        ),
        proof=(
            "In the capture the client completed the handshake. The server acknowledged only a retransmission of the"
            " data, or had acknowledged no data when it sent its own. The server's kernel counted overflows."
        ),
        when=f"{main_part('ack_us')} OR {main_part('up_ack_us')}",
        says=f"""if(coalesce(ack_us, 0) >= coalesce(up_ack_us, 0), {_made_late_says("flow", "ack_us")},
               {UP} || '; ' || {_made_late_says("up", "up_ack_us")})""",
        label="served after a lost ACK",
        symptom="some answers late, right after connecting",
        look="`netstat -s` at the server: the listen queue overflowed",
        because=(
            "the accept queue of {server} was full when the handshake's last packet came, and only a later one was"
            " taken"
        ),
        where=BEFORE_CONNECTION,
        hop="coalesce(up_ack_us, 0) > coalesce(ack_us, 0)",
        explains=(
            f"{QUEUE}\n\n"
            "A connection takes its place in the queue with the last packet of the handshake, the client's ACK. Here"
            " the queue had filled up since the SYN, so the kernel dropped the ACK. The client believes that it is"
            " connected. The connection is made later, when the server's kernel sends its SYN-ACK again, or the client"
            " its data."
        ),
        knobs=KNOBS,
        accept_queue="full",
        lesson="abort-on-overflow",
    ),
    _wait(
        name="waited-in-accept-queue",
        meaning="Its connection was complete and waited in the accept queue until the server accepted it.",
        proof=(
            "The queue is first in, first out. The connections before it in the capture, and the queue's depth at each"
            " tick, show that it was still in the queue at the last tick before the server accepted it."
        ),
        when=f"{main_part('queue_us')} OR {main_part('up_queue_us')}",
        says=f"""if(coalesce(queue_us, 0) >= coalesce(up_queue_us, 0),
               if(waited_dial IS NULL, {_queued_says("flow", "queue_us")},
                  format('the connection on which it was sent first, dial {{}}/{{}}, lay in the accept queue for {{}}'
                         || ' of {{}}', instance, waited_dial, took(queue_us), took(total_us))),
               {UP} || '; ' || {_queued_says("up", "up_queue_us")})""",
        label="waited in the accept queue",
        symptom="slow, no error; connecting took no time",
        look="`ss -lnt` at the server: Recv-Q above 0; connections beside their limit",
        because="the connection waited in the accept queue of {server} until the server had a place for it",
        where="At {server}, after the connection was made and before the server accepted it.",
        hop="coalesce(up_queue_us, 0) > coalesce(queue_us, 0)",
        explains=(
            f"{QUEUE}\n\n"
            "The client sees a connection that is open and sends its request; nothing answers until the program takes"
            " the connection out of the queue."
        ),
        knobs=KNOBS,
        remedy=served_at_once,
        accept_queue="held",
        lesson="accept-queue-turns",
    ),
    _wait(
        name="waited-for-tls-handshake",
        meaning="Its connection was made at once, and the TLS handshake on it took the time.",
        proof=(
            "The client measured the handshake of a connection that was made for the request. What of it the connection"
            " lay in the accept queue, lost a packet or met a pause does not count. Of a proxy's connection to a server"
            " its packets tell."
        ),
        when=f"{main_part('tls_wait_us')} OR {main_part('up_tls_wait_us')}",
        says=f"""if(tls_wait_us >= up_tls_wait_us,
            format('dial {{}}/{{}} was connected at {{}}; its TLS handshake took {{}} of {{}}', instance,
                   coalesce(waited_dial, dial), moment(opened_us),
                   took(if(waited_dial IS NULL, greatest(tls_us, tls_wait_us), tls_wait_us)), took(total_us))
                || if(waited_dial IS NULL, {_handshake_says("flow")}, '; the request was sent on it first'),
            {UP} || '; ' || {UP_FLOW} || format(': its TLS handshake took {{}} of {{}}',
                   took(up_tls_end_time_us - up_client_hello_time_us), took(total_us)) || {_handshake_says("up")})""",
        seen=True,
        label="waited for the TLS handshake",
        symptom="slow on new connections alone; kept ones are quick",
        look="the client's handshake times; the server's processor; the share of resumed sessions in the proxy's log",
        because="the TLS handshake between {client} and {server} took that long",
        where="Between {client} and {server}, after the connection was made and before the request was sent.",
        # The files of a run without TLS have no column for either wait.
        hop="starts_with(evidence, 'the proxy tried ')",
        explains=(
            "A whole handshake costs the server a signature, which takes far more processor time than the request"
            " itself. Handshakes that come at the same time wait for each other. A resumed session costs no signature,"
            " and a kept connection no handshake."
        ),
        knobs={
            "load.keep_alive": "whether clients keep their connections",
            "load.tls_resumption": "whether clients resume sessions",
        },
        remedy="keep connections, let clients resume sessions, or take a key that signs faster (ecdsa)",
        lesson="handshake-storm",
    ),
    _wait(
        name="waited-for-another-server",
        meaning=(
            "The proxy tried another server, or the same one, without success before the try that was answered. No"
            " error shows this to the client."
        ),
        proof="The access line has more than one try.",
        when=main_part("retry_us"),
        says="""format('the proxy tried {} at {} without success (status {}), and after {} of {} tried {}',
            first_server, moment(first_start_us), first_status, took(retry_us), took(total_us), try_server)""",
        label="retried elsewhere",
        symptom="answers late by the length of the proxy's connect timeout",
        look="the proxy's access log: more than one upstream in a line",
        because="the proxy had tried another server, or the same one, without success",
        where="Between the proxy and the servers.",
        explains=(
            "A proxy that may try the next server, or the same one again, hides the first failure: the client sees no"
            " error, only the time that the proxy waited for the first try."
        ),
        knobs={
            "{client}.connect_timeout": "how long {client} tries to connect to one server",
            "{client}.next_server": "after which failures it tries another",
        },
        remedy=more_places,
        lesson="proxy-hides-full-queue",
    ),
    _wait(
        name="server-paused",
        meaning="The lab paused the server, or the one behind the proxy, while it had the request.",
        proof=(
            "The manifest has the pause; only its overlap with the request counts. The connection was accepted before"
            " the pause: none of its SYNs was lost, and it was not in an accept queue."
        ),
        when=main_part("pause_us"),
        says="""format('{} was paused for {} of the {} that it took', paused, took(pause_us), took(total_us))""",
        seen=True,
        label="server paused",
        symptom="all answers late at the same moment",
        look="the server's pauses: garbage collection, a frozen container",
        because="the lab had paused a server that had the request",
        where="At a server on the way, after the connection had been accepted.",
        explains=(
            "A paused process does nothing, but its kernel continues without it: it completes connections and"
            " acknowledges requests. To the client the server is silent."
        ),
        lesson="nginx-backlog",
    ),
    _wait(
        name="cpu-throttled",
        meaning="A processor limit held the server, or the one behind the proxy, while it had the request.",
        proof=(
            "The manifest has the limit. In at least half of its periods the server's kernel counted that the share was"
            " used up (`nr_throttled` of its control group's cpu.stat); where the lab cannot read that, the server's"
            " processes used at least 90 % of the limit. Only the request's overlap with the limit counts, less the"
            " time of an ordinary request: the median of those outside of it that were not slow, or else the quickest;"
            " and less what lost packets and the accept queue took."
        ),
        when=main_part("throttled_us"),
        says="""format('{}: the limit held it for {} of the {} that the request took; it was {}', throttled_server,
            took(throttled_us), took(total_us), throttled_says)""",
        seen=True,
        label="throttled by its processor limit",
        symptom="slow by up to 100 ms, or in steps of it; quick to connect, empty queues, and processors idle",
        look="`nr_throttled` in the cpu.stat of the server's control group",
        because="a processor limit held {server}, or {client}, while it had the request",
        where="At a server on the way, after the connection had been accepted.",
        explains=(
            "A limit of processors is a share of each period of 100 ms. Once a container has used its share up, the"
            " kernel lets none of its processes run until the next period. Connections are still completed and data is"
            " acknowledged, because the kernel does that: the path looks slow, and nothing looks busy."
        ),
        remedy="raise the limit (Docker: --cpus; Kubernetes: limits.cpu) or take it away, or let the server do less",
        lesson="processor-limit",
    ),
    _wait(
        name="waited-for-a-thread",
        meaning="The server had accepted it, and it waited for one of the server's threads.",
        proof=(
            "All threads were busy in every reading while the server had the request and did not work on it yet or, if"
            " there was no such reading, in the readings before and after. A reading within 100 ms of its coming is one"
            " before it. The handler's average time, the last of the request's, does not count as waiting."
        ),
        when=f"NOT has_loops AND {main_part('thread_us')}",
        says=f"""format('all {{}} threads were busy in {{}} ({{}} of {{}})', threads_max, {_READINGS},
            took(thread_us), took(total_us))""",
        label="waited for a thread",
        symptom="slow in waves; connecting took no time",
        look="the server's threads: all of them busy",
        because="all threads of {server} were busy",
        where="At {server}, after it had accepted the connection.",
        hop=LAST_HOP,
        explains=(
            "A server works on as many requests at once as it has threads; further ones wait, with their connection"
            " open."
        ),
        knobs={
            "{server}.threads": "how many requests {server} works on at once",
            "{server}.own_threads": "whether each request gets a thread of its own",
        },
        remedy=_threads,
        lesson="threads-or-virtual-threads",
    ),
    _wait(
        name="waited-for-event-loop",
        meaning="The server had accepted it, and it waited for its connection's event loop, which a handler blocked.",
        proof=(
            "The server declares that a connection has one of its event loops for all its requests. A handler blocked"
            " some of them in every reading while the server had the request and did not work on it yet or, if there"
            " was no such reading, in the readings before and after: a free loop would have begun with it. A reading"
            " within 100 ms of its coming is one before it. The handler's average time, the last of the request's, does"
            " not count as waiting."
        ),
        when=f"has_loops AND {main_part('thread_us')}",
        says=f"""format('of {{}} event loops some were blocked in {{}} ({{}} of {{}})', threads_max, {_READINGS},
            took(thread_us), took(total_us))""",
        label="waited for its event loop",
        symptom="slow, though the server has few threads and idle processors",
        look="the server's event loops: a blocking call in a handler (a thread dump shows it)",
        because="a handler blocked the event loop of their connections at {server}",
        where="At {server}, after it had accepted the connection.",
        hop=LAST_HOP,
        explains=(
            "An event loop reads, answers and accepts for many connections, and runs their handlers. A handler that"
            " blocks keeps all these connections waiting, even if other loops have nothing to do."
        ),
        knobs={"{server}.event_loops": "how many event loops {server} has"},
        remedy=(
            "the handler must not block its event loop: let it wait without a thread, or give the call to a pool of"
            " threads; more loops only make the rounds fewer"
        ),
        lesson="slow-handlers",
    ),
    _wait(
        name="slow-handler",
        meaning="The server's handler worked on it for that long.",
        proof=(
            "It was accepted, and every reading before, during and after it shows free threads. The server's own"
            " counter of processing time grew by at least half as much. If no reading falls into the request, the time"
            " of an average request counts. Through a proxy, the proxy timed the server's part."
        ),
        when=main_part("handler_us"),
        says="""format('{} had it for {} of {}, with free threads in all {} readings from before it to after it',
            server, took(handler_us), took(total_us), scrapes + 2)""",
        label="the server's own work",
        symptom="slow, with free threads and empty queues",
        look="the server's own time for a request",
        because="the server worked on it for that long",
        where="At {server}, in its handler.",
        hop=LAST_HOP,
        explains="The server accepted the connection at once; the time passed in the program itself.",
        knobs={"load.handler_delay": "how long the handler takes"},
        remedy="the handler took that time; no setting of the path makes it faster",
        lesson="time-in-the-handler",
    ),
    Cause(
        name="time-in-server",
        meaning="The server had the connection and the request for that long before it answered.",
        proof=(
            "The server's kernel shows when the program had taken the connection at the latest, and when the request"
            " had come. Packets, or a proxy's log, show when its answer began, or that its client left before it. The"
            " role declares no page about its threads, or no reading of it came meanwhile, so no record says whether it"
            " worked all that time or let the request wait inside."
        ),
        when=f"{main_part('server_us')} OR {_UNREAD}",
        apart=f"if({_UNREAD}, greatest((2 * (parts_us + unread_us) - total_us) // 4, 0), {APART})",
        says="""format(
            '{} had taken the connection and had the request at {} at the latest, and {} {} later (of {})',
            server, moment(taken_us), CASE WHEN status = 0 AND receiving_us > 0 THEN 'was still answering'
                WHEN left_us IS NULL THEN 'its client left without an answer' ELSE 'answered' END,
            took(greatest(server_us, unread_us)), took(total_us))
            || coalesce(format('; up to {} waited meanwhile at its {} (limit {})', inside_depth, inside_queue,
                               inside_limit), '')""",
        label="time in the server",
        symptom="slow, with empty queues",
        look="the server's own logs and metrics: its threads, its pools, its database",
        because="the server had the request for that long",
        where="At {server}, inside the program.",
        hop=LAST_HOP,
        explains=(
            "The program had the connection and the request. Only the program itself could say whether it worked on the"
            " request, or let it wait for a thread or for a database."
        ),
        remedy=_inside,
        lesson="database-pool-too-small",
    ),
    _wait(
        name="generator-starved",
        meaning="The client was late by itself: to send the request, or to read an answer that was on its way.",
        proof=(
            "The server's last data in the capture, or the proxy's line, is that much earlier than the request's end at"
            " the client, and the machine's processors were not idle in between. Or a processor limit held the client:"
            " the manifest has the limit, and it is proven and counted as for `cpu-throttled`."
        ),
        when=f"{main_part('starved_us')} OR ({main_part('lag_us')} AND idle_percent < idle_percent_min)",
        says="""if(starved_us >= lag_us,
            format('{}: the limit held it for {} of the {} that the request took; it was {}', instance,
                   took(starved_us), took(total_us), starved_says),
            format(
                'the answer left at {}, the client had it {} later ({} of {}); the processors were idle for {:.1f} %',
                moment(left_us), took(lag_us), took(lag_us), took(total_us), idle_percent))""",
        label="the client was late",
        symptom="slow at the client alone",
        look="the processor of the client's machine; `nr_throttled` in the cpu.stat of the client's control group",
        because="the client was late by itself, for it had too little of a processor",
        where="At {client}, the load generator.",
        explains="The load generator had no processor time left, so it measured its own delay.",
        knobs={"load.users": "how many users there are"},
        remedy=(
            "the load generator was too slow, not the path: raise its processor limit, reduce the load, or spread it"
            " over load.instances"
        ),
        lesson="generator-starved",
    ),
)
