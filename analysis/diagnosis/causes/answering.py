"""Causes of requests that had a connection and no good answer: it broke, or proxy or server reported a failure."""

from __future__ import annotations

import math
import re
from dataclasses import replace

from analysis.diagnosis.causes.cause import ERROR, FLOW, LAST_HOP, LINE, OWN_LINE, UP_FLOW, Cause
from analysis.diagnosis.causes.remedies import (
    TIMEOUT_MARGIN_MS,
    AdvisedRun,
    Remedy,
    more_files,
    more_places,
    raise_knob,
)
from analysis.diagnosis.causes.waiting import main_part
from analysis.formatting import format_ms, format_races
from formats.knob_types import format_duration

# A worker's connections besides the proxied requests: listener, management port and its poll, and nginx's own pipe.
_WORKER_OWN = 8
# Arrivals come in clusters, and the first ones take longer.
_UNEVEN = 2

# A `return` that is no refusal.
_SENDS_ELSEWHERE = re.compile(r"return ([123]\d\d|[^\d])")

PROXY_FULL = "proxy-connections-exhausted"
SERVER_FULL = "server-connections-exhausted"
_ON_CONNECTION = "On the connection between {client} and {server}."

# Processes are read once a second.
_ENDED = """coalesce(format('; process {} ({}){} ended between {} and {}', ended_pid,
        coalesce(ended_comm, format('container.log line {}', ended_line)),
        if(ended_others > 0, format(', or one of {} others,', ended_others), ''), moment(ended_seen_us),
        moment(ended_gone_us)), '')"""

# The server's data that the client had before it asked does not count.
_UNANSWERED = """(NOT opaque AND coalesce(flow_server_last_data_time_us, 0) < time_us + blocked_us)"""
# By how much another clock may be off and still tell on which side of the request's beginning they came.
_UNANSWERED_APART = "abs(coalesce(flow_server_last_data_time_us, 0) - time_us - blocked_us)"
_BROKEN = "(outcome = 'failed' AND status = 0 AND remote IS NOT NULL AND flow_id IS NOT NULL)"
# The client had a part of the answer, and no end of it.
_CUT = "(outcome = 'failed' AND status = 0 AND receiving_us > 0 AND flow_id IS NOT NULL)"
# Go's words for data in a chunked answer that is no chunk: a server that fails in its midst may add an error page.
_SPOILED = (
    "(error LIKE '%chunk length%' OR error LIKE '%malformed chunked encoding%' OR error LIKE '%chunked line too long%')"
)
# The server's last data that the client was there to hear: a server may go on after its client has left.
_HEARD_US = "if(flow_server_last_data_time_us > end_us, flow_heard_us, flow_server_last_data_time_us)"
# A second proxy answered by itself.
_TRIED_NONE = "coalesce(relayed AND own_status = status AND status >= 400 AND own_server = '', false)"
# The try was answered, by a second proxy, whose status it may be or that of the server behind it.
_PASSED_ON = "(relayed AND try_header_us IS NOT NULL)"
# A second proxy had this status from its server.
_THROUGH_BOTH = "coalesce(own_status = status AND own_try_status = status AND own_try_header_us IS NOT NULL, false)"


def _second(status: int) -> str:
    """Return SQL for whether a second proxy, connected to its server, noted this status, and answered on its own."""
    return (
        f"coalesce(relayed AND own_status = status AND own_try_status = {status}"
        " AND own_try_connect_us IS NOT NULL AND own_try_header_us IS NULL, false)"
    )


# The server's data came after the proxy's last, and it sent some again: the proxy's kernel acknowledged none.
_ANSWER_LOST = """(up_observer = up_to_instance AND up_server_first_data_time_us >= try_start_us
    AND up_server_last_data_time_us > up_client_last_data_time_us AND up_server_retransmissions > 0
    AND up_server_first_data_time_us <= try_start_us + try_response_us AND try_header_us IS NULL)"""
# Most of the try's time its connection stood in the accept queue.
_UP_QUEUED = """(up_accepted_after_us IS NOT NULL AND 2 * (least(up_accepted_after_us, try_start_us + try_response_us)
    - greatest(up_queued_us, try_start_us)) >= try_response_us)"""

# Its client was still sending when it closed: the client says so, or had data under way after the answer.
_SENDING = (
    "(error LIKE '%write: broken pipe%' OR error LIKE '%write: connection reset%'"
    " OR flow_client_last_data_time_us > flow_server_last_data_time_us)"
)
_UP_SENDING = "(status = 502 AND try_status = 502 AND error_text LIKE '%while sending request to upstream%')"
_BROKEN_UP = (
    "(status = 0 AND try_unsent_bytes > 0 AND try_header_us IS NOT NULL"
    " AND (error_text LIKE '%(104:%while reading upstream%'"
    " OR error_text LIKE '%prematurely closed%while reading upstream%'))"
)

# A log's times are less exact than those of packets: what the server closes right behind its first data, it never kept.
_UP_ANSWERED = (
    "(up_close_us IS NOT NULL AND (up_server_last_data_time_us >= try_start_us"
    " OR up_close_us <= up_server_first_data_time_us + 10000))"
)

# Between a server's look at an idle connection and its FIN; a request that comes meanwhile is not read.
_CLOSING_US = 50_000
# A busy server closes late. A RST without a FIN says itself that the request was not read, so that much later will do.
_UNREAD = 20


# When the server's capture had the client's data last; by TLS, any packet. What forgets sooner is no table of a NAT's.
_LAST_SEEN = "coalesce(flow_client_last_data_time_us, flow_last_time_us)"
_IDLE_US = 1_000_000


def _idle_too_long(prefix: str) -> str:
    """Return SQL for: the server ended the connection when it had been idle for as long as it keeps one."""
    return f"""({prefix}_close_us - {prefix}_server_last_data_time_us >= {prefix}_keep_us
                AND {prefix}_close_us - {prefix}_client_last_data_time_us <= {_CLOSING_US}
                    * if({prefix}_first_rst_time_us = {prefix}_close_us, {_UNREAD}, 1))"""


def _stale_says(prefix: str) -> str:
    return f"""format('flow {{}}/{{}}: {{}} closed the kept connection at {{}}{{}}, the request left at {{}}',
        {prefix}_observer, {prefix}_id, {prefix}_to_instance, moment({prefix}_close_us),
        coalesce(', ' || took({prefix}_close_us - {prefix}_server_last_data_time_us) || ' after its last answer', ''),
        moment(coalesce({prefix}_client_last_data_time_us, time_us)))
        || coalesce(format('; it closed {{}} idle connections after ', {prefix}_idle_closes)
                    || if({prefix}_idle_high_us - {prefix}_idle_low_us <= {_CLOSING_US},
                          took({prefix}_idle_low_us),
                          took({prefix}_idle_low_us) || ' to ' || took({prefix}_idle_high_us)), '')
        || {_ENDED}"""


def _process_connections(run: AdvisedRun) -> Remedy | str | None:
    if any(one.get("out_of_files") for one in run.ledger.get("places", ())):
        return (
            f"a process of {run.proxy} had as many files open as it may, and each connection is one: raise"
            " worker_rlimit_nofile of nginx, or its limit of open files (ulimit -n, LimitNOFILE, ulimits.nofile)"
        )
    knob, processes = run.limit(run.proxy, "process_connections"), run.limit(run.proxy, "processes")
    if knob is None:
        return None
    set_to = run.knob(processes) if processes else 1
    count = run.manifest.host.cpus if set_to == "auto" else int(set_to or 1)
    if count is None:
        raise KeyError("host.cpus")
    now = run.integer(knob)
    value = math.ceil(_UNEVEN * 2 * run.at_once / count) + _WORKER_OWN
    if now >= value:
        return Remedy(knob, str(2 * now), f"twice what it was: {now} should have been enough")
    share = f"2 connections for each of {run.at_once} requests at once, over the workers ({count})"
    why = f"{share}, twice that for uneven arrivals, and {_WORKER_OWN} of its own"
    return Remedy(knob, str(value), why)


def _idle_before_the_server(run: AdvisedRun) -> Remedy | None:
    knob, kept = run.limit(run.proxy, "server_idle"), run.limit(run.server, "idle")
    if knob is None or kept is None or run.server == run.proxy:
        return None
    kept_ms, now_ms = run.integer(kept), run.integer(knob)
    value_ms = max(kept_ms // 2, kept_ms - TIMEOUT_MARGIN_MS)
    why = f"the proxy must give up an idle connection before the server does, after {format_duration(kept_ms)}"
    # With 0 the proxy never gives one up.
    return None if 0 < now_ms <= value_ms else Remedy(knob, format_duration(value_ms), why)


def _closes_first(run: AdvisedRun) -> Remedy | str:
    """Return which side must wait less, and the setting that says so."""
    found = _idle_before_the_server(run)
    if found is not None:
        return replace(found, why=f"{found.why}{_races(run)}")
    sender = run.proxy if run.proxy and run.proxy != run.server else run.client
    kept = run.limit(run.server, "idle")
    waits = f"{run.server} keeps an idle connection for {run.shown(kept)}" if kept else _measured(run)
    rule = f"{sender} must close an idle connection before {run.server} does ({waits})"
    purges = f"{sender}.pool_purge_delay"
    if purges in run.manifest.knobs:
        return (
            f"{rule}: set {purges}, now {run.shown(purges)}, well below that; HAProxy has no timer for one connection"
            + _races(run)
        )
    shorter, longer = (
        f"{verb} {run.setting(role, 'idle') or f'the idle timeout of {role}'}"
        for verb, role in (("shorten", sender), ("lengthen", run.server))
    )
    return f"{rule}: {shorter}, or {longer}{_races(run)}"


def _measured(run: AdvisedRun) -> str:
    """Return how long the server keeps idle connections by its closes."""
    found = [hop["kept_ms"] for hop in run.ledger["hops"] if hop["to"] == run.server and hop.get("kept_ms")]
    if not found:
        return "its closes do not tell after how long"
    low, high = map(format_ms, found[0])
    return f"by its closes, {run.server} keeps an idle connection for {low}{'' if low == high else f' to {high}'}"


def _races(run: AdvisedRun) -> str:
    """Return, behind a semicolon, how many requests more met such a connection and did not fail."""
    found = [races for hop in run.ledger["hops"] if hop["to"] == run.server and (races := format_races(hop))]
    return f"; beside those that failed, {found[0]}" if found else ""


def _longer_silence(run: AdvisedRun) -> str:
    """Return the timer that must outlast a stream's pauses."""
    knob = run.limit(run.proxy, "answer_timeout")
    timer = f"raise {knob}, now {run.shown(knob)}," if knob else "raise the proxy's timeout for a silent server"
    return f"{timer} above the longest pause of the stream, or let the server send a few bytes in each pause"


# A timeout that is no longer than the handler takes leaves nothing for the way.
_TURNS_MIN = 2


def _patience(run: AdvisedRun) -> Remedy | None:
    delay_ms, pool = run.integer("load.handler_delay"), run.limit(run.server, "threads")
    threads = run.backends * run.integer(pool) if pool else run.at_once
    # The proxy's timer runs while a request waits for a thread.
    turns = math.ceil(run.at_once / max(threads, 1))
    why = "twice the time that the handler takes, and a second"
    if turns > 1:
        why = f"{run.at_once} requests at once take {turns} turns of {threads} threads, and a second"
    value_ms = max(turns, _TURNS_MIN) * delay_ms + TIMEOUT_MARGIN_MS
    return raise_knob(run, run.limit(run.proxy, "answer_timeout"), value_ms, why, format_duration)


# So many lines of a configuration are named.
_RULES_MAX = 3


def _rules(run: AdvisedRun) -> str:
    """Return which lines of the proxy's configuration answer with an error."""
    proxy = run.manifest.roles.get(run.proxy or "")
    rules = proxy.rules if proxy else []
    found = [f"{one.where}: {one.text}" for one in rules if not _SENDS_ELSEWHERE.match(one.text)]
    if not found:
        return "no server was asked: the proxy's own limits and rules decide; 'connlab explain' has its log's words"
    lines = "; ".join(found[:_RULES_MAX]) + ("; …" if len(found) > _RULES_MAX else "")
    return f"no server was asked: change the proxy's rule, or ask less ({lines})"


def _queue(run: AdvisedRun) -> Remedy | None:
    """Return as many requests as the server takes connections; None where it gets these already."""
    taken = run.limit(run.server, "connections")
    if taken is None:
        return None
    value = min(math.ceil(run.at_once / run.backends), run.integer(taken))
    why = f"{value} requests for each {run.server}, which takes as many at once"
    return raise_knob(run, run.limit(run.proxy, "server_connections"), value, why)


def _more_room(run: AdvisedRun) -> str:
    """Return the limit at which the server turned connections away: that of open files, or its program's own."""
    found = [one for one in run.ledger.get("turned_away", ()) if one["role"] in (run.server, run.proxy)]
    if not found:
        return "raise the limit of connections or of open files of the server's program"
    most = max(found, key=lambda one: int(one["connections"]))
    role, fewer = most["role"], "let clients close idle connections sooner, or share fewer"
    if most["files"] is None:
        return (
            f"{role} takes {most['taken']} connections at once, and closes each further one as it comes: raise that"
            f" limit of its program, or {fewer}"
        )
    return f"{more_files(role, most['process'], most['files'])}, or {fewer}"


def _unix_backlog(run: AdvisedRun) -> Remedy | str:
    """Return a longer queue at the socket, where the scenario has a knob for it, or who sets it."""
    bound = f"kernel.{run.server}.net.core.somaxconn"
    if not run.limit(run.server, "backlog") and (own := run.setting(run.server, "backlog")):
        return f"more workers behind the socket, or a longer queue: raise {own}; it is never longer than {bound}"
    why = f"{run.at_once} requests may be under way at once"
    found = raise_knob(run, run.limit(run.server, "backlog"), run.at_once, why)
    return found or (
        f"more workers behind the socket, or a longer queue, for up to {run.at_once} requests at once: gunicorn"
        " --backlog, uWSGI --listen, PHP-FPM listen.backlog, Puma bind 'unix://…?backlog='; none is longer than"
        f" {bound}"
    )


CAUSES = (
    Cause(
        name=PROXY_FULL,
        meaning=(
            "The proxy had used up its connections, or its open files, so it had none for the client or for the server."
        ),
        proof=(
            "The proxy's error log says so for this client's connection (nginx: worker_connections are not enough, or"
            " Too many open files). When the proxy takes connections away from its clients, the log names no"
            " connection; then the proxy closed this one in the same second, without an answer and without a line in"
            " its access log."
        ),
        when=(
            "outcome = 'failed' AND (error_text LIKE '%worker_connections are not enough%'"
            " OR error_text LIKE '%(24: Too many open files)%'"
            " OR (status = 0 AND line_line IS NULL AND exhausted_line IS NOT NULL))"
        ),
        says=f"""coalesce({LINE} || {ERROR}, {FLOW} || ' was closed at ' || moment(flow_close_us)
            || format(' without an answer; error.log line {{}}: worker_connections are not enough', exhausted_line))""",
        seen=True,
        label="proxy out of connections",
        symptom="500, or closed without an answer, by the proxy",
        look="the proxy's error log: connections are not enough",
        because="{server} had no connection left",
        where="At {server}, which had to close connections or answer with an error.",
        explains=(
            "Each process of the proxy has a fixed number of places for connections, and a request that it passes on"
            " takes two: one for the client, one for the server. When they are gone, it closes the client's connection"
            " without an answer or answers with an error (5xx)."
        ),
        knobs={
            "{server}.process_connections": "the places of each process",
            "{server}.processes": "how many processes there are",
            "{server}.pool": "how many connections to the servers are kept; they take places too",
        },
        remedy=_process_connections,
        lesson="spike-through-nginx",
    ),
    Cause(
        name="closed-while-sending",
        meaning="The server answered, and closed the connection, before it had read the whole request.",
        proof=(
            "The server's data and its FIN or RST came after the request had begun. The client's error is that of a"
            " write, or the client still sent data after the answer. At a proxy: it answered 502, its error log says"
            " that it was sending the request, and the same holds for the server's data and end on its connection, or"
            " on all that may have been its own. Or the answer that it passed on broke off, as its error log says, and"
            " it had not sent the whole request."
        ),
        when=(
            f"({_BROKEN} AND NOT opaque AND flow_established AND NOT flow_perhaps_unknown AND {_SENDING}"
            " AND flow_server_last_data_time_us >= time_us + blocked_us AND NOT coalesce(line_tried_none, false)"
            " AND flow_close_us BETWEEN time_us AND end_us + 1000000)"
            f" OR (outcome = 'failed' AND ({_BROKEN_UP} OR {_UP_SENDING} AND up_tls_end_time_us IS NULL"
            f" AND ({_UP_ANSWERED}"
            " OR up_id IS NULL AND breach_possible > 0 AND breach_answered = breach_possible)))"
        ),
        apart=f"if(status = 0 AND line_line IS NULL, {_UNANSWERED_APART}, NULL)",
        says=f"""CASE WHEN {_BROKEN_UP}
                THEN {LINE} || format('; {{}} bytes of the request were not sent', try_unsent_bytes) || {ERROR}
            WHEN status = 0 THEN {FLOW} || format(
                ': {{}} had its last data at {{}}, and closed the connection at {{}} ({{}}); k6: {{}}',
                flow_to_instance, moment(flow_server_last_data_time_us), moment(flow_close_us),
                if(flow_close_us = flow_server_fin_time_us, 'FIN', 'RST'), error)
            ELSE {LINE} || '; ' || if(up_id IS NULL,
                format('on each of the {{}} connections that may have been its own, {{}} had sent data and closed',
                       breach_possible, try_server),
                {UP_FLOW} || format(': {{}} had its last data at {{}}, and closed the connection at {{}}',
                                    up_to_instance, moment(up_server_last_data_time_us), moment(up_close_us)))
                || {ERROR} END""",
        label="closed while sending",
        symptom="an upload fails with broken pipe, reset or 502; the server's log has 413, 401 or another quick answer",
        look="a capture: data of the server, then its FIN or RST, while the client still sends",
        because="{server} answered, and closed the connection, before it had read the whole request",
        where=_ON_CONNECTION,
        hop=LAST_HOP,
        explains=(
            "A server may answer before it has read the whole request, as with 413 or 401. If it then closes the"
            " connection, its kernel answers the rest of the request with a RST. A client or a proxy that is still"
            " sending sees this first, and its user never gets the answer. A server that reads on for a while after its"
            " answer (a lingering close) avoids that."
        ),
        remedy=(
            "let the server read the rest of a request that it refuses, before it closes (Tomcat: maxSwallowSize;"
            " nginx: lingering_close; in a program of your own: read the body to its end), refuse large requests at a"
            " proxy that does so (nginx: client_max_body_size), or let clients ask first (Expect: 100-continue)"
        ),
        lesson="refused-upload",
    ),
    Cause(
        name="stale-keepalive",
        meaning="The request went out on a kept connection that the server had just closed, or was about to close.",
        proof=(
            "The connection was kept, and in the capture no answer follows the client's last data. The server's FIN or"
            " RST came before that data; or it came at most 50 ms after (a RST without a FIN, which says that the"
            " request was not read: at most 1 s), when the connection had been idle for as long as the server keeps"
            " one: by its setting, or as measured from at least 5 idle connections that it closed. By TLS: it closed"
            " at most 50 ms before the request began. At a proxy: the same for its connection, and the proxy answered"
            " 502."
        ),
        when=(
            f"({_BROKEN} AND reused AND {_UNANSWERED}"
            " AND flow_client_last_data_time_us BETWEEN time_us - apart_us AND end_us + apart_us"
            f" AND (flow_close_us <= flow_client_last_data_time_us OR {_idle_too_long('flow')}))"
            # By TLS, packets do not say which data is the request's; the client's times do.
            f" OR ({_BROKEN} AND reused AND opaque AND receiving_us = 0 AND flow_close_us BETWEEN"
            f" time_us - apart_us - {_CLOSING_US} AND time_us + blocked_us + apart_us)"
            " OR (outcome = 'failed' AND status = 502 AND try_status = 502"
            " AND up_server_last_data_time_us < up_client_last_data_time_us"
            f" AND (up_close_us <= up_client_last_data_time_us OR {_idle_too_long('up')}))"
        ),
        apart=f"if(status = 0, {_UNANSWERED_APART}, NULL)",
        says=f"""if(status = 0, {_stale_says("flow")}, {LINE} || '; ' || {_stale_says("up")} || {ERROR})""",
        label="kept connection was closed",
        symptom="now and then 502, or reset, on a kept connection",
        look="idle timeouts on both sides: who closes first",
        because="{server} closed an idle connection just when {client} used it again",
        where=_ON_CONNECTION,
        hop="status > 0",
        explains=(
            "The server may close a kept connection at any time. If a request is on its way just then, nothing answers"
            " it. The side that sends requests should be the first to close an idle connection."
        ),
        knobs={
            "{server}.idle": "how long {server} keeps an idle connection of a client",
            "{client}.server_idle": "how long {client} keeps one to a server",
        },
        remedy=_closes_first,
        lesson="stale-keep-alive",
    ),
    Cause(
        name="flow-forgotten",
        meaning="Something between the two had forgotten the idle connection, and let none of the request through.",
        proof=(
            "The connection was kept, and had been idle for a second or more. The capture at the server has no data of"
            " the request, and neither FIN nor RST until the request failed: the server still took the connection for"
            " open. So the client's data, which its kernel sent again and again, got lost on the way."
        ),
        when=(
            f"outcome = 'failed' AND status = 0 AND flow_id IS NOT NULL AND captured AND reused"
            f" AND flow_established AND {_LAST_SEEN} + {_IDLE_US} <= time_us + blocked_us - apart_us"
            f" AND coalesce(flow_close_us, flow_client_fin_time_us, end_us) >= end_us - apart_us"
        ),
        says=f"""{FLOW} || format(
            ': its last data came to {{}} at {{}}, {{}} before the request, of which nothing came; no FIN and no RST',
            flow_to_instance, moment({_LAST_SEEN}), took(time_us + blocked_us - {_LAST_SEEN}))
            || coalesce('; k6: ' || error, '')""",
        label="forgotten on the way",
        symptom="the first request after a pause hangs until it times out, or is reset, and the server saw nothing",
        look="captures at both ends; `ss -ti` at the client: backoff; idle timeouts of NAT, firewall, balancer",
        because="something between {client} and {server} had forgotten the idle connection",
        where=_ON_CONNECTION,
        explains=(
            "A NAT or a firewall keeps a table of connections, and forgets those that are idle for too long. The two"
            " ends do not know: the client sends, nothing answers, and its kernel sends again for minutes. Close idle"
            " connections sooner than the table forgets them, or send TCP keep-alive probes more often."
        ),
        knobs={"{client}.server_idle": "how long {client} keeps an idle connection to a server"},
        remedy="close idle connections sooner than what stands between forgets them, or send keep-alive probes",
        lesson="nat-forgets",
    ),
    Cause(
        name="stream-cut-by-proxy",
        meaning="The answer had begun, and the proxy ended it because the server was silent for too long.",
        proof=(
            "The client has a part of the answer, and the proxy's access line has its status. The proxy's error log"
            " says that the server timed out while the proxy read its answer, or the access log says so (HAProxy:"
            " `sD`)."
        ),
        when=(
            f"{_CUT} AND line_status BETWEEN 200 AND 399"
            " AND (error_text LIKE 'upstream timed out%while reading upstream%' OR line_gave_up = 'server-silent')"
        ),
        says=f"""{LINE} || coalesce(format('; the client had had {{}} of the answer', took(receiving_us)), '')
            || coalesce(format('; no data came for {{}}', took(flow_close_us - flow_server_last_data_time_us)), '')
            || coalesce('; the timer is ' || answer_timer, '') || {ERROR}""",
        seen=True,
        label="stream cut by the proxy",
        symptom="a stream or a long answer breaks off after the same pause; the log has status 200",
        look="the proxy's error log: timed out while reading upstream",
        because="the server paused in the midst of its answer for longer than {server} bears, and {server} cut it",
        where="At {server}, between the client and the server.",
        explains=(
            "A proxy's timeout for a server counts from one piece of the answer to the next. A stream that pauses for"
            " longer is cut. The status was sent long before, so no log shows an error status."
        ),
        knobs={"{server}.answer_timeout": "how long {server} waits for the next piece of an answer"},
        remedy=_longer_silence,
        lesson="silent-stream",
    ),
    Cause(
        name="stream-cut-by-server",
        meaning=(
            "The answer had begun, and the server ended the connection before it was whole, or sent in its midst what"
            " is no part of it."
        ),
        proof=(
            "The client has a part of the answer, and the server's FIN or RST came first. Or the client's error says"
            " that what came is no chunk of an answer in chunks, such as an error page. Through a proxy: its access"
            " line has the status, and its error log or its access log (HAProxy: `SD`) says that the server ended the"
            " connection, or sent no chunk."
        ),
        when=(
            f"{_CUT} AND (line_line IS NULL AND NOT proxied AND (flow_closed_by = 'server' OR flow_first_rst_by ="
            f" 'server' OR {_SPOILED}) AND flow_close_us BETWEEN time_us AND end_us + 1000000"
            " OR line_status BETWEEN 200 AND 399 AND (line_gave_up = 'server-broke' OR error_text LIKE"
            " 'upstream prematurely closed connection while reading upstream%' OR error_text LIKE"
            " 'upstream sent invalid chunked response while reading upstream%' OR error_text LIKE"
            " 'recv() failed (104:%while reading upstream%' OR error_text LIKE"
            " 'readv() failed (104:%while reading upstream%'))"
        ),
        says=f"""CASE WHEN line_line IS NOT NULL THEN {LINE} || {ERROR}
            WHEN {_SPOILED} THEN {FLOW}
                || format(': the last data from {{}}, at {{}}, is no part of the answer; k6: {{}}',
                          flow_to_instance, moment(flow_server_last_data_time_us), error)
            ELSE {FLOW} || format(': {{}} from {{}} at {{}}',
                if(flow_close_us = flow_server_fin_time_us, 'FIN', 'RST'), flow_to_instance, moment(flow_close_us)) END
            || format('; the client had had {{}} of the answer', took(receiving_us)) || {_ENDED}""",
        label="stream cut by the server",
        symptom="an answer breaks off, or has an error page in its midst; the log has status 200",
        look="the server's log: did it restart or crash? its own timeouts",
        because="the server ended the connection in the midst of its answer",
        where="At the server, in the midst of its answer.",
        hop=LAST_HOP,
        explains="The status was sent before, so the client has neither an error status nor the whole answer.",
        remedy="the server ended it: its log of that moment says why",
        lesson="worker-timeout-cuts-stream",
    ),
    Cause(
        name="stream-idle",
        meaning="The answer had begun, then nothing came, and the client gave up.",
        proof=(
            "The client has a part of the answer and ended the connection first. From the server's last data before"
            " that on, at least half of the request's time had passed."
        ),
        when=f"{_CUT} AND flow_closed_by = 'client' AND 2 * (end_us - {_HEARD_US}) >= total_us",
        says=f"""{FLOW} || format(': the last data came at {{}}; the client gave up {{}} later',
            moment({_HEARD_US}), took(end_us - {_HEARD_US}))
            || if(flow_server_last_data_time_us > end_us, format('; the server went on until {{}}',
                                                                 moment(flow_server_last_data_time_us)), '')""",
        label="silent stream",
        symptom="a stream stands still until the client's own timeout",
        look="the server's log: what does it wait for?",
        because="the server sent nothing more after the beginning of its answer, and the client gave up",
        where="At the server, in the midst of its answer.",
        explains="Nothing on the path ended the stream. The client's own timeout did.",
        remedy="let the server send a few bytes in each pause, or raise the client's timeout",
        lesson="stream-stands-still",
    ),
    Cause(
        name="process-ended",
        meaning="A process of the server ended, and its connections with it.",
        proof=(
            "The server's FIN or RST came while the request waited for its answer, and a process of the server was"
            " there in the reading before it, and not in the one after it; or no reading has the process, and the"
            " server printed in that second that it ended. Readings are a second apart. At a proxy: the same for its"
            " connection, and the proxy answered 502."
        ),
        when=(
            f"ended_pid IS NOT NULL AND acted_says IS NULL AND ({_BROKEN} AND {_UNANSWERED} AND NOT proxied AND"
            " flow_established AND NOT flow_perhaps_unknown AND flow_close_us BETWEEN time_us AND end_us + 1000000"
            " AND coalesce(flow_client_fin_time_us >= flow_close_us, true)"
            " OR outcome = 'failed' AND status = 502 AND try_status = 502"
            " AND up_close_us >= up_client_last_data_time_us)"
        ),
        apart=f"if(status = 0, least(abs(flow_close_us - time_us), {_UNANSWERED_APART}), NULL)",
        says=f"""if(status = 0, {FLOW} || format(': {{}} from {{}} at {{}}, {{}}',
                if(flow_close_us = flow_server_fin_time_us, 'FIN', 'RST'), flow_to_instance, moment(flow_close_us),
                CASE WHEN flow_accepted_after_us >= flow_close_us THEN 'while it waited in the accept queue'
                     WHEN flow_first_rst_time_us = flow_close_us THEN 'before the request was read'
                     ELSE 'while the request was under way' END),
            {LINE} || {ERROR}) || {_ENDED}""",
        label="a process ended",
        symptom="resets in bursts, at moments when the server's processes change",
        look="the server's log: workers that end, restart or crash",
        because="a process of {server} ended, and its connections with it",
        where="At {server}, whose process held the connection.",
        hop="status > 0",
        explains=(
            "When a process ends, the kernel closes its connections: with a RST where data was not read, else with a"
            " FIN. Connections in an accept queue that other processes share live on."
        ),
        remedy=(
            "let a process finish what it has accepted before it ends, recycle it less often (gunicorn:"
            " max_requests, with max_requests_jitter), or retry what can be repeated"
        ),
        lesson="worker-replaced",
    ),
    Cause(
        name=SERVER_FULL,
        meaning="The server had no room for another connection, and closed it as it came.",
        proof=(
            "It was a new connection. The server accepted it, and closed it within 50 ms (FIN or RST), without any"
            " data of its own. By packets it then held more others than whenever it took one that it answered, and"
            " closed at least five so; or a process of its had as many files open as it may (RLIMIT_NOFILE) at the"
            " reading before or after. At a proxy: the same for its connection, and the proxy answered 502."
        ),
        when=(
            f"away.id IS NOT NULL AND NOT flow_perhaps_unknown AND ({_BROKEN} AND NOT reused"
            " AND flow_close_us BETWEEN time_us - apart_us AND end_us + 1000000"
            " OR outcome = 'failed' AND status = 502 AND try_status = 502)"
        ),
        says=f"""if(status = 0, {FLOW}, {LINE} || '; ' || {UP_FLOW}) || format(
                ': {{}} closed it at {{}}, {{}} after it had come, while it held {{}} other{{}}', away.instance,
                moment(if(status = 0, flow_close_us, up_close_us)),
                took(if(status = 0, flow_close_us, up_close_us) - away.came_us), away.held,
                if(away.held = 1, '', 's'))
            || if(away.taken IS NULL, '', ', as many as it ever takes')
            || coalesce(format('; process {{}} ({{}}) had {{}} files open, as many as it may', away.pid, away.comm,
                               away.files), '') || {ERROR}""",
        label="no room at the server",
        symptom="new connections are reset or closed at once; those that are kept go on to work",
        look="the server's log: too many open files (EMFILE); `ls /proc/PID/fd` beside `/proc/PID/limits`",
        because="{server} had no room for another connection, and closed it as it came",
        where="At {server}, right after it had accepted the connection.",
        hop="status > 0",
        explains=(
            "Each connection is an open file of the process that has accepted it, and a process may open only so many"
            " (ulimit -n). Some programs have a limit of connections besides. At the limit some programs stop to"
            " accept, and new connections wait in the kernel's queue. Others, such as Node.js, accept and close them at"
            " once. The kernel counts no drop, and idle connections that are kept take places, too."
        ),
        knobs={"{server}.connections": "how many connections {server} takes at once"},
        remedy=_more_room,
        lesson="too-many-open-files",
    ),
    Cause(
        name="reset-by-peer",
        meaning="The server reset the connection (RST) before it answered.",
        proof=(
            "The connection was established, and the first RST in the capture is the server's, sent while the request"
            " waited. If the server's kernel answered SYNs with cookies, the server had also sent data; otherwise it"
            " may never have had the connection."
        ),
        when=(
            f"{_BROKEN.replace('status = 0', 'status IN (0, 101)')}"
            " AND flow_established AND NOT flow_perhaps_unknown AND flow_first_rst_by = 'server'"
            " AND flow_first_rst_time_us BETWEEN time_us AND end_us + 1000000"
        ),
        apart="abs(flow_first_rst_time_us - time_us)",
        says=f"""{FLOW} || format(': RST from {{}} at {{}}', flow_to_instance, moment(flow_first_rst_time_us))
            || coalesce('; k6: ' || error, '')""",
        seen=True,
        label="reset",
        symptom="connection reset in the middle of a request",
        look="a capture: who sent the RST; the server's log",
        because="{server} reset the connection (RST) before it answered",
        where=_ON_CONNECTION,
        explains="A reset ends a connection at once: data on its way is lost, and the client gets an error.",
        lesson="server-hangs-up",
    ),
    Cause(
        name="closed-without-answer",
        meaning=(
            "The server closed the connection in order (FIN), but without an answer. Or its client then sent the"
            " request again by itself, and it was slow for that."
        ),
        proof=(
            "The server's FIN came while the request waited and before the client's FIN, and the server sent no data"
            " after the request began. Of a slow request: the client's record has that it sent the request again over"
            " another connection, and when. A proxy may have tried a server in vain meanwhile: HAProxy answers 503 over"
            " a new connection, and closes one that is kept, so that its client may send again."
        ),
        when=(
            f"({_BROKEN} AND flow_established AND {_UNANSWERED} AND flow_closed_by = 'server'"
            " AND flow_close_kind = 'fin' AND flow_server_fin_time_us BETWEEN time_us AND end_us + 1000000)"
            f" OR (outcome = 'slow' AND {main_part('unanswered_us')})"
        ),
        apart=f"if(status = 0, least(abs(flow_server_fin_time_us - time_us), {_UNANSWERED_APART}), NULL)",
        says=f"""if(outcome = 'slow', format(
                'dial {{}}/{{}}: its connection was closed without an answer; {{}} sent the request again over another'
                || ' one, after {{}} of {{}}', instance, first_dial, instance, took(unanswered_us), took(total_us))
                || coalesce(format('; {{}} line {{}}: status {{}} at {{}} for the first one{{}}', unsent_instance,
                                   unsent_line, unsent_status, moment(unsent_time_us),
                                   coalesce(', which it had tried at ' || nullif(unsent_server, ''), '')), ''),
            {FLOW} || format(': FIN from {{}} at {{}} without an answer', flow_to_instance,
                moment(flow_server_fin_time_us)) || coalesce('; k6: ' || error, ''))""",
        label="closed without an answer",
        symptom="closed without an answer",
        look="the server's log: did it restart or crash?",
        because="{server} closed the connection without an answer",
        where=_ON_CONNECTION,
        explains="The server ended the connection in an orderly way (FIN), but sent nothing before.",
        lesson="server-hangs-up",
    ),
    Cause(
        name="session-cut",
        meaning="The server closed the connection (FIN) of a WebSocket session that the client had not ended.",
        proof=(
            "The session was open (status 101), k6 reports that it broke off, and the first FIN in the capture is the"
            " server's, sent while the session lasted. Through a proxy, its connection to the server says who was"
            " first."
        ),
        when=(
            f"{_BROKEN.replace('status = 0', 'status = 101')} AND flow_established AND flow_closed_by = 'server'"
            " AND flow_close_kind = 'fin' AND flow_server_fin_time_us BETWEEN time_us AND end_us + 1000000"
        ),
        apart="abs(flow_server_fin_time_us - time_us)",
        says=f"""{FLOW} || format(': FIN from {{}} at {{}}, {{}} after the session began', flow_to_instance,
            moment(flow_server_fin_time_us), took(flow_server_fin_time_us - time_us))
            || CASE WHEN up_close_us <= flow_server_fin_time_us
                    THEN format('; {{}} had closed its connection, flow {{}}/{{}}, at {{}}', try_server, up_observer,
                                up_id, moment(up_close_us))
                    WHEN up_id IS NOT NULL THEN format('; {{}} had not closed its own', try_server) ELSE '' END
            || coalesce('; k6: ' || error, '')""",
        seen=True,
        label="session was cut",
        symptom="a WebSocket session ends that nobody wanted to end",
        look="who sent the first FIN; the idle timeouts of proxy and server; a restart",
        because="{server} closed a WebSocket session that the client had not ended",
        where=_ON_CONNECTION,
        explains=(
            "A session lasts until one side ends it. A proxy ends one that is silent for longer than its timeout, and a"
            " server that restarts ends all of its own."
        ),
        knobs={"{server}.answer_timeout": "how long {server} lets the side behind it be silent"},
        lesson="websocket-falls-silent",
    ),
    Cause(
        name="no-live-upstream",
        meaning="The proxy tried no server: because of earlier failures it had excluded all of them.",
        proof=(
            "The proxy's error log says so for this client's connection, and the proxy answered 502; or its access log,"
            " or that of a second proxy, says that no server was up, and it answered 503."
        ),
        when=(
            "outcome = 'failed' AND (status = 502 AND error_text LIKE '%no live upstreams%'"
            " OR status = 503 AND (line_gave_up = 'no-server' OR own_gave_up = 'no-server'))"
        ),
        says=f"if(own_gave_up = 'no-server', {OWN_LINE}, {LINE} || {ERROR})",
        seen=True,
        label="no server left to try",
        symptom="502 or 503 from every request, for seconds",
        look="the proxy's error log: no live upstreams",
        because="the proxy had excluded all servers after earlier failures, and answered 502 or 503",
        where="At the proxy, which asked no server.",
        hop=LAST_HOP,
        explains=(
            "If there are several servers, a proxy may exclude one for some time after some failed tries. When it has"
            " excluded all, it answers with an error at once, even if the servers work again by then."
        ),
        knobs={
            "{client}.failures": "after how many failed tries a server is excluded",
            "{client}.left_out": "for how long",
            "{server}.backlog": "how many connections may wait at each server",
        },
        remedy=more_places,
        lesson="proxy-hides-full-queue",
    ),
    Cause(
        name="proxy-queue-timeout",
        meaning="The request waited in the proxy's own queue until that queue's timeout, and was sent to no server.",
        proof="The log of the proxy, or of a second one, says that the request ended in its queue, by its timeout.",
        when="outcome = 'failed' AND (line_gave_up = 'queue-timeout' OR own_gave_up = 'queue-timeout')",
        says=f"""if(own_gave_up = 'queue-timeout',
            {OWN_LINE} || format(', after {{}} in the proxy''s queue', took(own_took_us)), {LINE}
            || format(', after {{}} in the proxy''s queue', took(round(1000000 * line_request_time)::BIGINT)))""",
        seen=True,
        label="timed out in the proxy's queue",
        symptom="503 from the proxy after a fixed time",
        look="the proxy's access log: its own queue (HAProxy: `sQ`)",
        because="it waited in the queue of {client} until that queue's timeout, and {client} asked no server",
        where="At the proxy, which asked no server.",
        hop=LAST_HOP,
        explains=(
            "A proxy that limits the requests at a server queues the others. When a request has waited until the"
            " queue's timeout, the proxy answers 503, and the server's kernel knows nothing of the request."
        ),
        knobs={
            "{client}.server_connections": "how many requests a server gets at once; 0 sets no limit",
            "{client}.queue_timeout": "how long a request may wait in the queue of {client}",
            "{server}.connections": "how many connections the server takes at once",
        },
        remedy=_queue,
        lesson="haproxy-maxconn-queue",
    ),
    Cause(
        name="refused-by-proxy",
        meaning="The proxy answered with an error by a rule of its own, or closed the connection, and tried no server.",
        proof=(
            "The proxy's access line has the status, and names no server that was tried. Its error log, the way in"
            " which its access log says that the request ended, or the status leads to the rule, in the scenario's own"
            " configuration. Or the line of a second proxy says the same."
        ),
        when=(
            "outcome = 'failed' AND (line_tried_none AND (status >= 400 AND line_status = status"
            " OR status = 0 AND (line_status IN (408, 413, 444) OR line_gave_up = 'denied'))"
            f" OR {_TRIED_NONE})"
        ),
        says=f"""if({_TRIED_NONE}, {OWN_LINE}, {LINE}) || ', no server was tried' || {ERROR}
            || coalesce('; by ' || rules_met, '')""",
        seen=True,
        label="refused by the proxy",
        symptom="an error at once from the proxy: 403, 408, 413, 429, 503, or closed without an answer",
        look="the proxy's error log and its rules: limits, deny, return",
        because="{server} refused it by a rule of its own, and asked no server",
        where="At {server}, which asked no server.",
        explains=(
            "A proxy answers some requests itself: those beyond a limit of requests or connections, those that a rule"
            " denies, and those that are too large or too slow. No server sees them, so no server's log has them."
        ),
        remedy=_rules,
        lesson="refused-by-proxy",
    ),
    Cause(
        name="unix-socket-full",
        meaning=(
            "The server passes requests on by a unix socket, whose queue was full: the kernel refused the connection at"
            " once, and the server answered 502 or 503."
        ),
        proof=(
            "The server that answered 502 or 503 printed in the same second that connect() to a unix socket failed with"
            " EAGAIN (11: Resource temporarily unavailable), as often as it answered so in that second. Or it answered"
            " within 100 ms, and the queue of a unix socket in its namespace was full (limit + 1) at the last tick"
            " before the answer and at the first one after it."
        ),
        when=(
            "outcome = 'failed' AND status IN (502, 503) AND coalesce(try_status = status, true)"
            " AND (inside_full OR inside_refusals > 0)"
        ),
        says="""format('{} answered with status {} at {}', inside_of, status, moment(inside_answered_us))
            || coalesce(format('; container.log line {}: connect() to {} failed (11: Resource temporarily unavailable)',
                               inside_line, inside_queue), '')
            || coalesce(format('; the queue of {} held up to {} then (limit {})', inside_queue, inside_depth,
                               inside_limit), '')""",
        seen=True,
        label="unix socket's queue full",
        symptom="502 or 503 at once, while every queue that `ss -lnt` shows is empty",
        look="`ss -lx` in the server's namespace: Recv-Q above Send-Q; its log: (11: Resource temporarily unavailable)",
        because="the unix socket behind {server} had no place for another connection",
        where="At {server}, between two programs of one machine.",
        hop=LAST_HOP,
        explains=(
            "A listening unix socket has an accept queue, too, of backlog + 1 connections. There is no handshake and"
            " nothing to send again: when the queue is full, connect() of a program that does not block ends at once"
            " with EAGAIN, and a proxy answers 502 (nginx) or 503 (Apache). No counter of the kernel counts it, and no"
            " packet shows it."
        ),
        knobs={"{server}.backlog": "how many connections may wait"},
        remedy=_unix_backlog,
        lesson="unix-socket-full",
    ),
    Cause(
        name="upstream-timeout",
        meaning="The proxy waited for the server until its own timeout, and answered 504.",
        proof=(
            "The access line has status 504, or HAProxy's 503, and its last try has 504. Where a second proxy answered"
            " this try, its line has that."
        ),
        when=(
            "outcome = 'failed' AND status IN (503, 504)"
            f" AND (line_status = status AND try_status = 504 AND NOT {_PASSED_ON} OR {_second(504)})"
        ),
        says=f"""if({_second(504)}, {OWN_LINE} || coalesce('; the timer is ' || own_answer_timer, ''),
            {LINE} || CASE WHEN {_ANSWER_LOST} THEN format('; {{}} had sent its answer at {{}}, and again: it got lost'
                               || ' on the way back', up_to_instance, moment(up_server_first_data_time_us))
                           WHEN {_UP_QUEUED} THEN format('; its connection was in the accept queue of {{}} from {{}} to'
                               || ' {{}} or later', up_to_instance, moment(up_queued_us),
                               moment(least(up_accepted_after_us, try_start_us + try_response_us))) ELSE '' END
            || coalesce('; the timer is ' || if(try_connect_us IS NULL, connect_timer, answer_timer), '')
            || {ERROR})""",
        seen=True,
        label="server too slow for the proxy",
        symptom="504 after a fixed time",
        look="the proxy's error log: timed out while reading the response header",
        because="the proxy waited for the server until its own timeout, and answered 504",
        where="Between the proxy and the server.",
        hop=LAST_HOP,
        explains="A proxy gives up on a server when its own timeout ends, even if the answer is near.",
        knobs={"{client}.answer_timeout": "how long {client} waits for a server's answer"},
        remedy=_patience,
        lesson="answered-too-late",
    ),
    Cause(
        name="upstream-failed",
        meaning=(
            "The server or the connection to it failed while the proxy waited for an answer; the proxy answered 502."
        ),
        proof=(
            "The access line has status 502, or HAProxy's 503, and its last try has 502. Where a second proxy answered"
            " this try, its line has that."
        ),
        when=(
            "outcome = 'failed' AND status IN (502, 503)"
            f" AND (line_status = status AND try_status = 502 AND NOT {_PASSED_ON} OR {_second(502)})"
        ),
        says=f"if({_second(502)}, {OWN_LINE}, {LINE} || {ERROR})",
        seen=True,
        label="server broke off",
        symptom="502, and the proxy had a connection",
        look="the proxy's error log; the server's log of that moment",
        because="the server or the connection to it failed while the proxy waited, and the proxy answered 502",
        where="Between the proxy and the server.",
        hop=LAST_HOP,
        explains="If a proxy gets no complete answer from a server, it answers the client with status 502.",
        lesson="gateway-pool-throughput",
    ),
    Cause(
        name="error-status",
        meaning="The server answered with an error status.",
        proof=(
            "The client has the status. Through a proxy, the access line has the same status. Or the server ended a"
            " gRPC call, answered with 200, with a status of gRPC's own. Behind a second proxy, 502, 503 and 504 may be"
            " that proxy's own, unless its line has the same status for its try."
        ),
        when=(
            "outcome = 'failed'"
            f" AND NOT (relayed AND status IN (502, 503, 504) AND NOT {_THROUGH_BOTH})"
            " AND (status >= 400 AND (line_line IS NULL AND NOT proxied OR own_status = status"
            " OR line_status = status AND NOT (coalesce(line_guessed, false) AND status IN (502, 503, 504)"
            " AND try_status IS DISTINCT FROM status)) OR (status = 200 AND grpc_status > 0))"
        ),
        says=f"""coalesce({LINE}, {FLOW} || ': answered at ' || moment(flow_server_last_data_time_us), 'the client')
            || coalesce(if(grpc_status > 0, format('; the call has gRPC status {{}}', grpc_status), NULL),
                        format('; the answer has status {{}}', status))""",
        seen=True,
        label="answered with an error",
        symptom="an error status of the server's own",
        look="the server's log of that request",
        because="the server answered with an error",
        where="At the server, which answered.",
        explains="The connection and the exchange were sound; the answer itself says that something failed.",
        lesson="backend-restart",
    ),
)
