-- How long the processors of a machine were idle, from one reading of it to the next, of the time that they had; and
-- both until then, so that the sum over many spans is a difference.
CREATE VIEW idle_spans AS
SELECT machine, time_us AS start_us, idle_ms AS idle_before_ms, total_ms AS total_before_ms,
       lead(time_us) OVER readings AS end_us,
       lead(idle_ms) OVER readings - idle_ms AS idle_ms, lead(total_ms) OVER readings - total_ms AS total_ms
  FROM processors
WINDOW readings AS (PARTITION BY machine ORDER BY time_us);
