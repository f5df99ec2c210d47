"""The closed list of causes: what each means, what proves it, and how a request's evidence reads.

A request has the first cause of the list whose proof its evidence gives, and is unexplained if it has none.
docs/causes.md is made from this list.
"""

from __future__ import annotations

from dataclasses import dataclass

# What no cause explains.
UNEXPLAINED = "unexplained"


@dataclass(frozen=True, slots=True)
class Cause:
    """One cause.

    Attributes:
        name: as the ledger has it.
        meaning: what happened, in a sentence.
        proof: what must be on record, in sentences.
        when: the same as SQL, over the table `known` (analysis.account.attribution).
        says: SQL for the text that leads a reader to the records of one request.
        seen: whether what the proof names was seen. Else packets that did not come are a part of it, and a capture
            that lost some proves nothing.
    """

    name: str
    meaning: str
    proof: str
    when: str
    says: str
    seen: bool = False

    @property
    def figure(self) -> str:
        """The name as part of a figure's name."""
        return self.name.replace("-", "_")


# Texts that come again. `moment` and `took` are macros of analysis.account.attribution: a time from the start of the
# measurement, and a duration.
_DIAL = """format('dial {}/{} from {} to {} began at {}', instance, dial, coalesce(dial_local, 'an unknown port'),
               coalesce(dial_remote, '?'), moment(dial_time_us))"""
_DIAL_FAILED = f"{_DIAL} || format(' and failed after {{}} ({{}})', took(dial_duration_us), dial_error_kind)"
_FLOW = "format('flow {}/{}', flow_observer, flow_id)"
_UP = """format('the proxy turned to {} at {}', try_server, moment(try_start_us))"""
_UP_FLOW = "format('flow {}/{}', up_observer, up_id)"
_LINE = """format('{} line {}: status {} at {}', line_instance, line_line, line_status, moment(1000 * line_time_ms))
           || coalesce(format(', which it noted for its try {} of {}: {}', try_tries, try_server,
                              coalesce('status ' || try_status, 'nothing')), '')"""
_ERROR = "coalesce('; error.log line ' || error_line::VARCHAR || ': ' || error_text, '')"


def _syns(prefix: str) -> str:
    return f"""format('{{}} {{}} at {{}}', {prefix}_syn_count, if({prefix}_syn_count = 1, 'SYN', 'SYNs'),
        array_to_string(list_transform({prefix}_syn_times_us[1:12], lambda time: moment(time)), ', ')
        || if({prefix}_syn_count > 12, ', …', ''))"""


def _overflow(prefix: str) -> str:
    """Each of a connection's SYNs met a full queue."""
    return f"""(NOT {prefix}_established AND NOT {prefix}_refused AND {prefix}_syns_lost = {prefix}_syn_count
                AND {prefix}_syns_overflowed = {prefix}_syns_lost)"""


def _overflow_says(prefix: str) -> str:
    return f"""{_syns(prefix)} || format(', none answered; around each, the accept queue of {{}} held {{}} (limit {{}})'
               || ' and its kernel counted an overflow', {prefix}_to_instance,
               if({prefix}_depth_min = {prefix}_depth_max, {prefix}_depth_max::VARCHAR,
                  format('{{}} to {{}}', {prefix}_depth_min, {prefix}_depth_max)), {prefix}_queue_limit)"""


def _crowded_out(prefix: str) -> str:
    """Each of a connection's SYNs met a full SYN queue."""
    return f"""(NOT {prefix}_established AND NOT {prefix}_refused AND {prefix}_syns_lost = {prefix}_syn_count
                AND {prefix}_syns_syn_queue_full = {prefix}_syns_lost)"""


def _crowded_out_says(prefix: str) -> str:
    return f"""{_syns(prefix)} || format(', none answered; around each, the kernel of {{}} counted a SYN that its queue'
               || ' of half-open connections had no place for', {prefix}_to_instance)"""


def _unnoticed(prefix: str) -> str:
    """The server knew nothing of the connection: the handshake's last ACK met a full queue, and so did all data."""
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


# The client gave up, or the proxy did, before there was a connection to the backend.
_NO_UPSTREAM = "(line_line IS NOT NULL AND try_server IS NOT NULL AND try_connect_us IS NULL)"
# k6's code for a request that was ended by its own time-out. Its dial goes on, to a time-out of its own or to k6's end;
# where the connection was for this request alone, it ends with it.
_GAVE_UP = "error_code = 1050"
_NO_CONNECTION = f"(remote IS NULL AND (dial_error_kind = 'timeout' OR dial_error_kind = 'canceled' AND {_GAVE_UP}))"


def _logged(number: int) -> str:
    """The proxy's error log has this number of the system's. The gateway's own record of a dial tells more exactly."""
    return f"(NOT coalesce(try_names_dial, false) AND error_text LIKE '%({number}: %')"


# The server's data that the client had before it asked does not count.
_UNANSWERED = """(coalesce(flow_server_last_data_time_us, 0) < time_us + blocked_us)"""
_BROKEN = "(outcome = 'failed' AND status = 0 AND remote IS NOT NULL AND flow_id IS NOT NULL)"


# Between a server's look at an idle connection and its FIN; a request that comes meanwhile is not read.
_CLOSING_US = 50_000


def _idle_too_long(prefix: str) -> str:
    """The server ended the connection when it had been idle, until just then, for as long as it keeps one."""
    return f"""({prefix}_close_us - {prefix}_server_last_data_time_us >= keep_alive_us
                AND {prefix}_close_us - {prefix}_client_last_data_time_us <= {_CLOSING_US})"""


def _stale_says(prefix: str) -> str:
    return f"""format('flow {{}}/{{}}: {{}} closed the kept connection at {{}}{{}}, the request left at {{}}',
        {prefix}_observer, {prefix}_id, {prefix}_to_instance, moment({prefix}_close_us),
        coalesce(', ' || took({prefix}_close_us - {prefix}_server_last_data_time_us) || ' after its last answer', ''),
        moment({prefix}_client_last_data_time_us))"""


def _main(part: str) -> str:
    """The greatest of the proven parts of the time, if together they are half of it or all that is above the bound.

    A request that failed before the bound had nothing above it.
    """
    return f"""({part} > 0 AND {part} = part_max_us
                AND (2 * parts_us >= total_us OR (total_us > bound_us AND total_us - parts_us <= bound_us)))"""


def _healed_says(prefix: str, part: str) -> str:
    return f"""format('flow {{}}/{{}}: ', {prefix}_observer, {prefix}_id) || {_syns(prefix)}
        || format(', answered at {{}} ({{}} of {{}})', moment({prefix}_answered_us), took({part}), took(total_us))"""


def _made_late_says(prefix: str, part: str) -> str:
    return f"""format('flow {{}}/{{}}: the ACK of {{}} met a full accept queue of {{}}, and so did {{}} packets in all,'
        || ' until one made the connection at {{}} ({{}} of {{}})', {prefix}_observer, {prefix}_id,
        moment({prefix}_handshake_ack_time_us), {prefix}_to_instance, {prefix}_ack_dropped_min,
        moment({prefix}_queued_us), took({part}), took(total_us))"""


def _queued_says(prefix: str, part: str) -> str:
    return f"""format(
        'flow {{}}/{{}}: complete at {{}}, in the accept queue of {{}} until {{}} or later ({{}} of {{}})',
        {prefix}_observer, {prefix}_id, moment({prefix}_queued_us), {prefix}_to_instance,
        moment({prefix}_accepted_after_us), took({part}), took(total_us))"""


CAUSES = (
    Cause(
        "ephemeral-ports-exhausted",
        "The client or the proxy had no free local port for another connection to this server.",
        "The dial failed with EADDRNOTAVAIL, and the capture shows that connections held as many ports as"
        " `net.ipv4.ip_local_port_range` has. Connections in TIME_WAIT count, too. Gateway: the same for its dial."
        " nginx: its error log reports the error.",
        "outcome = 'failed' AND (((dial_error_kind = 'address-not-available'"
        " OR try_dial_error_kind = 'address-not-available') AND shortage_held >= shortage_ports AND NOT torn)"
        f" OR (try_connect_us IS NULL AND {_logged(99)}))",
        f"""if(dial_error_kind = 'address-not-available', {_DIAL_FAILED}, {_LINE})
            || coalesce(format('; {{}} of {{}} ports were held, {{}} in TIME_WAIT', shortage_held, shortage_ports,
                               shortage_waiting), '') || {_ERROR}""",
        seen=True,
    ),
    Cause(
        "connection-refused",
        "Nothing listened at the address that the client or the proxy dialled.",
        "The dial failed as `refused`, and the server answered its SYN with RST. At a proxy: the server answered the"
        " proxy's connection with RST, or the proxy recorded the refusal.",
        "outcome = 'failed' AND ((dial_error_kind = 'refused' AND flow_refused)"
        f" OR ({_NO_UPSTREAM} AND (up_refused OR try_dial_error_kind = 'refused' OR {_logged(111)})))",
        f"""if(dial_error_kind = 'refused', {_DIAL_FAILED} || '; ' || {_FLOW} || ': the server answered with RST at '
            || moment(flow_answered_us), {_LINE}) || {_ERROR}""",
        seen=True,
    ),
    Cause(
        "accept-queue-drop",
        "The server's accept queue was full at each SYN of the client or the proxy; or at the last ACK of the"
        " handshake and at all data after it.",
        "The dial or its request timed out, no SYN was answered, and around each lost SYN the server's kernel counted"
        " at least as many `TcpExt.ListenOverflows` as SYNs were lost there. Or the server answered the SYN but never"
        " reacted to the ACK and to any data, so that only the client had a connection, and the server's kernel"
        " counted overflows. At a proxy: the same for its connection.",
        f"outcome = 'failed' AND (({_NO_CONNECTION} AND {_overflow('flow')})"
        f" OR ({_NO_UPSTREAM} AND {_overflow('up')})"
        f" OR (status = 0 AND {_unnoticed('flow')}) OR (status IN (502, 504) AND {_unnoticed('up')}))",
        f"""if({_unnoticed("flow")}, {_FLOW} || ': ' || {_unnoticed_says("flow")},
            if({_unnoticed("up")}, {_LINE} || '; ' || {_UP} || '; ' || {_UP_FLOW} || ': ' || {_unnoticed_says("up")},
            if({_NO_CONNECTION}, {_DIAL_FAILED} || '; ' || {_FLOW} || ': ' || {_overflow_says("flow")},
            {_LINE} || '; ' || {_UP} || '; ' || {_UP_FLOW} || ': ' || {_overflow_says("up")})))""",
    ),
    Cause(
        "accept-queue-reset",
        "The server's accept queue had room for the SYN but not for the last ACK of the handshake, and the server's"
        " kernel reset the connection.",
        "The client completed the handshake. After its SYN-ACK the server sent only a RST, one without ACK, which no"
        " socket sends. The server's `net.ipv4.tcp_abort_on_overflow` is 1, and its kernel counted overflows. At a"
        " proxy: the same for its connection.",
        "outcome = 'failed' AND ((status = 0 AND coalesce(flow_aborted, false))"
        " OR (status IN (502, 504) AND coalesce(up_aborted, false)))",
        f"""if(coalesce(flow_aborted, false), {_FLOW} || ': ' || {_aborted_says("flow")},
            {_LINE} || '; ' || {_UP} || '; ' || {_UP_FLOW} || ': ' || {_aborted_says("up")})""",
    ),
    Cause(
        "syn-queue-drop",
        "The server's queue of half-open connections was full each time the client or the proxy sent a SYN.",
        "The dial or its request timed out, no SYN was answered, and around each lost SYN the server's kernel counted"
        " at least as many `TcpExt.TCPReqQFullDrop` as SYNs were lost there. At a proxy: the same for its connection.",
        f"outcome = 'failed' AND (({_NO_CONNECTION} AND {_crowded_out('flow')})"
        f" OR ({_NO_UPSTREAM} AND {_crowded_out('up')}))",
        f"""if({_NO_CONNECTION}, {_DIAL_FAILED} || '; ' || {_FLOW} || ': ' || {_crowded_out_says("flow")},
            {_LINE} || '; ' || {_UP} || '; ' || {_UP_FLOW} || ': ' || {_crowded_out_says("up")})""",
    ),
    Cause(
        "connect-timeout",
        "The client or the proxy gave up connecting, and a full queue was not the reason: its SYNs or the answers to"
        " them were lost.",
        "The dial or its request timed out. Around each of its SYNs the server's kernel dropped none, or none of its"
        " SYNs reached the server's capture. At a proxy: the server's kernel dropped none around each SYN of its"
        " connection.",
        f"outcome = 'failed' AND (({_NO_CONNECTION} AND captured"
        f" AND (flow_id IS NULL AND dial_local IS NOT NULL OR {_silent('flow')}))"
        f" OR ({_NO_UPSTREAM} AND {_silent('up')}))",
        f"""if({_NO_CONNECTION}, {_DIAL_FAILED} || '; '
            || coalesce({_FLOW} || ': ' || {_syns("flow")} || ', none answered, none dropped by the server''s kernel',
                        'none of its SYNs is in the capture'),
            {_LINE} || '; ' || {_UP} || '; ' || {_UP_FLOW} || ': ' || {_syns("up")}
            || ', none answered, none dropped by the server''s kernel')""",
    ),
    Cause(
        "proxy-connections-exhausted",
        "The proxy had used up its `worker_connections`, so it had none for the client or for the backend.",
        "nginx's error log says so for this client's connection. When nginx takes connections away from its clients,"
        " the log names no connection; then nginx closed this one in the same second, without an answer and without a"
        " line in its access log.",
        "outcome = 'failed' AND (error_text LIKE '%worker_connections are not enough%'"
        " OR (status = 0 AND line_line IS NULL AND exhausted_line IS NOT NULL))",
        f"""coalesce({_LINE} || {_ERROR}, {_FLOW} || ' was closed at ' || moment(flow_close_us)
            || format(' without an answer; error.log line {{}}: worker_connections are not enough', exhausted_line))""",
        seen=True,
    ),
    Cause(
        "stale-keepalive",
        "The request went out on a kept connection that the server had just closed, or was about to close.",
        "The connection was kept, and in the capture no answer follows the client's last data. The server's FIN or RST"
        " came before that data; or it came at most 50 ms after, when the connection had been idle for the backend's"
        " `keepAliveTimeout`, so the server closed without reading the request. At a proxy: the same for its"
        " connection, and the proxy answered 502.",
        f"({_BROKEN} AND reused AND {_UNANSWERED} AND flow_client_last_data_time_us BETWEEN time_us AND end_us"
        f" AND (flow_close_us <= flow_client_last_data_time_us OR (NOT proxied AND {_idle_too_long('flow')})))"
        " OR (outcome = 'failed' AND status = 502 AND try_status = 502"
        " AND up_server_last_data_time_us < up_client_last_data_time_us"
        f" AND (up_close_us <= up_client_last_data_time_us OR {_idle_too_long('up')}))",
        f"""if(status = 0, {_stale_says("flow")}, {_LINE} || '; ' || {_stale_says("up")} || {_ERROR})""",
    ),
    Cause(
        "reset-by-peer",
        "The server reset the connection (RST) before it answered.",
        "The connection was established, and the first RST in the capture is the server's, sent while the request"
        " waited. If the server's kernel answered SYNs with cookies, the server had also sent data; otherwise it may"
        " never have had the connection.",
        f"{_BROKEN} AND flow_established AND NOT flow_perhaps_unknown AND flow_first_rst_by = 'server'"
        " AND flow_first_rst_time_us BETWEEN time_us AND end_us + 1000000",
        f"""{_FLOW} || format(': RST from {{}} at {{}}', flow_to_instance, moment(flow_first_rst_time_us))
            || coalesce('; k6: ' || error, '')""",
        seen=True,
    ),
    Cause(
        "closed-without-answer",
        "The server closed the connection in order (FIN), but without an answer.",
        "The server's FIN came while the request waited and before the client's FIN, and the server sent no data after"
        " the request began.",
        f"{_BROKEN} AND flow_established AND {_UNANSWERED} AND flow_closed_by = 'server' AND flow_close_kind = 'fin'"
        " AND flow_server_fin_time_us BETWEEN time_us AND end_us + 1000000",
        f"""{_FLOW} || format(': FIN from {{}} at {{}} without an answer', flow_to_instance,
            moment(flow_server_fin_time_us)) || coalesce('; k6: ' || error, '')""",
    ),
    Cause(
        "no-live-upstream",
        "The proxy tried no server: because of earlier failures it had excluded all of them.",
        "nginx's error log says so for this client's connection, and nginx answered 502.",
        "outcome = 'failed' AND status = 502 AND error_text LIKE '%no live upstreams%'",
        f"{_LINE} || {_ERROR}",
        seen=True,
    ),
    Cause(
        "upstream-timeout",
        "The proxy waited for the backend until its own time-out, and answered 504.",
        "The access line has status 504, and so has its last try.",
        "outcome = 'failed' AND status = 504 AND line_status = 504 AND try_status = 504",
        f"{_LINE} || {_ERROR}",
        seen=True,
    ),
    Cause(
        "upstream-failed",
        "The backend or the connection to it failed while the proxy waited for an answer; the proxy answered 502.",
        "The access line has status 502, and so has its last try.",
        "outcome = 'failed' AND status = 502 AND line_status = 502 AND try_status = 502",
        f"{_LINE} || {_ERROR}",
        seen=True,
    ),
    Cause(
        "error-status",
        "The server answered with an error status.",
        "The client has the status. Through a proxy, the access line has the same status.",
        "outcome = 'failed' AND status >= 400 AND (line_line IS NULL AND NOT proxied OR line_status = status)",
        f"""coalesce({_LINE}, {_FLOW} || ': answered at ' || moment(flow_server_last_data_time_us), 'the client')
            || format('; the answer has status {{}}', status)""",
        seen=True,
    ),
    Cause(
        "waited-for-a-connection",
        "The request waited until a connection in the client's or the gateway's pool was free.",
        "It used a connection that existed already, and was blocked before it got that connection.",
        f"{_main('pool_us')} OR {_main('up_pool_us')}",
        """if(coalesce(pool_us, 0) >= coalesce(up_pool_us, 0),
               format('blocked for {} of {} before it got dial {}/{}', took(pool_us), took(total_us), instance, dial),
               format('{} line {}: waited for {} of {} before it got dial {}/{}', line_instance, line_line,
                      took(up_pool_us), took(total_us), line_instance, try_dial))""",
        seen=True,
    ),
    Cause(
        "waited-for-syn-retry",
        "Earlier SYNs of its connection were lost, and a later one was answered. No error shows this.",
        "In the capture the connection has more than one SYN, and the answer is to a later one.",
        f"{_main('syn_us')} OR {_main('up_syn_us')}",
        f"""if(coalesce(syn_us, 0) >= coalesce(up_syn_us, 0), {_healed_says("flow", "syn_us")},
               {_UP} || '; ' || {_healed_says("up", "up_syn_us")})""",
    ),
    Cause(
        "waited-for-ack-retry",
        "The last ACK of its handshake and its data met a full accept queue, until a retransmission of the data, or"
        " the ACK of a repeated SYN-ACK, found room. No error shows this.",
        "In the capture the client completed the handshake. The server acknowledged only a retransmission of the data,"
        " or had acknowledged no data when it sent its own. The server's kernel counted overflows.",
        f"{_main('ack_us')} OR {_main('up_ack_us')}",
        f"""if(coalesce(ack_us, 0) >= coalesce(up_ack_us, 0), {_made_late_says("flow", "ack_us")},
               {_UP} || '; ' || {_made_late_says("up", "up_ack_us")})""",
    ),
    Cause(
        "waited-in-accept-queue",
        "Its connection was complete and waited in the accept queue until the server accepted it.",
        "The queue is first in, first out. The connections before it in the capture, and the queue's depth at each"
        " tick, show that it was still in the queue at the last tick that counts.",
        f"{_main('queue_us')} OR {_main('up_queue_us')}",
        f"""if(coalesce(queue_us, 0) >= coalesce(up_queue_us, 0), {_queued_says("flow", "queue_us")},
               {_UP} || '; ' || {_queued_says("up", "up_queue_us")})""",
    ),
    Cause(
        "waited-for-another-server",
        "The proxy tried another server, without success, before the one that answered. No error shows this to the"
        " client.",
        "The access line has more than one try.",
        _main("retry_us"),
        """format('the proxy turned to {} at {}, in vain (status {}), and after {} of {} to {}', first_server,
            moment(first_start_us), first_status, took(retry_us), took(total_us), try_server)""",
    ),
    Cause(
        "server-paused",
        "The lab paused the server, or the backend behind the proxy, while it had the request.",
        "The manifest has the pause; only its overlap with the request counts. The connection was accepted before the"
        " pause: none of its SYNs was lost, and it was not in an accept queue.",
        _main("pause_us"),
        """format('{} was paused for {} of the {} that it took', paused, took(pause_us), took(total_us))""",
        seen=True,
    ),
    Cause(
        "waited-for-a-thread",
        "The server had accepted it, and it waited for one of the server's threads.",
        "All threads were busy in every reading while the server had the request or, if there was no such reading, in"
        " the readings before and after. The handler's average time does not count as waiting.",
        _main("thread_us"),
        """format('all {} threads were busy in {} while {} had it ({} of {})', threads_max,
            if(scrapes > 0, format('{} of {} readings', saturated, scrapes), 'the readings before and after'),
            server, took(thread_us), took(total_us))""",
    ),
    Cause(
        "slow-handler",
        "The server's handler worked on it for that long.",
        "It was accepted, and every reading before, during and after it shows free threads. The server's own counter"
        " of processing time grew by at least half as much. If no reading falls into the request, the time of an"
        " average request counts. Through a proxy, the proxy timed the backend's part.",
        _main("handler_us"),
        """format('{} had it for {} of {}, with free threads in all {} readings from before it to after it', server,
            took(handler_us), took(total_us), scrapes + 2)""",
    ),
    Cause(
        "generator-starved",
        "The answer was on its way or had arrived, and the client was late to read it.",
        "The server's last data in the capture, or the proxy's line, is that much earlier than the request's end at"
        " the client, and the machine's processors were not idle in between.",
        f"{_main('lag_us')} AND idle_percent < idle_percent_min",
        """format('the answer left at {}, the client had it {} later ({} of {}); the processors were idle for {:.1f} %',
            moment(left_us), took(lag_us), took(lag_us), took(total_us), idle_percent)""",
    ),
)  # fmt: skip
