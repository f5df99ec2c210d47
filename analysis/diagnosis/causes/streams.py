"""Causes of requests that share a connection with others, by HTTP/2: the server ends it, or gives them no stream."""

from __future__ import annotations

from analysis.diagnosis.causes.cause import Cause
from analysis.diagnosis.causes.waiting import APART, main_part

_WHERE = "On the connection between {client} and {server}, which carries many requests at once."
# k6's codes of an error of HTTP/2: 1610 and above for a GOAWAY, 1630 and above for a stream, each with the protocol's
# own code and 1 added. REFUSED_STREAM is 7, ENHANCE_YOUR_CALM 11.
# grpc-go names no code. It sends a call again by itself once, and fails it if the next connection drains, too.
_GOAWAY_FAILED = """(outcome = 'failed' AND (error_code BETWEEN 1610 AND 1629
        OR coalesce(protocol = 'grpc' AND (ends_with(error, 'the connection is draining')
                                           OR ends_with(error, 'server is draining the connection')), false)))"""
_REFUSED = "(outcome = 'failed' AND error_code IN (1638, 1642))"
_CONNECTION = """format('dial {}/{}', instance, dial)"""
_WAITED = "(outcome = 'slow' OR error_code = 1050)"
_SENT = """format('sent at {} on dial {}/{}, and again at {} on dial {}/{}', moment(time_us + blocked_us - again_us),
        instance, sent_dial, moment(time_us + blocked_us), instance, dial)"""
_SHARED = (
    "Over HTTP/2 one connection carries many requests at once. Each is a stream, and the server says how many streams"
    " there may be, and when the connection takes no more."
)

CAUSES = (
    Cause(
        name="goaway",
        meaning=(
            "The server ended the connection by a GOAWAY, and requests on it failed, or their client sent them again"
            " over another one."
        ),
        proof=(
            "The client's error names the GOAWAY. Or the client sent the request again by itself, the connection on"
            " which it was sent first took no further request, and was closed with its last answer, before the"
            " connection that carried the request then."
        ),
        when=f"{_GOAWAY_FAILED} OR ({_WAITED} AND {main_part('goaway_us')})",
        apart=f"if({_GOAWAY_FAILED}, NULL, {APART})",
        says=f"""if({_GOAWAY_FAILED}, {_CONNECTION} || ' ended under it; k6: ' || error,
            {_SENT} || format('; the first was closed at {{}}, after {{}} requests, and {{}} were sent again'
                              || ' ({{}} of {{}})', moment(sent_ended_us), sent_beside, sent_together, took(goaway_us),
                              took(total_us)))""",
        seen=True,
        label="sent away by a GOAWAY",
        symptom="several answers late at once, each by a new connection; or errors that name GOAWAY",
        look="requests of one connection in the proxy's log: does each end at the same number, or age?",
        because="{server} ended a connection by a GOAWAY, and {client} had to send the request again, or it failed",
        where=_WHERE,
        explains=(
            f"{_SHARED}\n\n"
            "With a GOAWAY the server names the last stream that it serves. The client may send all later ones again,"
            " whatever they ask for, and needs another connection for that first. nginx sends one after"
            " keepalive_requests, keepalive_time and an idle keepalive_timeout, HAProxy after"
            " tune.h2.fe.max-total-streams."
        ),
        knobs={
            "{server}.requests": "after how many requests {server} ends a connection",
            "{server}.connection_age": "at what age it does",
            "{server}.idle": "after how long without a request it does",
        },
        remedy=(
            "let a connection carry more requests before the server ends it, and let clients open the next one before"
            " they need it"
        ),
        lesson="goaway-in-a-burst",
    ),
    Cause(
        name="stream-refused",
        meaning="The server refused the request's stream, and it failed, or its client sent it again later.",
        proof=(
            "The client's error names REFUSED_STREAM or ENHANCE_YOUR_CALM. Or the client sent the request again by"
            " itself, and the connection on which it was sent first stayed open and usable."
        ),
        when=f"{_REFUSED} OR ({_WAITED} AND {main_part('refused_us')})",
        apart=f"if({_REFUSED}, NULL, {APART})",
        says=f"""if({_REFUSED}, {_CONNECTION} || '; k6: ' || error,
            {_SENT} || format(', {{}} times in all; the first connection stayed open ({{}} of {{}})', sent_times + 1,
                              took(refused_us), took(total_us)))""",
        seen=True,
        label="stream refused",
        symptom="some answers late by 1 s, 3 s or 7 s, on connections that are open and sound",
        look="how many streams the server allows at once; nginx's error log at level info: concurrent streams exceeded",
        because="{server} refused its stream, and {client} sent it again",
        where=_WHERE,
        explains=(
            f"{_SHARED}\n\n"
            "A client learns the number only from the server's first packet, and may have sent more by then. The server"
            " refuses what is too much; the client sends it again, on this connection or on another. Go waits for a"
            " second before the second repetition, and twice as long before each further one."
        ),
        knobs={"{server}.streams": "how many streams a connection may have at once"},
        remedy="allow as many streams at once as a client has requests, or let clients ask for less at once",
        lesson="too-few-streams",
    ),
    Cause(
        name="waited-for-a-stream",
        meaning="The request waited until its connection had a free stream.",
        proof="By HTTP/2 or gRPC it used a connection that was made before it, and was blocked before it was sent.",
        when=main_part("stream_us"),
        apart=APART,
        says="""format('blocked for {} of {} before it had a stream of dial {}/{}', took(stream_us), took(total_us),
            instance, dial)""",
        seen=True,
        label="waited for a stream",
        symptom="slow at once for all callers of one client; the server is quick and idle",
        look="requests at once of one connection, beside the streams that the server allows",
        because="the request waited at {client} until its connection to {server} had a free stream",
        where="At {client}, before the request went on to {server}.",
        explains=(
            f"{_SHARED}\n\n"
            "gRPC's clients have one connection. If all its streams are in use, further calls wait at the client."
        ),
        knobs={"{server}.streams": "how many streams a connection may have at once"},
        remedy="allow more streams at once, or let the client have more connections",
        lesson="calls-wait-for-a-stream",
    ),
)
