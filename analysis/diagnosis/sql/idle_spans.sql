-- How idle the processors of a machine were, from one reading of it to the next.
CREATE VIEW idle_spans AS
SELECT machine, time_us AS start_us, lead(time_us) OVER readings AS end_us,
       100.0 * (lead(idle_ms) OVER readings - idle_ms)
           / nullif(lead(total_ms) OVER readings - total_ms, 0) AS idle_percent
  FROM processors
WINDOW readings AS (PARTITION BY machine ORDER BY time_us);
