"""The table `waits`: where the time went of each request that was slow, or ended without an answer.

Each part is what the evidence proves, 0 where it proves none; the parts need not add up to the whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.database import create, has_rows
from analysis.health import limits

if TYPE_CHECKING:
    import duckdb


def build(database: duckdb.DuckDBPyConnection, *, proxied: bool) -> None:
    """Make the table.

    Args:
        database: with the tables of analysis.account.joins.
        proxied: whether a proxy stands between the client and the backend.
    """
    database.execute(_SCRAPED)
    database.execute(_QUEUED_TICKS)
    database.execute(_IDLE)
    database.execute(_SERVED_OVER_A_PROXY if proxied else _SERVED_DIRECTLY)
    if has_rows(database, "actions"):
        database.execute(_ACTED)
    else:
        create(database, "acted", ACTED)
    database.execute(_WAITS)


# Running counts, so that what lies between two moments is a difference. saturated: every thread was busy. holes: times
# without a reading, of which nobody knows how busy the threads were.
_SCRAPED = f"""
    CREATE TABLE scraped AS
    WITH spaced AS (
        SELECT *, time_us - lag(time_us) OVER (PARTITION BY instance ORDER BY time_us) AS since_us FROM scrapes
    )
    SELECT *, row_number() OVER readings AS scrapes, busy >= threads_max AS is_saturated,
           count(*) FILTER (busy >= threads_max) OVER readings AS saturated,
           count(*) FILTER (since_us > {1000 * limits.SECONDLY_GAP_MS}) OVER readings AS holes
      FROM spaced
    WINDOW readings AS (PARTITION BY instance ORDER BY time_us ROWS UNBOUNDED PRECEDING)
"""  # noqa: S608  a number of our own
_QUEUED_TICKS = """
    CREATE TABLE queued_ticks AS
    SELECT instance, time_us,
           count(*) FILTER (depth > 0) OVER (PARTITION BY instance ORDER BY n ROWS UNBOUNDED PRECEDING) AS ticks
      FROM ticks
"""
_IDLE = """
    CREATE VIEW idle_spans AS
    SELECT time_us AS start_us, lead(time_us) OVER readings AS end_us,
           100.0 * (lead(idle_ms) OVER readings - idle_ms)
               / nullif(lead(total_ms) OVER readings - total_ms, 0) AS idle_percent
      FROM processors
    WINDOW readings AS (ORDER BY time_us)
"""

# When the server that answers could begin with the request, when it was done with it, and when the answer left for the
# client: `from_us`, `to_us`, `left_us`. In the capture, the server's last data is the answer to this request if it left
# while the client waited for that. A request that was not sent has neither.
_SERVED_DIRECTLY = """
    CREATE TABLE served AS
    WITH asked AS (
        SELECT *, time_us + blocked_us + sending_us AS asked_us FROM cases
         WHERE outcome = 'slow' OR (outcome = 'failed' AND status = 0)
    ), answered AS (
        SELECT *, CASE WHEN flow_server_last_data_time_us BETWEEN asked_us AND end_us
                       THEN flow_server_last_data_time_us END AS left_us
          FROM asked
    )
    SELECT instance, id, flow_to_instance AS server, left_us,
           CASE WHEN remote IS NOT NULL THEN greatest(asked_us, coalesce(flow_accepted_after_us, 0)) END AS from_us,
           CASE WHEN remote IS NOT NULL THEN coalesce(left_us, end_us) END AS to_us,
           flow_accepted_after_us IS NOT NULL AS acceptance_known
      FROM answered
"""
# The proxy's own log times the backend's part; the handshake with a kept connection takes no time.
_SERVED_OVER_A_PROXY = """
    CREATE TABLE served AS
    SELECT cases.instance, cases.id, addresses.instance AS server, 1000 * line_time_ms AS left_us,
           CASE WHEN try_connect_us IS NOT NULL
                THEN greatest(try_start_us + try_connect_us, coalesce(up_accepted_after_us, 0)) END AS from_us,
           try_start_us + coalesce(try_header_us, try_response_us) AS to_us,
           up_accepted_after_us IS NOT NULL AS acceptance_known
      FROM cases LEFT JOIN addresses ON addresses.address = host_of(try_server)
     WHERE outcome = 'slow' OR (outcome = 'failed' AND status = 0)
"""

ACTED = {"instance": "VARCHAR", "id": "BIGINT", "overlap_us": "BIGINT", "paused": "VARCHAR", "says": "VARCHAR"}

# What the lab did to a server that the request had to do with, while it lasted; the longest pause by its overlap.
_ACTED = """
    CREATE TABLE acted AS
    WITH shared AS (
        SELECT cases.instance, cases.id, actions.instance AS touched, actions.deed, actions.start_us,
               coalesce(actions.end_us, cases.end_us) AS over_us,
               least(over_us, cases.end_us) - greatest(actions.start_us, cases.time_us) AS for_us
          FROM cases
               LEFT JOIN addresses AS firsts ON firsts.address = host_of(dial_remote)
               LEFT JOIN addresses AS seconds ON seconds.address = host_of(try_server)
               JOIN actions ON actions.instance IN (flow_to_instance, firsts.instance, seconds.instance)
         WHERE cases.outcome <> 'ok' AND for_us > 0
    )
    SELECT instance, id, max(for_us) FILTER (deed = 'pause') AS overlap_us,
           min(touched ORDER BY for_us DESC) FILTER (deed = 'pause') AS paused,
           string_agg(format('; the lab had begun to {} {} at {}', deed, touched, moment(start_us)), ''
                      ORDER BY start_us, touched) AS says
      FROM shared
     GROUP BY instance, id
"""

# A part that is not proven is NULL while it is worked out, and 0 at the end.
# - pool: it waited for a connection that was there already; at the proxy, too (up_pool).
# - syn: from the first SYN to the first answer, of a connection made for it whose first SYN got lost.
# - ack: from the handshake's last ACK, which met a full accept queue, until the connection was made.
# - queue: in the accept queue; that is surely over at the last tick that still saw it there.
# - thread: all of the server's threads were busy in every reading while it was with the server; from the first of
#   these on, or from its coming if they were busy before. Where no reading came meanwhile, in the one before and the
#   one after it. What the handler took of an average request is no wait.
# - handler: there were threads in every reading before, meanwhile and after, nobody waited to be accepted, and the
#   server's own account of its work agrees. Where no reading came meanwhile, waves of requests may have come and gone
#   unseen: then it is no more than an average request took.
# - lag: the answer was on its way.
# - retry: the proxy had tried other servers, or other connections, before.
# - pause: the lab had paused a server that had the connection already; who waited to be accepted then, waited there.
#   The server's own account of its work runs on meanwhile; the pause is neither its handler's nor its threads'.
_WAITS = """
    CREATE TABLE waits AS
    WITH readings AS (
        SELECT served.instance, served.id, served.server, served.left_us,
               served.to_us - served.from_us - if(acted.paused = served.server, acted.overlap_us, 0) AS service_us,
               acceptance_known OR queue_last.ticks = queue_first.ticks AS accepted_at_once,
               last.scrapes - first.scrapes AS scrapes, last.saturated - first.saturated AS saturated,
               first.is_saturated AS saturated_before, next.is_saturated AS saturated_after, last.threads_max,
               next.holes = first.holes AS without_hole,
               if(first.is_saturated, 0, following.time_us - served.from_us) AS free_us,
               1000 * (next.processing_ms - first.processing_ms) AS processing_us,
               processing_us // nullif(greatest(next.requests - first.requests, 0), 0) AS average_us
          FROM served
               LEFT JOIN acted USING (instance, id)
               ASOF LEFT JOIN scraped AS first ON first.instance = served.server AND first.time_us <= served.from_us
               ASOF LEFT JOIN scraped AS following
                    ON following.instance = served.server AND following.time_us > served.from_us
               ASOF LEFT JOIN scraped AS last ON last.instance = served.server AND last.time_us <= served.to_us
               ASOF LEFT JOIN scraped AS next ON next.instance = served.server AND next.time_us >= served.to_us
               ASOF LEFT JOIN queued_ticks AS queue_first
                    ON queue_first.instance = served.server AND queue_first.time_us <= served.from_us
               ASOF LEFT JOIN queued_ticks AS queue_last
                    ON queue_last.instance = served.server AND queue_last.time_us <= served.to_us
    ), parts AS (
        SELECT instance, id, readings.* EXCLUDE (instance, id),
               CASE WHEN reused THEN blocked_us END AS pool_us,
               CASE WHEN try_reused THEN try_connect_us END AS up_pool_us,
               CASE WHEN NOT reused AND flow_syns_lost > 0 AND flow_answered_us IS NOT NULL
                    THEN least(flow_answered_us, end_us) - flow_first_time_us END AS syn_us,
               CASE WHEN up_syns_lost > 0 AND up_answered_us IS NOT NULL
                    THEN least(up_answered_us, end_us) - greatest(up_first_time_us, time_us) END AS up_syn_us,
               CASE WHEN NOT reused AND flow_ack_dropped_min > 0
                    THEN least(coalesce(flow_queued_us, end_us), end_us) - flow_handshake_ack_time_us END AS ack_us,
               CASE WHEN up_ack_dropped_min > 0
                    THEN least(coalesce(up_queued_us, end_us), end_us)
                         - greatest(up_handshake_ack_time_us, time_us) END AS up_ack_us,
               CASE WHEN flow_accepted_after_us IS NOT NULL
                    THEN least(flow_accepted_after_us, end_us) - greatest(flow_queued_us, time_us) END AS queue_us,
               CASE WHEN up_accepted_after_us IS NOT NULL
                    THEN least(up_accepted_after_us, end_us) - greatest(up_queued_us, time_us) END AS up_queue_us,
               CASE WHEN without_hole AND saturated = scrapes AND (scrapes > 0 OR saturated_before AND saturated_after)
                    THEN service_us - free_us - average_us END AS thread_us,
               CASE WHEN without_hole AND NOT saturated_before AND saturated = 0 AND NOT saturated_after
                     AND accepted_at_once AND 2 * processing_us >= service_us
                    THEN if(scrapes > 0, service_us, least(service_us, average_us)) END AS handler_us,
               end_us - left_us AS lag_us,
               CASE WHEN try_tries > 1 THEN try_start_us - first_start_us END AS retry_us,
               CASE WHEN greatest(syn_us, up_syn_us, ack_us, up_ack_us, queue_us, up_queue_us, 0) <= 0
                    THEN acted.overlap_us END AS pause_us,
               acted.paused
          FROM readings JOIN cases USING (instance, id) LEFT JOIN acted USING (instance, id)
    )
    SELECT instance, id, server, left_us, scrapes, saturated, threads_max,
           (SELECT max(idle_percent) FROM idle_spans
             WHERE idle_spans.end_us > left_us AND idle_spans.start_us < left_us + lag_us) AS idle_percent,
           greatest(pool_us, 0) AS pool_us, greatest(up_pool_us, 0) AS up_pool_us,
           greatest(syn_us, 0) AS syn_us, greatest(up_syn_us, 0) AS up_syn_us,
           greatest(ack_us, 0) AS ack_us, greatest(up_ack_us, 0) AS up_ack_us,
           greatest(queue_us, 0) AS queue_us, greatest(up_queue_us, 0) AS up_queue_us,
           greatest(thread_us, 0) AS thread_us, greatest(handler_us, 0) AS handler_us, greatest(lag_us, 0) AS lag_us,
           greatest(retry_us, 0) AS retry_us,
           greatest(pause_us, 0) AS pause_us, paused
      FROM parts
     ORDER BY instance, id
"""
