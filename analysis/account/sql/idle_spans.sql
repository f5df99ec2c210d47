-- How idle the processors were, from one reading of the host to the next.
CREATE VIEW idle_spans AS
SELECT time_us AS start_us, lead(time_us) OVER readings AS end_us,
       100.0 * (lead(idle_ms) OVER readings - idle_ms)
           / nullif(lead(total_ms) OVER readings - total_ms, 0) AS idle_percent
  FROM processors
WINDOW readings AS (ORDER BY time_us);
