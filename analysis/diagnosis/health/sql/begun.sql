-- The lines of an instance's access log whose request began in a time.
SELECT count(*) AS count
  FROM (SELECT 1000 * (time_ms - if(request_time BETWEEN 0 AND 1e9, (1000 * request_time)::BIGINT, 0)) AS begin_us
          FROM access WHERE instance = $instance)
 WHERE begin_us BETWEEN $first_us AND $last_us;
