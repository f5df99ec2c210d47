-- What was read of each instance in each second, the greatest.
SELECT instance, name, (time_us - $start) // 1000000 AS second, max(value) AS value
  FROM readings WHERE name LIKE $pattern GROUP BY ALL ORDER BY instance, name, second;
