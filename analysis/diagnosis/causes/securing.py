"""Causes of requests whose connection was made, and whose TLS handshake on it failed or never ended."""

from __future__ import annotations

from analysis.diagnosis.causes.cause import ERROR, FIRST_HOP, FLOW, HOP_OF_DIAL, LINE, Cause
from analysis.diagnosis.causes.remedies import NO_KNOB

_WHERE = "Between {client} and {server}, after the connection was made and before the request could be sent."
_ON_DIAL = "outcome = 'failed' AND status = 0 AND remote IS NULL AND dial IS NOT NULL AND dial_error_kind IS NULL"
# Go names the alert that came from the other side `remote error: tls: …`; all else that it names is its own refusal.
_CLIENT_FAILED = f"({_ON_DIAL} AND (error LIKE '%tls: %' OR error LIKE '%x509: %'))"
# No alert, and the server ended the connection: a program that ends does so, or its kernel in its place.
# So does a proxy without connections, and its error log says it.
_CLOSED_US = "server_close_us(flow_server_fin_time_us, flow_first_rst_by, flow_first_rst_time_us)"
_BROKEN_OFF = f"({_ON_DIAL} AND url LIKE 'https://%' AND exhausted_line IS NULL AND {_CLOSED_US} <= end_us + apart_us)"
# nginx's and the gateway's words: also where a certificate is refused, or the server leaves.
_PROXY_FAILED = "(outcome = 'failed' AND status = 502 AND error_text LIKE '%while SSL handshaking to upstream%')"
# k6's code of a request that took longer than it may.
_REQUEST_TIMEOUT = 1050
_CONNECTED_US = "(dial_time_us + dial_duration_us)"
_SINCE_CONNECTED_US = f"(end_us - {_CONNECTED_US})"

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
            (
                "In the handshake both sides agree on a version and on keys, and the client checks the server's"
                " certificate. Who cannot accept what the other offers sends an alert and closes the connection. A"
                " repetition fails in the same way."
            ),
        ),
        knobs={},
        remedy="no number helps: both sides need a version in common, and the client must trust the certificate",
        lesson="handshake-storm",
    ),
    Cause(
        name="tls-handshake-timeout",
        meaning="The connection was made, and the TLS handshake on it did not end within the request's timeout.",
        proof=(
            "The address is https. The dial made a connection, the request got none, and most of its time passed after"
            " that. The connection was not in the accept queue meanwhile, and no packet of its TCP handshake was lost."
        ),
        when=(
            f"{_ON_DIAL} AND error_code = {_REQUEST_TIMEOUT} AND url LIKE 'https://%' AND flow_established"
            f" AND {_SINCE_CONNECTED_US} * 2 > total_us"
            " AND 2 * greatest(coalesce(queue_us, 0), coalesce(ack_us, 0), coalesce(pause_us, 0)) < total_us"
        ),
        says=f"""format('dial {{}}/{{}} was connected at {{}}; ', instance, dial, moment({_CONNECTED_US}))
            || {FLOW} || ': ' || coalesce('the server''s first data came at ' || moment(flow_server_first_data_time_us),
                                          'the server sent no data')
            || format('; after {{}} in the handshake the request ended: {{}}', took({_SINCE_CONNECTED_US}), error)""",
        label="TLS handshake timed out",
        symptom="connecting works, and the request times out without a byte of HTTP",
        look="the server's processor: is it busy with signatures? A capture: did it answer the ClientHello?",
        because="the TLS handshake between {client} and {server} did not end in time",
        where=_WHERE,
        hop=FIRST_HOP,
        explains=(
            (
                "A server's program must compute a signature in each whole handshake. If many clients come at once it"
                " computes one after the other, and a client that is not served in time gives up and comes again."
            ),
        ),
        knobs={"load.request_timeout": "how long {client} waits"},
        remedy=NO_KNOB,
        lesson=None,
    ),
)
