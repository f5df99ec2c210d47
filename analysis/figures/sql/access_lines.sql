-- The lines of the proxies' access logs of the window with a status from one to another. They have milliseconds.
SELECT count(*) AS count
  FROM access
 WHERE time_ms BETWEEN $start_us // 1000 AND ceil($end_us / 1000) AND status BETWEEN $low AND $high;
