-- The requests that ended in each step, by what became of them.
SELECT outcome, cause, (end_us - $start) // $width AS step, count(*) AS count
  FROM requests WHERE end_us >= $start GROUP BY ALL ORDER BY step;
