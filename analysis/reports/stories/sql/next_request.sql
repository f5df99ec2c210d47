-- When the next request over a request's connection began.
SELECT min(time_us) AS time_us
  FROM requests WHERE instance = $instance AND dial = $dial AND (time_us, id) > ($time_us, $id);
