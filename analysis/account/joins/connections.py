"""The connections of each hop, one row each: what became of their SYNs, and how long they waited to be accepted.

A hop's connections are counted in the captures of one end alone, so that none counts twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.account.joins import admissions
from analysis.database import create, has_rows
from analysis.evidence.samples import TICK_SLACK_US

if TYPE_CHECKING:
    from collections.abc import Sequence

    import duckdb

    from analysis.account.joins.hops import Hop
    from analysis.evidence.rawrun import RawRun
    from analysis.evidence.window import Window


def build(database: duckdb.DuckDBPyConnection, raw: RawRun, hops: Sequence[Hop], window: Window) -> None:
    """Make the tables `flows`, `connections` and `lost_syns`.

    Args:
        database: with the tables of analysis.account.joins.tables.
        raw: the run.
        hops: the run's.
        window: connections that began outside it are not counted.
    """
    database.execute("CREATE TABLE hops (hop BIGINT, client VARCHAR, server VARCHAR, observer VARCHAR)")
    for hop in hops:
        for observer in hop.observers:
            database.execute("INSERT INTO hops VALUES (?, ?, ?, ?)", [hop.number, hop.client, hop.server, observer])
    database.execute(_FLOWS)
    admissions.build(database, raw)
    database.execute(_CONNECTIONS, {"start_us": window.start_us, "end_us": window.end_us})
    database.execute(_RACES)
    database.execute(_ACCEPTED)
    if has_rows(database, "connections WHERE syns_lost > 0"):
        database.execute(_LOST_SYNS, {"slack_us": TICK_SLACK_US})
        database.execute(_QUEUE_PROOF)
    else:
        for table, columns in OF_LOST_SYNS.items():
            create(database, table, columns)


# What a run has none of that lost no SYN.
OF_LOST_SYNS = {
    "lost_syns": {
        "observer": "VARCHAR", "id": "BIGINT", "time_us": "BIGINT", "overflows": "BIGINT", "drops": "BIGINT",
        "depth": "BIGINT", "queue_limit": "BIGINT", "enough": "BOOLEAN", "syn_queue_full": "BOOLEAN",
    },
    "queue_proof": {
        "observer": "VARCHAR", "id": "BIGINT", "syns": "BIGINT", "syns_overflowed": "BIGINT",
        "syns_syn_queue_full": "BIGINT", "syns_not_dropped": "BIGINT", "syns_unsampled": "BIGINT",
        "depth_min": "BIGINT", "depth_max": "BIGINT", "queue_limit": "BIGINT",
    },
}  # fmt: skip

# `captured` with the instances at both ends, null where an address is none of the run's.
_FLOWS = """
    CREATE TABLE flows AS
    SELECT captured.observer, clients.instance AS from_instance, servers.instance AS to_instance,
           captured.* EXCLUDE (observer)
      FROM captured
           LEFT JOIN addresses AS clients ON clients.address = client_address
           LEFT JOIN addresses AS servers ON servers.address = server_address
     ORDER BY captured.observer, captured.id
"""

# answered_us: the first answer to a SYN. A SYN that it answers is the last one before it; all earlier ones were lost,
# but for one that came upon the former connection of the same ports, still in TIME_WAIT, where nothing listens: the
# server answered with an ACK of that, the client with its RST, and then with the SYN once more (challenged_us).
# A capture of handshakes alone lacks the ACK that completes one, so there a SYN-ACK has to stand for it.
# queued_us: when the server's kernel put the connection into the accept queue: with the handshake's last ACK, unless
# that met a full queue (.admissions). entered: whether it ever did. aborted: it met a RST for that.
# perhaps_unknown: the server sent nothing but a RST, and its kernel answered SYNs with cookies. Such a connection
# leaves no trace at the server until an ACK of it finds room in the accept queue, so it may never have been there.
_CONNECTIONS = """
    CREATE TABLE connections AS
    WITH formers AS (
        SELECT observer AS former_observer, id AS former_id, first_rst_time_us AS former_rst_us
          FROM flows WHERE first_rst_by = 'client'
    ), candidates AS (
        SELECT hops.hop, flows.*,
               established OR (handshakes_only AND answered) AS stood,
               NOT answered AND first_rst_by IS NOT DISTINCT FROM 'server' AS refused,
               CASE WHEN answered THEN synack_times_us[1]
                    WHEN first_rst_by = 'server' THEN first_rst_time_us END AS answered_us,
               CASE WHEN former_rst_us > first_time_us
                    THEN list_last(list_filter(syn_times_us, lambda time: time < former_rst_us)) END AS challenged_us,
               admissions.id IS NOT NULL AS examined, entered_us, coalesce(ack_dropped_min, 0) AS ack_dropped_min,
               coalesce(ack_dropped_max, 0) AS ack_dropped_max, coalesce(aborted, false) AS aborted
          FROM flows JOIN hops ON hops.observer = flows.observer
               JOIN instances AS clients ON clients.instance = from_instance AND clients.role = hops.client
               JOIN instances AS servers ON servers.instance = to_instance AND servers.role = hops.server
               LEFT JOIN admissions ON admissions.observer = flows.observer AND admissions.id = flows.id
               LEFT JOIN formers ON former_observer = flows.observer AND former_id = reused_port_of
    ), lost AS (
        SELECT *, CASE WHEN answered_us IS NULL THEN syn_count
                       ELSE greatest(len(list_filter(syn_times_us, lambda time: time < answered_us)) - 1, 0)
                  END AS unanswered,
               CASE WHEN answered_us IS NULL THEN syn_times_us
                    ELSE list_filter(syn_times_us, lambda time: time < answered_us)[1:-2] END AS unanswered_us
          FROM candidates
    )
    SELECT * EXCLUDE (established, examined, entered_us, unanswered, unanswered_us, challenged_us),
           stood AS established,
           stood AND (NOT examined OR entered_us IS NOT NULL) AS entered,
           coalesce(stood AND (NOT examined OR entered_us IS NOT NULL) AND server_first_data_time_us IS NULL
                    AND first_rst_by = 'server'
                    AND to_instance IN (SELECT instance FROM ticks GROUP BY instance
                                        HAVING max(cookies) > min(cookies)), false) AS perhaps_unknown,
           first_time_us BETWEEN $start_us AND $end_us AS in_window,
           unanswered - if(list_contains(unanswered_us, challenged_us), 1, 0) AS syns_lost,
           list_filter(unanswered_us, lambda time: time IS DISTINCT FROM challenged_us) AS syns_lost_us,
           CASE WHEN examined THEN entered_us
                WHEN stood THEN coalesce(handshake_ack_time_us, synack_times_us[1]) END AS queued_us
      FROM lost
     ORDER BY observer, id
"""

# An ACK that met a full queue, and data right behind it that found room, look like any other handshake. That can be
# only if another connection filled the queue after it had let this one's SYN pass, in a moment of overflows.
_RACES = """
    UPDATE connections SET ack_dropped_max = 1
      FROM (
        SELECT raced.observer, raced.id
          FROM connections AS raced
               ASOF JOIN ticks AS last ON last.instance = raced.to_instance AND last.time_us <= raced.answered_us
               ASOF JOIN ticks AS next ON next.instance = raced.to_instance AND next.time_us >= raced.queued_us
               ASOF JOIN (SELECT to_instance, queued_us FROM connections WHERE entered) AS others
                    ON others.to_instance = raced.to_instance AND others.queued_us < raced.queued_us
         WHERE raced.entered AND raced.ack_dropped_max = 0 AND NOT raced.handshakes_only
           AND next.overflows > last.overflows AND others.queued_us >= raced.answered_us
      ) AS races
     WHERE races.observer = connections.observer AND races.id = connections.id
"""

# Accepted connections = those that came into the queue less those that stand in it, at each tick; the queue is first
# in, first out. So the k-th connection was accepted between the last tick with fewer than k accepted and the next one.
# Several listeners of one port (SO_REUSEPORT) have a queue each, and their order is not known. Without an upper bound
# the connection was never accepted.
_ACCEPTED = """
    CREATE TABLE accepted AS
    WITH entries AS (
        SELECT observer, id, to_instance, queued_us,
               row_number() OVER (PARTITION BY to_instance ORDER BY queued_us, observer, id) AS place
          FROM connections WHERE queued_us IS NOT NULL AND NOT perhaps_unknown
    ), arrivals AS (
        SELECT to_instance AS instance, queued_us, max(place) AS entered FROM entries GROUP BY ALL
    ), single AS (
        SELECT instance FROM ticks GROUP BY instance HAVING max(listeners) = 1
    ), counts AS (
        SELECT ticks.instance, ticks.n, ticks.time_us,
               max(coalesce(arrivals.entered, 0) - ticks.depth)
                   OVER (PARTITION BY ticks.instance ORDER BY ticks.n) AS accepted
          FROM ticks SEMI JOIN single USING (instance)
               ASOF LEFT JOIN arrivals ON arrivals.instance = ticks.instance AND arrivals.queued_us <= ticks.time_us
    ), steps AS (
        SELECT instance, accepted, min(time_us) AS after_us,
               lag(max(time_us)) OVER (PARTITION BY instance ORDER BY accepted) AS before_us
          FROM counts GROUP BY instance, accepted
    )
    SELECT entries.observer, entries.id,
           greatest(if(steps.accepted IS NULL, last.time_us, steps.before_us), entries.queued_us) AS accepted_after_us,
           steps.after_us AS accepted_before_us
      FROM entries
           JOIN (SELECT instance, max(time_us) AS time_us FROM counts GROUP BY instance) AS last
                ON last.instance = entries.to_instance
           ASOF LEFT JOIN steps ON steps.instance = entries.to_instance AND entries.place <= steps.accepted
     ORDER BY entries.observer, entries.id
"""

# Each SYN that nothing answered, with the ticks around it and what the server's kernel counted between them.
# enough: the kernel counted as many overflows there as SYNs got lost that certainly came between the two ticks;
# syn_queue_full: as many SYNs that met a full queue of half-open connections.
_LOST_SYNS = """
    CREATE TABLE lost_syns AS
    WITH syns AS (
        SELECT observer, id, to_instance, unnest(syns_lost_us) AS time_us FROM connections WHERE syns_lost > 0
    ), running AS (
        SELECT to_instance AS instance, time_us,
               max(row_number) AS lost
          FROM (SELECT *, row_number() OVER (PARTITION BY to_instance ORDER BY time_us) AS row_number FROM syns)
         GROUP BY ALL
    ), cumulative AS (
        SELECT ticks.*,
               coalesce(early.lost, 0) AS lost_surely_before, coalesce(late.lost, 0) AS lost_perhaps_before
          FROM ticks
               ASOF LEFT JOIN running AS early
                    ON early.instance = ticks.instance AND early.time_us <= ticks.time_us - $slack_us
               ASOF LEFT JOIN running AS late
                    ON late.instance = ticks.instance AND late.time_us <= ticks.time_us + $slack_us
    )
    SELECT syns.observer, syns.id, syns.time_us,
           next.overflows - last.overflows AS overflows, next.listen_drops - last.listen_drops AS drops,
           greatest(last.depth, next.depth) AS depth, next.queue_limit,
           next.overflows - last.overflows
               >= greatest(next.lost_surely_before - last.lost_perhaps_before, 1) AS enough,
           next.syn_queue_drops - last.syn_queue_drops
               >= greatest(next.lost_surely_before - last.lost_perhaps_before, 1) AS syn_queue_full
      FROM syns
           ASOF LEFT JOIN cumulative AS last
                ON last.instance = syns.to_instance AND last.time_us <= syns.time_us - $slack_us
           ASOF LEFT JOIN cumulative AS next
                ON next.instance = syns.to_instance AND next.time_us >= syns.time_us + $slack_us
     ORDER BY syns.observer, syns.id, syns.time_us
"""

# What that says of each connection that lost SYNs. Where both counters could account for a SYN, neither does: ACKs and
# data that met a full accept queue count as its overflows, too.
_QUEUE_PROOF = """
    CREATE TABLE queue_proof AS
    SELECT observer, id, count(*) AS syns,
           count(*) FILTER (enough AND NOT coalesce(syn_queue_full, false)) AS syns_overflowed,
           count(*) FILTER (syn_queue_full AND NOT coalesce(enough, false)) AS syns_syn_queue_full,
           count(*) FILTER (drops = 0) AS syns_not_dropped, count(*) FILTER (drops IS NULL) AS syns_unsampled,
           min(depth) AS depth_min, max(depth) AS depth_max, max(queue_limit) AS queue_limit
      FROM lost_syns GROUP BY observer, id ORDER BY observer, id
"""
