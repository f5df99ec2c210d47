-- How many requests each cause has: those that failed, those that were slow, and both.
SELECT coalesce(histogram(cause) FILTER (outcome = 'failed'), map()) AS failed,
       coalesce(histogram(cause) FILTER (outcome = 'slow'), map()) AS slow,
       coalesce(histogram(cause), map()) AS total
  FROM attributed JOIN cases USING (instance, id);
