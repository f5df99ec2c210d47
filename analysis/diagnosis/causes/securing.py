"""Causes of requests whose connection was made, and whose TLS handshake on it failed or never ended."""

from __future__ import annotations

from analysis.diagnosis.causes.cause import CONNECT_TIMER, ERROR, FLOW, HOP_OF_DIAL, LINE, UP_FLOW, Cause
from analysis.diagnosis.causes.remedies import AdvisedRun

_WHERE = "Between {client} and {server}, after the connection was made and before the request could be sent."
_ON_DIAL = "outcome = 'failed' AND status = 0 AND remote IS NULL AND dial IS NOT NULL AND dial_error_kind IS NULL"
# Go names the alert that came from the other side `remote error: tls: …`; all else that it names is its own refusal.
_CLIENT_FAILED = f"({_ON_DIAL} AND (error LIKE '%tls: %' OR error LIKE '%x509: %'))"
# No alert, and the server ended the connection: a program that ends does so, or its kernel in its place.
# So does a proxy without connections, and its error log says it.
_CLOSED_US = "server_close_us(flow_server_fin_time_us, flow_first_rst_by, flow_first_rst_time_us)"
_BROKEN_OFF = f"({_ON_DIAL} AND url LIKE 'https://%' AND exhausted_line IS NULL AND {_CLOSED_US} <= end_us + apart_us)"
# nginx's and the gateway's words: also where a certificate is refused, or the server leaves.
_PROXY_FAILED = (
    "(outcome = 'failed' AND (status = 502 AND error_text LIKE '%while SSL handshaking to upstream%'"
    " OR status = 503 AND try_status = 502 AND try_connect_us IS NULL AND try_securing AND up_entered"
    " AND up_client_first_data_time_us IS NOT NULL))"
)
# HAProxy logs no stage: it never was connected, and its connection stood, and had data. Plain HTTP has none by then.
_UP_STOOD = "(try_securing AND up_entered AND up_client_first_data_time_us IS NOT NULL)"
# What of the try's time passed before the server had the connection: until its SYN was answered, and in the queue.
_UP_WAIT_US = """(if(up_accepted_after_us IS NULL, up_answered_us,
                     least(up_accepted_after_us, try_start_us + try_response_us)) - try_start_us)"""
_PROXY_TIMED_OUT = (
    "(outcome = 'failed' AND status IN (502, 503, 504) AND try_connect_us IS NULL AND try_status = 504"
    f" AND (error_text LIKE 'upstream timed out%while SSL handshaking to upstream%' OR {_UP_STOOD})"
    f" AND coalesce(2 * {_UP_WAIT_US} < try_response_us, true))"
)
# k6's code of a request that took longer than it may.
_REQUEST_TIMEOUT = 1050
_CONNECTED_US = "(dial_time_us + dial_duration_us)"
_SINCE_CONNECTED_US = f"(end_us - {_CONNECTED_US})"


def _first_data(prefix: str) -> str:
    """Return SQL for what the server sent in a handshake that did not end, and whose turn it then was."""
    hello, answer, reply = (f"{prefix}_{name}_time_us" for name in ("client_hello", "server_hello", "client_reply"))
    return f"""if({answer} IS NULL,
        coalesce('the server''s first data came at ' || moment({prefix}_server_first_data_time_us),
                 'the server sent no data'),
        format('the ServerHello came {{}} after the ClientHello, and ', took({answer} - {hello}))
        || coalesce(format('the client''s reply {{}} later', took({reply} - {answer})), 'the client sent no reply'))"""


def _fewer_handshakes(run: AdvisedRun) -> str:
    """Return what makes handshakes fewer or quicker, and the proxy's timer that ended them."""
    why = "keep connections, let sessions be resumed, or take a key that signs faster (ecdsa)"
    return f"{why}{run.dial_timer}"


CAUSES = (
    Cause(
        name="tls-handshake-failed",
        meaning="The connection was made, and the TLS handshake on it failed: a side refused the other, or left.",
        proof=(
            "The dial made a connection, the request got none, and the client's error names the alert that the server"
            " sent, or what the client itself refused. Or the capture has the server's FIN or RST before the request"
            " ended. At a proxy: it answered 502, and its error log says that the"
            " handshake with the server failed."
        ),
        when=f"{_CLIENT_FAILED} OR {_BROKEN_OFF} OR {_PROXY_FAILED}",
        says=f"""CASE WHEN {_CLIENT_FAILED} THEN
            format('dial {{}}/{{}} was connected at {{}}; then {{}}: {{}}', instance, dial,
                   moment({_CONNECTED_US}),
                   if(error LIKE '%remote error%', 'the server sent an alert', 'the client refused the server'), error)
            WHEN {_BROKEN_OFF} THEN
            format('dial {{}}/{{}} was connected at {{}}; ', instance, dial, moment({_CONNECTED_US})) || {FLOW}
            || format(': the server ended the connection at {{}}, within the handshake', moment({_CLOSED_US}))
            ELSE {LINE} || {ERROR} END""",
        seen=True,
        label="TLS handshake failed",
        symptom="connecting works, and the request fails at once with an error that names TLS or a certificate",
        look=(
            "`connlab explain`: which side sent which alert, if it was not encrypted;"
            " `openssl s_client -connect <server>`: which versions, which certificate"
        ),
        because="the TLS handshake between {client} and {server} failed",
        where=_WHERE,
        hop=HOP_OF_DIAL,
        explains=(
            "In the handshake both sides agree on a version and on keys, and the client checks the server's"
            " certificate. Who cannot accept what the other offers sends an alert and closes the connection. A"
            " repetition fails in the same way."
        ),
        remedy="no number helps: both sides need a version in common, and the client must trust the certificate",
        lesson="handshake-storm",
    ),
    Cause(
        name="tls-handshake-timeout",
        meaning=(
            "The connection was made, and the TLS handshake on it did not end within the request's timeout, or the"
            " proxy's."
        ),
        proof=(
            "The address is https. The dial made a connection, the request got none, and most of its time passed after"
            " that. The connection was not in the accept queue meanwhile, and no packet of its TCP handshake was lost."
            " At a proxy: it answered 502, 503 or 504, and its error log says that it timed out in the handshake with"
            " the server. Or it was never connected by its access log, and its connection was made, and had its data."
            " Where its connection is known, it waited for no SYN and in no accept queue for half of the time."
        ),
        when=(
            f"{_ON_DIAL} AND error_code = {_REQUEST_TIMEOUT} AND url LIKE 'https://%' AND flow_established"
            f" AND {_SINCE_CONNECTED_US} * 2 > total_us"
            " AND 2 * greatest(coalesce(queue_us, 0), coalesce(ack_us, 0), coalesce(pause_us, 0)) < total_us"
            f" OR {_PROXY_TIMED_OUT}"
        ),
        says=f"""if({_PROXY_TIMED_OUT},
            {LINE} || coalesce('; ' || {UP_FLOW} || format(': connected at {{}}; ', moment(up_answered_us))
                               || {_first_data("up")}, '') || {CONNECT_TIMER} || {ERROR},
            format('dial {{}}/{{}} was connected at {{}}; ', instance, dial, moment({_CONNECTED_US}))
            || {FLOW} || ': ' || {_first_data("flow")}
            || format('; after {{}} in the handshake the request ended: {{}}', took({_SINCE_CONNECTED_US}), error))""",
        label="TLS handshake timed out",
        symptom="connecting works, and the request times out without a byte of HTTP",
        look="the server's processor: is it busy with signatures? A capture: did it answer the ClientHello?",
        because="the TLS handshake between {client} and {server} did not end in time",
        where=_WHERE,
        hop=HOP_OF_DIAL,
        explains=(
            "A server's program must compute a signature in each whole handshake. If many clients come at once it"
            " computes one after the other, and a client that is not served in time gives up and comes again."
        ),
        knobs={
            "load.request_timeout": "how long the clients wait",
            "{client}.connect_timeout": "how long {client} waits for a connection, its TLS handshake included",
        },
        remedy=_fewer_handshakes,
        lesson="handshake-in-line",
    ),
)
