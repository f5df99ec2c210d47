-- The dials that requests waited for, each once, if they took long enough to be drawn.
SELECT dial_time_us AS time_us, max(dial_duration_us) AS took_us
  FROM requests WHERE NOT reused AND dial_duration_us >= $least_us
 GROUP BY instance, dial, dial_time_us ORDER BY time_us;
