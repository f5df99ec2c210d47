-- The levels of instances, the greatest in each step; each queue holds one connection more than its limit.
SELECT instance, (time_us - $start) // $width AS step, max(listen_depth) AS depth, max(listen_limit) AS "limit",
       max(listen_limit + $queues) AS places, max((listen_depth >= listen_limit + $queues)::INTEGER) AS "full",
       max(time_wait) AS time_wait
  FROM timeline WHERE list_contains($instances, instance) AND ticks > 0 GROUP BY ALL ORDER BY step;
