-- How long the requests that began in each step took, and how long connecting took for those that had to.
SELECT (time_us - $start) // $width AS step, quantile_cont(total_us, 0.5) AS median,
       quantile_cont(total_us, 0.95) AS high, max(total_us) AS longest,
       max(dial_duration_us) FILTER (NOT reused) AS connecting
  FROM requests GROUP BY step ORDER BY step;
