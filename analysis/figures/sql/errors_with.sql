-- The lines of the proxies' error logs in the window that name an error number of the system. Their times are in
-- seconds, rounded down.
SELECT count(*) AS count
  FROM errors
 WHERE time_us BETWEEN $start_us // 1000000 * 1000000 AND $end_us AND contains(text, '(' || $code || ': ');
