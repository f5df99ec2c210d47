-- The begin of the first and of the last request over a connection, and the end of the first.
CREATE OR REPLACE TABLE answered AS
SELECT dial, min(time_us + blocked_us) AS first_us, max(time_us + blocked_us) AS last_us, min(end_us) AS end_us
  FROM read_json($path, format = 'newline_delimited', ignore_errors = true, columns = $fields)
 WHERE $whole AND dial IS NOT NULL
 GROUP BY dial HAVING bool_and(status > 0 AND tls_us = 0 AND url LIKE 'http://%');
