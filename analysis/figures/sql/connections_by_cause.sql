-- What became of the connections to a server that began in the window: the causes of those that failed, and of those
-- that were only late.
WITH counted AS (
    SELECT *, outcome IN ('refused', 'never-answered', 'never-accepted', 'closed-unanswered', 'given-up', 'reset',
                          'half-open') AS failed
      FROM ledger WHERE in_window AND list_contains($servers, to_instance)
)
SELECT count(*) AS total, count(*) FILTER (failed) AS failed,
       coalesce(histogram(outcome), map()) AS outcomes, coalesce(histogram(cause) FILTER (failed), map()) AS causes,
       coalesce(histogram(cause) FILTER (NOT failed), map()) AS delayed
  FROM counted;
