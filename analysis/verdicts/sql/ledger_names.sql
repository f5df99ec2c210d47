-- What became of the requests of each name and group. A run of an earlier version recorded no groups.
SELECT name, coalesce("group", '') AS "group", count(*) AS total,
       count(*) FILTER (outcome = 'failed') AS failed, count(*) FILTER (outcome = 'slow') AS slow,
       round(quantile_cont(total_us, 0.5) FILTER (outcome <> 'failed') / 1000, 3) AS median_ms,
       round(quantile_cont(total_us, 0.95) FILTER (outcome <> 'failed') / 1000, 3) AS p95_ms,
       histogram(cause) FILTER (cause IS NOT NULL) AS causes
  FROM cases LEFT JOIN attributed USING (instance, id)
 GROUP BY ALL
 ORDER BY failed DESC, slow DESC, total DESC, name ASC, "group" ASC
 LIMIT $most;
