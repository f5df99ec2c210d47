-- What became of each listening socket of an instance, from the last tick at or before the window's start to the first
-- at or after its end, as figures do. A single reading of a counter says nothing of its growth.
WITH inside AS (
    SELECT * FROM ticks WHERE starts_with(instance, $prefix)
       AND time_us >= (SELECT coalesce(max(time_us), 0) FROM ticks
                        WHERE starts_with(instance, $prefix) AND time_us <= $start_us)
       AND time_us <= coalesce((SELECT min(time_us) FROM ticks
                                 WHERE starts_with(instance, $prefix) AND time_us >= $end_us), $end_us)
)
SELECT instance AS server, max(queue_limit) AS "limit", max(depth) AS depth_max,
       round(100 * avg((depth > queue_limit)::INT) FILTER (listeners > 0), 2) AS full_percent,
       if(count(listen_drops) > 1, max(listen_drops) - min(listen_drops), NULL) AS drops,
       if(count(overflows) > 1, greatest(arg_max(overflows, n) - arg_min(overflows, n), 0), NULL) AS overflows
  FROM inside GROUP BY instance HAVING max(listeners) > 0 ORDER BY instance;
