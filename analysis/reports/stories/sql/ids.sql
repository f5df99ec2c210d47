-- The instances that recorded requests: their lowest and highest ids, and the one nearest to a number.
SELECT instance, min(id) AS low, max(id) AS high, arg_min(id, (abs(id - $number), id)) AS nearest
  FROM requests GROUP BY instance ORDER BY instance;
