-- What a proxy's error log says of a connection while it carried a request. The log has seconds, rounded down.
SELECT * FROM errors
 WHERE instance = $instance AND connection = $connection AND time_us BETWEEN $start_us - 1000000 AND $end_us
 ORDER BY line;
