-- The request that took as long as half of those with its outcome and cause did, and how many these are. Of good ones,
-- those that had to connect; of any, those whose packets are known, if there are such.
WITH alike AS (
    SELECT instance, id, total_us, flow_id IS NOT NULL AS known,
           max(flow_id IS NOT NULL) OVER () AS any_known, count(*) OVER () AS count
      FROM cases LEFT JOIN attributed USING (instance, id)
     WHERE outcome = $outcome AND cause IS NOT DISTINCT FROM $cause AND (outcome <> 'ok' OR NOT reused)
)
SELECT instance, id, count FROM alike WHERE known OR NOT any_known
 ORDER BY total_us, instance, id
 LIMIT 1 OFFSET (SELECT (count(*) - 1) // 2 FROM alike WHERE known OR NOT any_known);
