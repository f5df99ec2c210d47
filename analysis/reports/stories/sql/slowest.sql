-- The request that took longest of those that succeeded.
SELECT instance, id, cause
  FROM cases LEFT JOIN attributed USING (instance, id)
 WHERE outcome <> 'failed' ORDER BY total_us DESC, instance ASC, id ASC LIMIT 1;
