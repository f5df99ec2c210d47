"""Finds what belongs to each request: its dial, its connection, its line at the proxy, and the proxy's connection.

Each link says how it was found; what cannot be told apart is not linked, and says so. The table `cases` has each
request with all of this in one row. Columns of the request stand under their own names. `opaque` says that its
connection is by TLS. Others have a prefix: `dial_`, `flow_` (its connection on the first hop), `line_` (its line in
the proxy's access log), `own_` (its line in the log of the server that answered, or of a second proxy), `try_` (the
last server that the proxy tried), `first_` (the one it tried first), `up_` (the proxy's connection to the last).
"""

from __future__ import annotations

import duckdb

from analysis.database import create, has_rows, make, sql
from analysis.diagnosis.joins.results import link_results
from analysis.evidence.rawrun import RawRun

# How far two observers' times of one event may lie apart when both read the same clock. Where they do not,
# `Clocks.apart_us` (analysis.evidence.clocks) comes on top. A program reads the clock, then the kernel sends a packet,
# or the other way round.
CLOCK_SLACK_US = 5_000

# The longest turn of nginx's event loop that is reckoned with: it reads the clock once in each turn, and stamps its
# lines by that, so that a packet may leave so much later than its line says.
NGINX_TURN_US = 50_000


# The same on a machine without a processor to spare, or where each turn has TLS handshakes to reckon.
_BUSY_TURN_US = 100_000
# A connection that took longer had its SYN sent again: the kernel waits a second before it does so.
_RETRY_US = 900_000
# The kernel's first retransmission of a SYN comes a second after it, less a tick of its clock.
SYN_TIMEOUT_US = 990_000

# More headers than a proxy takes.
_HEADERS_BYTES_MAX = 16_384

# nginx stamps its lines to the millisecond, from a clock that it reads once in each turn of its event loop.
_NGINX_SLACK_US = 2_000
# How late it may notice that a server closed, or write its line, on a machine without a processor to spare.
_NGINX_LATE_US = 1_000_000
# Within this, only one connection may begin for its try to be told by time alone.
_ALONE_US = 5_000


def build_links(database: duckdb.DuckDBPyConnection, raw: RawRun) -> None:
    """Make the tables `resent`, `dial_links`, `sessions`, `request_links`, `tries` and `try_links`."""
    apart_us = raw.clocks.apart_us or 0
    slack_us = CLOCK_SLACK_US + apart_us
    make(database, ["requests WHERE sent_again > 0"], {sql(__name__, "resent"): _RESENT})
    database.execute(sql(__name__, "addressed_dials"))
    database.execute(sql(__name__, "dials_of_unknown_port"))
    database.execute(sql(__name__, "dial_links_by_address"), {"slack_us": slack_us})
    link_results(database, raw.with_results, apart_us)
    if has_rows(database, "dials_of_unknown_port"):
        database.execute(sql(__name__, "dial_links_by_time"), {"slack_us": slack_us})
        database.execute(sql(__name__, "dial_links_by_group"), {"slack_us": slack_us})
    nginx_us, turn_us, late_us = (each + apart_us for each in (_NGINX_SLACK_US, NGINX_TURN_US, _NGINX_LATE_US))
    busy_us = _BUSY_TURN_US + apart_us
    breach = {"slack_us": nginx_us, "late_us": late_us, "at_once_us": _CLOSED_AT_ONCE_US}
    in_order = {"turn_us": busy_us, "retry_us": _RETRY_US}
    at_the_proxy: list[tuple[str, dict[str, int]]] = [
        ("sessions", {"slack_us": slack_us}),
        ("request_links", {"slack_us": nginx_us, "late_us": late_us}),
        ("tries", {"turn_us": turn_us, "headers_bytes": _HEADERS_BYTES_MAX}),
        ("try_links_by_dial", {}),
        ("try_links_by_port", {"slack_us": nginx_us, "turn_us": turn_us}),
        ("try_links_by_order", {**in_order, "slack_us": nginx_us, "guessed": False}),
        ("try_links_by_time", {"slack_us": nginx_us, "retry_us": _RETRY_US, "alone_us": _ALONE_US + apart_us}),
        ("try_links_by_answer", {"slack_us": nginx_us, "turn_us": turn_us}),
        # Of a declared log, a line may be stamped later than its request ended: then the try began before it seems to.
        ("try_links_by_order", {**in_order, "slack_us": turn_us, "guessed": True}),
        ("connects_in_doubt", {"slack_us": nginx_us, "turn_us": busy_us, "timeout_us": SYN_TIMEOUT_US}),
        ("try_links_by_connect", {}),
        ("last_known_tries", {}),
        ("try_links_by_breach", {**breach, "turn_us": turn_us}),
        ("dials_in_doubt", {"slack_us": turn_us}),
        ("breaches_in_doubt", {"slack_us": turn_us, "at_once_us": _CLOSED_AT_ONCE_US}),
    ]
    create(database, "line_links", _LINE_LINKS)
    slack = {"slack_us": slack_us, "late_us": late_us}
    make(database, ["access WHERE connection IS NULL", "served_lines"], {sql(__name__, "asked"): {}})
    for name, parameters in at_the_proxy:
        make(database, ["access"], {sql(__name__, name): parameters})
        if name == "request_links":
            make(database, ["asked"], {sql(__name__, "line_links"): {**slack, "by_proxy": False}})
            make(database, ["line_links"], {sql(__name__, "request_links_by_line"): {}})
    several_proxies = "(SELECT 1 FROM access HAVING count(DISTINCT instance) > 1)"
    if has_rows(database, "served_lines") or has_rows(database, several_proxies):
        make(database, ["tries"], {sql(__name__, "asked_by_proxies"): {}})
        make(database, ["asked"], {sql(__name__, "line_links"): {**slack, "by_proxy": True}})


# After a GOAWAY, Go's client closes the connection with its last answer: in less than a millisecond, on a free
# processor. What it closes with its own end it closes together.
_RESENT = {"prompt_us": 50_000, "together_us": 10_000}

_LINE_LINKS = {
    "instance": "VARCHAR", "id": "BIGINT", "access_instance": "VARCHAR", "line": "BIGINT", "how": "VARCHAR",
}  # fmt: skip


# A server that is refused by a unix socket answers in less.
_AT_ONCE_US = 100_000
# A connection that a server closes so soon after an answer was never idle; so many closes show how long one may be.
_CLOSED_AT_ONCE_US, _CLOSES_MIN = 10_000, 5

# A program that has no room closes a connection as soon as it has accepted it, and may do so until it has closed an
# earlier one; so many closes show how many it takes.
_TURNED_AWAY = {"at_once_us": 50_000, "lag_us": 50_000, "refusals": 5}


def build_cases(database: duckdb.DuckDBPyConnection, raw: RawRun) -> None:
    """Make the tables of what became of requests: `cases`, and what the proofs of their causes rest on."""
    manifest, slack_us = raw.manifest, CLOCK_SLACK_US + (raw.clocks.apart_us or 0)
    database.execute(sql(__name__, "flows_with_proof"))
    make(database, ["request_links"], {sql(__name__, "proxied"): {"slack_us": CLOCK_SLACK_US}})
    database.execute(sql(__name__, "cases"), {"slow_us": None if manifest.slow_ms is None else 1000 * manifest.slow_ms})
    closes = {"idle_us": _CLOSED_AT_ONCE_US, "closes": _CLOSES_MIN, "slack_us": slack_us}
    make(database, ["server_processes"], {sql(__name__, "ended_processes"): {}})
    make(database, ["connections"], {sql(__name__, "idle_closes"): closes})
    make(database, ["server_processes WHERE open_files >= open_files_limit"], {sql(__name__, "full_processes"): {}})
    unanswered = "arriving_flows WHERE established AND server_first_data_time_us IS NULL"
    make(database, [unanswered], {sql(__name__, "turned_away"): _TURNED_AWAY})
    source = "requests WHERE status >= 500" if manifest.behind else "requests WHERE false"
    make(database, [source], {sql(__name__, "behind"): {"apart_us": slack_us}})
    any_inside = "(SELECT name FROM inner_queues UNION ALL SELECT name FROM inner_refusals)"
    make(database, [any_inside], {sql(__name__, "inside"): {"turn_us": NGINX_TURN_US, "at_once_us": _AT_ONCE_US}})
