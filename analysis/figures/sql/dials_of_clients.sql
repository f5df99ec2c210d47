-- What became of the dials of some instances; one that was held half open on purpose neither succeeded nor failed.
SELECT count(*) AS total,
       count(*) FILTER (failure IS NULL) AS ok,
       count(*) FILTER (failure <> 'half-open') AS failed,
       coalesce(histogram(failure), map()) AS kinds
  FROM (SELECT failure_of(error, error_kind) AS failure FROM dials WHERE list_contains($instances, instance));
