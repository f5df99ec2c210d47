-- Processes of servers that one reading had and the next one had not: each ended in between. Of one that began and
-- ended between two readings, so that none has it, a line of the server's own tells, by the second.
CREATE TABLE ended_processes AS
WITH readings AS (
    SELECT DISTINCT instance, time_us FROM server_processes
), spans AS (
    SELECT instance, time_us, lead(time_us) OVER (PARTITION BY instance ORDER BY time_us) AS next_us FROM readings
), read_of AS (
    SELECT spans.instance, present.pid, present.comm, NULL::BIGINT AS line, spans.time_us AS seen_us,
           spans.next_us AS gone_us
      FROM spans
           JOIN server_processes AS present ON present.instance = spans.instance AND present.time_us = spans.time_us
           ANTI JOIN server_processes AS after
                     ON after.instance = spans.instance AND after.time_us = spans.next_us AND after.pid = present.pid
     WHERE spans.next_us IS NOT NULL AND present.pid IS NOT NULL
), told AS (
    SELECT instance, pid, min(line) AS line, min(time_us) AS seen_us, min(time_us) + 1000000 AS gone_us
      FROM told_endings
     GROUP BY ALL
)
FROM read_of
UNION ALL
SELECT told.instance, told.pid, NULL, told.line, told.seen_us, told.gone_us
  FROM told
       ANTI JOIN server_processes AS present ON present.instance = told.instance AND present.pid = told.pid
 ORDER BY ALL;
