-- The accept queues that ever held a connection, at each step of the observation.
CREATE TABLE queues AS
SELECT instance AS server,
       least(($steps * (time_us - $start_us)) // ($end_us - $start_us), $steps - 1)::BIGINT AS step,
       max(depth) AS depth, max(queue_limit) AS queue_limit
  FROM ticks WHERE time_us BETWEEN $start_us AND $end_us AND listeners > 0
       AND instance IN (SELECT instance FROM ticks GROUP BY instance HAVING max(depth) > 0)
 GROUP BY ALL ORDER BY server, step;
