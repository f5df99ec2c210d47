-- Processes of servers that had as many files open as they may, at a reading, from the one before it to the one after.
CREATE TABLE full_processes AS
WITH readings AS (
    SELECT instance, time_us, lag(time_us, 1, time_us) OVER following AS from_us,
           lead(time_us, 1, time_us) OVER following AS to_us
      FROM (SELECT DISTINCT instance, time_us FROM server_processes)
    WINDOW following AS (PARTITION BY instance ORDER BY time_us)
)
SELECT instance, from_us, to_us, pid, comm, open_files_limit AS files
  FROM server_processes JOIN readings USING (instance, time_us)
 WHERE open_files >= open_files_limit
 ORDER BY ALL;
