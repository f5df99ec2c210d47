-- What lost SYNs say of each connection that lost some. Where both counters could account for a SYN, neither does: ACKs
-- and data that met a full accept queue count as its overflows, too. Of several queues, depth and limit are those of
-- the one that dropped them, or of all that may have.
CREATE TABLE syn_drop_proof AS
WITH counted AS (
    SELECT observer, id, count(*) AS syns,
           count(*) FILTER (overflows_cover_lost_syns AND NOT coalesce(syn_queue_full, false)) AS syns_overflowed,
           count(*) FILTER (syn_queue_full AND NOT coalesce(overflows_cover_lost_syns, false)) AS syns_syn_queue_full,
           count(*) FILTER (drops = 0) AS syns_not_dropped, count(*) FILTER (drops IS NULL) AS syns_unsampled,
           min(depth) AS depth_min, max(depth) AS depth_max, max(queue_limit) AS queue_limit
      FROM lost_syns GROUP BY observer, id
)
SELECT counted.* EXCLUDE (depth_min, depth_max, queue_limit),
       coalesce(queue_drops.depth_min, counted.depth_min) AS depth_min,
       coalesce(queue_drops.depth_max, counted.depth_max) AS depth_max,
       coalesce(queue_drops.queue_limit, counted.queue_limit) AS queue_limit, queues, queue
  FROM counted LEFT JOIN queue_drops USING (observer, id)
 ORDER BY observer, id;
