-- A row for each line of an access log: the columns of a record by the format's SQL over its fields, and the line's
-- number, blank ones not counted. A number too far from 0 is none.
SELECT $columns, row_number() OVER () AS line
  FROM (SELECT $within FROM read_json($path, format = 'newline_delimited', ignore_errors = true, columns = $fields));
