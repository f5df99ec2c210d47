-- How many requests were answered with each status.
SELECT status, count(*) AS count FROM requests WHERE status > 0 GROUP BY status ORDER BY status;
