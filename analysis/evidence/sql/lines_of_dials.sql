-- What each line of dials.jsonl is, as in lines_of_requests.sql, and what it says: also of a connection that closed.
SELECT * EXCLUDE (kind, schema, instance, dials, whole, closed),
       $instance AS instance,
       dials AS announced,
       CASE WHEN whole THEN 0
            WHEN kind = 'header' THEN if(schema = 'connlab.dials/1' AND list_contains($writers, instance), 1, 3)
            WHEN kind = 'end' AND dials IS NOT NULL THEN 2
            WHEN kind = 'close' THEN if(closed, 5, 3)
            ELSE 4 END AS line_kind
  FROM (SELECT *, $whole AS whole, $closed AS closed
          FROM read_json($path, format = 'newline_delimited', ignore_errors = true, columns = $fields));
