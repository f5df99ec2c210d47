-- A running count of the ticks in which somebody waited in an accept queue.
CREATE TABLE queued_ticks AS
SELECT instance, time_us,
       count(*) FILTER (depth > 0) OVER (PARTITION BY instance ORDER BY n ROWS UNBOUNDED PRECEDING) AS ticks
  FROM ticks;
