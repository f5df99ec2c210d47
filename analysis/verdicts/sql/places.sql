-- The most connections that waited for a place in a server's queue, or had one and were not accepted, at one time.
WITH waiting AS (
    SELECT first_time_us AS from_us,
           CASE WHEN outcome IN ('never-answered', 'undecided', 'never-accepted') THEN last_time_us
                ELSE coalesce(queued_us + in_queue_us, queued_us, answered_us, last_time_us) END AS to_us
      FROM ledger WHERE to_instance = $server AND outcome <> 'earlier' AND outcome <> 'refused'
), changes AS (
    SELECT from_us AS time_us, 1 AS change FROM waiting
    UNION ALL
    SELECT to_us, -1 FROM waiting
)
SELECT max(waiting)::BIGINT AS places
  FROM (SELECT sum(change) OVER (ORDER BY time_us ASC, change DESC) AS waiting FROM changes);
