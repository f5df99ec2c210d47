-- What became of the requests.
SELECT count(*) FILTER (outcome = 'failed') AS failed, count(*) FILTER (outcome = 'slow') AS slow,
       count(*) FILTER (outcome = 'ok') AS ok
  FROM cases;
