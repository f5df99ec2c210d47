-- Processes of servers that one reading had and the next one had not: each ended in between.
CREATE TABLE ended_processes AS
WITH readings AS (
    SELECT DISTINCT instance, time_us FROM server_processes
), spans AS (
    SELECT instance, time_us, lead(time_us) OVER (PARTITION BY instance ORDER BY time_us) AS next_us FROM readings
)
SELECT spans.instance, present.pid, present.comm, spans.time_us AS seen_us, spans.next_us AS gone_us
  FROM spans
       JOIN server_processes AS present ON present.instance = spans.instance AND present.time_us = spans.time_us
       ANTI JOIN server_processes AS after
                 ON after.instance = spans.instance AND after.time_us = spans.next_us AND after.pid = present.pid
 WHERE spans.next_us IS NOT NULL AND present.pid IS NOT NULL
 ORDER BY ALL;
