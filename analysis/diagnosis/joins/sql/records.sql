-- The whole records of a file of JSON Lines. An id that comes again, in a damaged file, is not a second record:
-- joins count on one.
SELECT * EXCLUDE (kind, line), $instance AS instance
  FROM (SELECT *, row_number() OVER () AS line
          FROM read_json($path, format = 'newline_delimited', ignore_errors = true, columns = $fields))
 WHERE $whole
QUALIFY row_number() OVER (PARTITION BY id ORDER BY line) = 1
 ORDER BY line;
