-- How busy all processors of an instance's machine were.
SELECT time_us, max(value) AS value
  FROM readings WHERE name = 'host.cpu_percent' AND instance = $instance GROUP BY time_us ORDER BY time_us;
