-- Accepted connections = those that came into the queue less those that stand in it, at each tick; the queue is first
-- in, first out. So the k-th connection was accepted between the last tick with fewer than k accepted and the next one.
-- Several listeners of one port (SO_REUSEPORT) have a queue each, and their order is not known. Without an upper bound
-- the connection was never accepted.
CREATE TABLE accepted AS
WITH entries AS (
    SELECT observer, id, to_instance, queued_us,
           row_number() OVER (PARTITION BY to_instance ORDER BY queued_us, observer, id) AS place
      FROM arriving_flows WHERE queued_us IS NOT NULL AND NOT perhaps_unknown
), arrivals AS (
    SELECT to_instance AS instance, queued_us, max(place) AS entered FROM entries GROUP BY ALL
), single AS (
    SELECT instance FROM ticks GROUP BY instance HAVING max(listeners) = 1
), counts AS (
    SELECT ticks.instance, ticks.n, ticks.time_us,
           max(coalesce(arrivals.entered, 0) - ticks.depth)
               OVER (PARTITION BY ticks.instance ORDER BY ticks.n) AS accepted
      FROM ticks SEMI JOIN single USING (instance)
           ASOF LEFT JOIN arrivals ON arrivals.instance = ticks.instance AND arrivals.queued_us <= ticks.time_us
), steps AS (
    SELECT instance, accepted, min(time_us) AS after_us,
           lag(max(time_us)) OVER (PARTITION BY instance ORDER BY accepted) AS before_us
      FROM counts GROUP BY instance, accepted
)
SELECT entries.observer, entries.id,
       greatest(if(steps.accepted IS NULL, last.time_us, steps.before_us), entries.queued_us) AS accepted_after_us,
       steps.after_us AS accepted_before_us
  FROM entries
       JOIN (SELECT instance, max(time_us) AS time_us FROM counts GROUP BY instance) AS last
            ON last.instance = entries.to_instance
       ASOF LEFT JOIN steps ON steps.instance = entries.to_instance AND entries.place <= steps.accepted
 ORDER BY entries.observer, entries.id;
