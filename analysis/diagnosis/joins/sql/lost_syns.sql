-- Each SYN that nothing answered, with the ticks around it and what the server's kernel counted between them.
-- overflows_cover_lost_syns: the kernel counted as many overflows there as SYNs got lost that certainly came between
-- the two ticks; syn_queue_full: as many SYNs that met a full queue of half-open connections. A tick without counters,
-- as a dump of sockets alone makes one, bounds nothing.
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
     WHERE ticks.overflows IS NOT NULL
)
SELECT syns.observer, syns.id, syns.time_us, syns.to_instance, last.n AS last_n, next.n AS next_n,
       next.overflows - last.overflows AS overflows, next.listen_drops - last.listen_drops AS drops,
       greatest(last.depth, next.depth) AS depth, next.queue_limit,
       next.overflows - last.overflows
           >= greatest(next.lost_surely_before - last.lost_perhaps_before, 1) AS overflows_cover_lost_syns,
       next.syn_queue_drops - last.syn_queue_drops
           >= greatest(next.lost_surely_before - last.lost_perhaps_before, 1) AS syn_queue_full
  FROM syns
       ASOF LEFT JOIN cumulative AS last
            ON last.instance = syns.to_instance AND last.time_us <= syns.time_us - $slack_us
       ASOF LEFT JOIN cumulative AS next
            ON next.instance = syns.to_instance AND next.time_us >= syns.time_us + $slack_us
 ORDER BY syns.observer, syns.id, syns.time_us;
