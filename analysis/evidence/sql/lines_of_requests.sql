-- What each line of requests.jsonl is (records.LineKind), in the file's order, and what it says; `announced`: how many
-- records the end line tells of. A line is corrupt if it is nothing else.
SELECT * EXCLUDE (kind, schema, instance, requests, whole),
       $instance AS instance,
       requests AS announced,
       CASE WHEN whole THEN 0
            WHEN kind = 'header' THEN if(schema = 'connlab.requests/1' AND list_contains($writers, instance), 1, 3)
            WHEN kind = 'end' AND requests IS NOT NULL THEN 2
            ELSE 4 END AS line_kind
  FROM (SELECT *, $whole AS whole
          FROM read_json($path, format = 'newline_delimited', ignore_errors = true, columns = $fields));
