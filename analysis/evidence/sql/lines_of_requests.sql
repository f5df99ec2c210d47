-- What each line of requests.jsonl is (bulk.LineKind), in the file's order, and what a record says; `announced`: how
-- many records the end line tells of. A line is corrupt if it is nothing else.
SELECT vu, error_code,
       requests AS announced,
       CASE WHEN whole THEN 0
            WHEN kind = 'header' THEN if(schema = 'connlab.requests/1' AND list_contains($writers, instance), 1, 3)
            WHEN kind = 'end' AND requests IS NOT NULL THEN 2
            ELSE 4 END AS line,
       CASE WHEN whole THEN connecting_us + tls_us + duration_us END AS latency_us,
       ($succeeded)::BIGINT AS ok,
       (status > 0)::BIGINT AS answered
  FROM (SELECT *, $whole AS whole
          FROM read_json($path, format = 'newline_delimited', ignore_errors = true, columns = {
               kind: 'VARCHAR', schema: 'VARCHAR', instance: 'VARCHAR', id: 'BIGINT', vu: 'BIGINT',
               time_us: 'BIGINT', end_us: 'BIGINT', blocked_us: 'BIGINT', connecting_us: 'BIGINT', tls_us: 'BIGINT',
               sending_us: 'BIGINT', waiting_us: 'BIGINT', receiving_us: 'BIGINT', duration_us: 'BIGINT',
               status: 'BIGINT', error_code: 'BIGINT', requests: 'BIGINT' }));
