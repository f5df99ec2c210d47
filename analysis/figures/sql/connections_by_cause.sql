-- What became of the connections to a server that began in the window, and the causes of those that failed or were
-- late.
SELECT count(*) AS total,
       count(*) FILTER (outcome IN ('refused', 'never-answered', 'never-accepted', 'closed-unanswered', 'given-up',
                                    'reset', 'half-open')) AS failed,
       coalesce(histogram(outcome), map()) AS outcomes, coalesce(histogram(cause), map()) AS causes
  FROM ledger WHERE in_window AND list_contains($servers, to_instance);
