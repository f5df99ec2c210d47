-- The most sockets that an instance kept in TIME_WAIT at once, by server: it keeps those it closed first, for 60 s.
WITH held AS (
    SELECT to_instance, last_time_us AS time_us, 1 AS change FROM ledger
     WHERE observer = $instance AND direction = 'out' AND time_wait_owner IN ('client', 'both')
    UNION ALL
    SELECT to_instance, last_time_us + 60000000, -1 FROM ledger
     WHERE observer = $instance AND direction = 'out' AND time_wait_owner IN ('client', 'both')
), running AS (
    SELECT to_instance, sum(change) OVER (PARTITION BY to_instance ORDER BY time_us, change) AS held
      FROM held
)
SELECT to_instance AS server, max(held)::BIGINT AS time_wait_most FROM running
 GROUP BY to_instance ORDER BY to_instance;
