-- What each line of a file of `$records`, requests or dials, is (records.LineKind), in the file's order, and what it
-- says; `announced`: how many records the end line tells of. A line is corrupt if it is nothing else.
SELECT * EXCLUDE (kind, schema, instance, requests, dials, whole, closed),
       $instance AS instance,
       $records AS announced,
       CASE WHEN whole THEN 0
            WHEN kind = 'header' THEN if(schema = 'connlab.$records/1' AND list_contains($writers, instance), 1, 3)
            WHEN kind = 'end' AND $records IS NOT NULL THEN 2
            WHEN kind = 'close' AND '$records' = 'dials' THEN if(closed, 5, 3)
            ELSE 4 END AS line_kind
  FROM (SELECT *, $whole AS whole, $closed AS closed
          FROM read_json($path, format = 'newline_delimited', ignore_errors = true, columns = $fields));
