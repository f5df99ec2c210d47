-- Where several listeners of one port have a queue each (SO_REUSEPORT): which of them dropped the lost SYNs of each
-- connection, by the listeners' own counters on both sides of each. All SYNs of a connection come to the same one.
-- queue: its number, in the order in which the program made them; null where SYNs came while several of them dropped.
CREATE TABLE queue_drops AS
WITH dropped AS (
    SELECT lost_syns.observer, lost_syns.id, lost_syns.time_us, next.queues, next.queue,
           greatest(last.depth, next.depth) AS depth, next.queue_limit
      FROM lost_syns
           JOIN tick_queues AS last ON last.instance = lost_syns.to_instance AND last.n = lost_syns.last_n
           JOIN tick_queues AS next ON next.instance = lost_syns.to_instance AND next.n = lost_syns.next_n
                AND next.inode = last.inode
     WHERE next.drops > last.drops
), common AS (
    SELECT observer, id, queue
      FROM (SELECT observer, id, queue, count(*) AS met FROM dropped GROUP BY ALL)
           JOIN (SELECT observer, id, count(*) AS syns FROM lost_syns GROUP BY ALL) USING (observer, id)
     WHERE met = syns
)
SELECT dropped.observer, dropped.id, max(dropped.queues) AS queues,
       if(count(DISTINCT dropped.queue) = 1, any_value(dropped.queue), NULL) AS queue,
       min(dropped.depth) AS depth_min, max(dropped.depth) AS depth_max, max(dropped.queue_limit) AS queue_limit
  FROM dropped JOIN common USING (observer, id, queue)
 GROUP BY ALL
 ORDER BY ALL;
