-- A row for each line of a log whose format is declared, out of what each line `told`: the columns of a record by SQL
-- over its fields, each a text.
SELECT $columns, line
  FROM (SELECT line, $values FROM told);
