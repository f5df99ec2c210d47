-- How many other requests a connection carried when a request was sent over it.
SELECT count(*) AS count
  FROM requests
 WHERE instance = $instance AND dial = $dial AND id <> $id AND remote IS NOT NULL
   AND time_us + blocked_us <= $sent_us AND end_us > $sent_us;
