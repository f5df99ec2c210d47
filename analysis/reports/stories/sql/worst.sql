-- The worst requests: those that failed first, then the slowest.
SELECT instance, id
  FROM cases ORDER BY outcome = 'failed' DESC, total_us DESC, instance ASC, id ASC LIMIT $number;
