-- The lines of the proxies' access logs of the window with a status from one to another. They have milliseconds; a log
-- that is `coarse` cannot say which lines are of the window.
SELECT count(*) AS count, (SELECT coalesce(max(resolution_us) > 1000, false) FROM access) AS coarse
  FROM access
 WHERE time_ms BETWEEN $start_us // 1000 AND ceil($end_us / 1000) AND status BETWEEN $low AND $high;
