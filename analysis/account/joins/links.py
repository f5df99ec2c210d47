"""Finds what belongs together: a request's dial, its connection, its line at the proxy, and the proxy's connection.

Each link says how it was found; what cannot be told apart is not linked, and says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.account.slack import CLOCK_SLACK_US, NGINX_TURN_US
from analysis.database import create, has_rows

if TYPE_CHECKING:
    import duckdb

# nginx stamps its lines to the millisecond, from a clock that it reads once in each turn of its event loop.
_NGINX_SLACK_US = 2_000
# How late it may notice that a server closed, or write its line, on a machine without a processor to spare.
_NGINX_LATE_US = 1_000_000
# Within this, only one connection may begin for its try to be told by time alone.
_ALONE_US = 5_000


def build(database: duckdb.DuckDBPyConnection) -> None:
    """Make the tables `dial_links`, `sessions`, `request_links`, `tries` and `try_links`."""
    database.execute(_DIALS)
    database.execute(_DIALS_BY_ADDRESS, {"slack_us": CLOCK_SLACK_US})
    if has_rows(database, f"dials WHERE {_WITHOUT_PORT}"):
        database.execute(_DIALS_BY_TIME, {"slack_us": CLOCK_SLACK_US})
    if has_rows(database, "access"):
        _link_proxy(database)
    else:
        for table, columns in AT_THE_PROXY.items():
            create(database, table, columns)


def _link_proxy(database: duckdb.DuckDBPyConnection) -> None:
    database.execute(_SESSIONS, {"slack_us": CLOCK_SLACK_US})
    database.execute(_REQUEST_LINES, {"slack_us": _NGINX_SLACK_US, "late_us": _NGINX_LATE_US})
    database.execute(_TRIES)
    database.execute(_TRIES_BY_DIAL)
    parameters = {"slack_us": _NGINX_SLACK_US, "turn_us": NGINX_TURN_US, "alone_us": _ALONE_US}
    database.execute(_TRIES_BY_ORDER, {key: parameters[key] for key in ("slack_us", "turn_us")})
    database.execute(_TRIES_BY_TIME, {key: parameters[key] for key in ("slack_us", "alone_us")})
    database.execute(_TRIES_BY_BREACH, {"slack_us": _NGINX_SLACK_US, "late_us": _NGINX_LATE_US})


# What a run has none of without lines of a proxy.
AT_THE_PROXY = {
    "sessions": {
        "instance": "VARCHAR", "connection": "BIGINT", "dial_instance": "VARCHAR", "dial": "BIGINT",
        "observer": "VARCHAR", "flow": "BIGINT",
    },
    "request_links": {
        "instance": "VARCHAR", "id": "BIGINT", "place": "BIGINT", "access_instance": "VARCHAR", "line": "BIGINT",
    },
    "tries": {
        "instance": "VARCHAR", "line": "BIGINT", "try": "BIGINT", "tries": "BIGINT", "server": "VARCHAR",
        "server_address": "VARCHAR", "server_port": "BIGINT", "status": "BIGINT", "connect_us": "BIGINT",
        "header_us": "BIGINT", "response_us": "BIGINT", "start_us": "BIGINT", "names_dial": "BOOLEAN",
        "dial": "BIGINT", "place": "BIGINT", "reused": "BOOLEAN",
    },
    "try_links": {
        "instance": "VARCHAR", "line": "BIGINT", "try": "BIGINT", "observer": "VARCHAR", "flow": "BIGINT",
        "how": "VARCHAR",
    },
}  # fmt: skip

_DIALS = """
    CREATE VIEW addressed_dials AS
    SELECT *, host_of(local) AS local_address, port_of(local) AS local_port,
           host_of(remote) AS remote_address, port_of(remote) AS remote_port
      FROM dials
"""

# By the four addresses and ports, and the time of the first SYN.
_DIALS_BY_ADDRESS = """
    CREATE TABLE dial_links AS
    SELECT dials.instance, dials.id AS dial, connections.observer, connections.id AS flow, 'address' AS how
      FROM addressed_dials AS dials
           JOIN connections
                ON connections.from_instance = dials.instance
               AND connections.client_address = dials.local_address AND connections.client_port = dials.local_port
               AND connections.server_address = dials.remote_address AND connections.server_port = dials.remote_port
               AND connections.first_time_us BETWEEN dials.time_us - $slack_us
                                                 AND dials.time_us + dials.duration_us + $slack_us
    QUALIFY row_number() OVER (PARTITION BY dials.instance, dials.id ORDER BY connections.first_time_us) = 1
     ORDER BY ALL
"""

# A dial that failed too fast to read its port: by the server's address and time, if just one connection that no other
# dial explains began during it. A dial for which there was no port sent no SYN.
_WITHOUT_PORT = "local IS NULL AND remote IS NOT NULL AND error_kind NOT IN ('address-not-available', 'unreachable')"
_DIALS_BY_TIME = f"""
    INSERT INTO dial_links
    WITH open_dials AS (
        SELECT * FROM addressed_dials AS dials WHERE {_WITHOUT_PORT}
    ), unclaimed AS (
        SELECT *, row_number() OVER (PARTITION BY from_instance, server_address, server_port
                                     ORDER BY first_time_us, observer, id) AS place
          FROM connections ANTI JOIN dial_links
               ON dial_links.observer = connections.observer AND dial_links.flow = connections.id
    ), during AS (
        SELECT dials.instance, dials.id, dials.remote_address, dials.remote_port,
               coalesce(before.place, 0) AS place_before, coalesce(last.place, 0) AS place_last
          FROM open_dials AS dials
               ASOF LEFT JOIN unclaimed AS before
                    ON before.from_instance = dials.instance AND before.server_address = dials.remote_address
                   AND before.server_port = dials.remote_port AND before.first_time_us < dials.time_us - $slack_us
               ASOF LEFT JOIN unclaimed AS last
                    ON last.from_instance = dials.instance AND last.server_address = dials.remote_address
                   AND last.server_port = dials.remote_port
                   AND last.first_time_us <= dials.time_us + dials.duration_us + $slack_us
    )
    SELECT during.instance, during.id, unclaimed.observer, unclaimed.id, 'time'
      FROM during
           JOIN unclaimed
                ON unclaimed.from_instance = during.instance AND unclaimed.server_address = during.remote_address
               AND unclaimed.server_port = during.remote_port AND unclaimed.place = during.place_last
     WHERE during.place_last = during.place_before + 1
    QUALIFY count(*) OVER (PARTITION BY unclaimed.observer, unclaimed.id) = 1
     ORDER BY ALL
"""  # noqa: S608  a condition of our own

# A session is a client's connection at the proxy, as its log numbers them: with the dial that made it, and with the
# connection in the capture. A client may have the same port to each of nginx's addresses at once, so that nginx names
# the one it was reached under; the gateway has one address, and does not.
_SESSIONS = """
    CREATE TABLE sessions AS
    WITH firsts AS (
        SELECT instance, connection, remote_addr, remote_port, 1000 * time_ms AS end_us,
               coalesce(server_addr, '') AS reached
          FROM access
        QUALIFY row_number() OVER (PARTITION BY instance, connection ORDER BY connection_requests, line) = 1
    ), own_dials AS (
        SELECT dials.*, addresses.instance AS to_instance, unnest([remote_address, '']) AS reached
          FROM addressed_dials AS dials JOIN addresses ON addresses.address = dials.remote_address
    ), own_connections AS (
        SELECT *, unnest([server_address, '']) AS reached FROM connections
    )
    SELECT firsts.instance, firsts.connection, dials.instance AS dial_instance, dials.id AS dial,
           flows.observer, flows.id AS flow
      FROM firsts
           ASOF LEFT JOIN own_dials AS dials
                ON dials.to_instance = firsts.instance AND dials.reached = firsts.reached
               AND dials.local_address = firsts.remote_addr
               AND dials.local_port = firsts.remote_port AND firsts.end_us + $slack_us >= dials.time_us
           ASOF LEFT JOIN own_connections AS flows
                ON flows.to_instance = firsts.instance AND flows.reached = firsts.reached
               AND flows.client_address = firsts.remote_addr
               AND flows.client_port = firsts.remote_port AND firsts.end_us + $slack_us >= flows.first_time_us
     ORDER BY firsts.instance, firsts.connection
"""

# The n-th request over a connection at the client is the n-th line of that connection at the proxy. That was written
# when the client's answer came, if one did: else a record is missing, and the line is a neighbour's.
_REQUEST_LINES = """
    CREATE TABLE request_links AS
    WITH sent AS (
        SELECT instance, id, dial,
               row_number() OVER (PARTITION BY instance, dial ORDER BY time_us, id) AS place
          FROM requests WHERE dial IS NOT NULL AND remote IS NOT NULL
    )
    SELECT requests.instance, requests.id, sent.place, access.instance AS access_instance, access.line
      FROM requests
           LEFT JOIN sent ON sent.instance = requests.instance AND sent.id = requests.id
           LEFT JOIN sessions ON sessions.dial_instance = sent.instance AND sessions.dial = sent.dial
           LEFT JOIN access ON access.instance = sessions.instance AND access.connection = sessions.connection
                           AND access.connection_requests = sent.place
                           AND (requests.status = 0 OR 1000 * access.time_ms BETWEEN requests.time_us - $slack_us
                                                                                AND requests.end_us + $late_us)
    QUALIFY row_number() OVER (PARTITION BY requests.instance, requests.id ORDER BY access.line) = 1
     ORDER BY requests.instance, requests.id
"""

# One row for each server that the proxy tried for a request. A try begins when the ones before it are over, and the
# last one is over when the request is.
_TRIES = """
    CREATE TABLE tries AS
    WITH split AS (
        SELECT instance, line, time_ms, string_split(upstream_addr, ', ') AS servers,
               string_split(upstream_status, ', ') AS statuses,
               seconds_of(upstream_connect_time) AS connects,
               seconds_of(upstream_header_time) AS headers,
               seconds_of(upstream_response_time) AS answers,
               string_split(upstream_connection, ', ') AS dials,
               string_split(upstream_connection_requests, ', ') AS places,
               string_split(upstream_reused, ', ') AS kept
          FROM access WHERE upstream_addr <> ''
    ), numbered AS (
        SELECT *, unnest(range(1, len(servers) + 1)) AS try FROM split
    )
    SELECT instance, line, try, len(servers) AS tries, servers[try] AS server,
           host_of(servers[try]) AS server_address, port_of(servers[try]) AS server_port,
           try_cast(statuses[try] AS BIGINT) AS status,
           round(1000000 * connects[try])::BIGINT AS connect_us,
           round(1000000 * headers[try])::BIGINT AS header_us,
           round(1000000 * answers[try])::BIGINT AS response_us,
           1000 * time_ms - round(1000000 * coalesce(list_sum(answers[try:]), 0))::BIGINT AS start_us,
           dials IS NOT NULL AS names_dial, try_cast(dials[try] AS BIGINT) AS dial,
           try_cast(places[try] AS BIGINT) AS place, try_cast(kept[try] AS BOOLEAN) AS reused
      FROM numbered
     ORDER BY instance, line, try
"""

# The gateway's log names the dial of a try's connection, also of one that failed: its connection is that dial's, be it
# made for this try or kept from before.
_TRIES_BY_DIAL = """
    CREATE TABLE try_links AS
    SELECT tries.instance, tries.line, tries.try, dial_links.observer, dial_links.flow, 'dial' AS how
      FROM tries JOIN dial_links ON dial_links.instance = tries.instance AND dial_links.dial = tries.dial
     ORDER BY ALL
"""

# Tries that never connected, and connections that never stood; tries that connected, and connections that stood: the
# k-th of the one is the k-th of the other, if there are as many, each begins with its partner and took as long to
# connect, and no connection is kept for further requests. nginx's log does not name the port it connected from.
_TRIES_BY_ORDER = """
    INSERT INTO try_links
    WITH begun AS (
        SELECT * EXCLUDE (place), connect_us IS NOT NULL AS connected,
               row_number() OVER (PARTITION BY instance, server, connect_us IS NOT NULL
                                  ORDER BY start_us, line, try) AS place,
               count(*) OVER (PARTITION BY instance, server, connect_us IS NOT NULL) AS total
          FROM tries WHERE server_port IS NOT NULL AND NOT names_dial
    ), made AS (
        SELECT *, row_number() OVER (PARTITION BY from_instance, server_address, server_port, established
                                     ORDER BY first_time_us, observer, id) AS place,
               count(*) OVER (PARTITION BY from_instance, server_address, server_port, established) AS total
          FROM connections
    )
    SELECT begun.instance, begun.line, begun.try, made.observer, made.id AS flow, 'order' AS how
      FROM begun
           JOIN made ON made.from_instance = begun.instance AND made.server_address = begun.server_address
                    AND made.server_port = begun.server_port AND made.established = begun.connected
                    AND made.total = begun.total AND made.place = begun.place
    QUALIFY bool_and(made.first_time_us BETWEEN begun.start_us - $slack_us AND begun.start_us + $turn_us
                     AND (connect_us IS NULL OR made.answered_us - made.first_time_us
                                                BETWEEN connect_us - $turn_us AND connect_us + $slack_us))
            OVER (PARTITION BY begun.instance, begun.server, begun.connected)
     ORDER BY ALL
"""

# Otherwise by time: a try that began alone, with a connection that did.
_TRIES_BY_TIME = """
    INSERT INTO try_links
    WITH open_tries AS (
        SELECT * FROM tries ANTI JOIN try_links USING (instance, line, try)
         WHERE server_port IS NOT NULL AND NOT names_dial
    ), unclaimed AS (
        SELECT *, row_number() OVER (PARTITION BY from_instance, server_address, server_port
                                     ORDER BY first_time_us, observer, id) AS place
          FROM connections ANTI JOIN try_links
               ON try_links.observer = connections.observer AND try_links.flow = connections.id
    ), during AS (
        SELECT open_tries.*, coalesce(before.place, 0) AS place_before, coalesce(last.place, 0) AS place_last
          FROM open_tries
               ASOF LEFT JOIN unclaimed AS before
                    ON before.from_instance = open_tries.instance
                   AND before.server_address = open_tries.server_address
                   AND before.server_port = open_tries.server_port
                   AND before.first_time_us < open_tries.start_us - $slack_us
               ASOF LEFT JOIN unclaimed AS last
                    ON last.from_instance = open_tries.instance
                   AND last.server_address = open_tries.server_address
                   AND last.server_port = open_tries.server_port
                   AND last.first_time_us <= open_tries.start_us + $alone_us
    )
    SELECT during.instance, during.line, during.try, unclaimed.observer, unclaimed.id, 'time'
      FROM during
           JOIN unclaimed
                ON unclaimed.from_instance = during.instance AND unclaimed.server_address = during.server_address
               AND unclaimed.server_port = during.server_port AND unclaimed.place = during.place_last
               AND unclaimed.established = (during.connect_us IS NOT NULL)
     WHERE during.place_last = during.place_before + 1
    QUALIFY count(*) OVER (PARTITION BY unclaimed.observer, unclaimed.id) = 1
     ORDER BY ALL
"""

# Tries that broke off before any header, and connections that the server ended with their last data unanswered: the
# k-th of the one is the k-th of the other, if there are as many, and each ended when its partner did. So a try is found
# that went over a kept connection.
_TRIES_BY_BREACH = """
    INSERT INTO try_links
    WITH broken AS (
        SELECT * EXCLUDE (place), start_us + response_us AS end_us,
               count(*) OVER (PARTITION BY instance, server) AS total,
               row_number() OVER (PARTITION BY instance, server ORDER BY start_us + response_us, line, try) AS place
          FROM tries ANTI JOIN try_links USING (instance, line, try)
         WHERE server_port IS NOT NULL AND NOT names_dial
           AND connect_us IS NOT NULL AND header_us IS NULL AND status = 502
    ), ended AS (
        SELECT *, least(server_fin_time_us, if(first_rst_by = 'server', first_rst_time_us, NULL)) AS close_us
          FROM connections ANTI JOIN try_links
               ON try_links.observer = connections.observer AND try_links.flow = connections.id
         WHERE established AND client_last_data_time_us > coalesce(server_last_data_time_us, 0)
    ), unanswered AS (
        SELECT *, count(*) OVER (PARTITION BY from_instance, server_address, server_port) AS total,
               row_number() OVER (PARTITION BY from_instance, server_address, server_port
                                  ORDER BY close_us, observer, id) AS place
          FROM ended WHERE close_us IS NOT NULL
    )
    SELECT broken.instance, broken.line, broken.try, unanswered.observer, unanswered.id, 'breach'
      FROM broken
           JOIN unanswered
                ON unanswered.from_instance = broken.instance AND unanswered.server_address = broken.server_address
               AND unanswered.server_port = broken.server_port AND unanswered.total = broken.total
               AND unanswered.place = broken.place
    QUALIFY bool_and(close_us BETWEEN broken.end_us - $late_us AND broken.end_us + $slack_us)
            OVER (PARTITION BY broken.instance, broken.server)
     ORDER BY ALL
"""
