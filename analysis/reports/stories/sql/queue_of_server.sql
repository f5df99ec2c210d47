-- The accept queue of a server at each tick at which somebody listened.
SELECT time_us, depth, queue_limit, overflows FROM ticks WHERE instance = $server AND listeners > 0 ORDER BY n;
