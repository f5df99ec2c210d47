-- What each line of dials.jsonl is, as in lines_of_requests.sql; `failure`: 0, or the place of its kind in `$kinds`.
SELECT duration_us,
       dials AS announced,
       CASE WHEN whole THEN 0
            WHEN kind = 'header' THEN if(schema = 'connlab.dials/1' AND list_contains($writers, instance), 1, 3)
            WHEN kind = 'end' AND dials IS NOT NULL THEN 2
            WHEN kind = 'close' THEN 3
            ELSE 4 END AS line,
       CASE WHEN error IS NULL AND error_kind IS NULL THEN 0
            ELSE coalesce(list_position($kinds, error_kind), len($kinds))::BIGINT END AS failure
  FROM (SELECT *, $whole AS whole
          FROM read_json($path, format = 'newline_delimited', ignore_errors = true, columns = {
               kind: 'VARCHAR', schema: 'VARCHAR', instance: 'VARCHAR', error: 'VARCHAR', error_kind: 'VARCHAR',
               id: 'BIGINT', time_us: 'BIGINT', duration_us: 'BIGINT', dials: 'BIGINT' }));
