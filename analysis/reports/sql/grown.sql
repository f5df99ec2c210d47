-- By how much a counter of the kernel grew in each step, over instances.
SELECT (time_us - $start) // $width AS step, sum(COLUMNS(lambda name: name = $counter)) AS grown
  FROM timeline WHERE list_contains($instances, instance) GROUP BY step HAVING grown IS NOT NULL ORDER BY step;
