-- The connections of clients that carry several requests at once, by HTTP/2 and gRPC: how many requests each carried,
-- and how many at once. One that begins as another ends is not at once with it.
WITH streams AS (
    SELECT instance, dial, end_us, time_us + blocked_us AS sent_us
      FROM requests WHERE protocol IN ('http2', 'grpc') AND remote IS NOT NULL AND dial IS NOT NULL
), ends AS (
    SELECT instance, dial, sent_us AS time_us, 1 AS change FROM streams
    UNION ALL
    SELECT instance, dial, end_us, -1 FROM streams
), levels AS (
    SELECT instance, dial, change,
           sum(change) OVER (PARTITION BY instance, dial ORDER BY time_us, change ROWS UNBOUNDED PRECEDING) AS level
      FROM ends
), of_connections AS (
    SELECT count(*) FILTER (change = 1) AS requests, max(level)::BIGINT AS at_once FROM levels GROUP BY instance, dial
)
SELECT count(*) AS connections,
       coalesce(sum(requests), 0)::BIGINT AS requests,
       max(requests) AS requests_max,
       max(at_once) AS at_once_max
  FROM of_connections;
