-- A moment, told from the start of the measurement; a duration.
CREATE MACRO moment(time_us) AS format('{:.3f} s', (time_us - $start_us) / 1000000);
CREATE MACRO took(span_us) AS
    if(span_us < 1000000, format('{:.1f} ms', span_us / 1000), format('{:.3f} s', span_us / 1000000));
-- Whether a proxy answered by this line of its configuration: the line fits what its logs say of the request.
CREATE MACRO rule_fits(rule, status, complaint, gave_up) AS coalesce(
    CASE WHEN rule LIKE 'limit_req %'
         THEN complaint LIKE 'limiting requests, excess%'
              AND regexp_extract(rule, '\bzone=([^ ]+)', 1) = regexp_extract(complaint, 'by zone "([^"]+)"', 1)
         WHEN rule LIKE 'limit_conn %'
         THEN complaint LIKE 'limiting connections by zone%'
              AND split_part(rule, ' ', 2) = regexp_extract(complaint, 'by zone "([^"]+)"', 1)
         WHEN rule LIKE 'deny %' THEN complaint LIKE 'access forbidden by rule%'
         WHEN rule LIKE 'client_max_body_size %' THEN complaint LIKE '%too large%body%'
         WHEN rule LIKE 'auth_basic %' OR rule LIKE 'http-request auth%' THEN status = 401
         WHEN rule LIKE 'return %' THEN complaint IS NULL AND split_part(rule, ' ', 2) = status::varchar
         WHEN rule LIKE 'http-request tarpit%' THEN gave_up = 'tarpitted'
         WHEN rule LIKE 'http-request return%'
         THEN gave_up = 'answered-itself'
              AND coalesce(nullif(regexp_extract(rule, ' status (\d+)', 1), ''), '200') = status::varchar
         WHEN rule LIKE 'http-request deny%'
         THEN gave_up = 'denied'
              AND coalesce(nullif(regexp_extract(rule, '(?:deny_)?status (\d+)', 1), ''), '403') = status::varchar
         WHEN regexp_matches(rule, '^(http-request|tcp-request content) (silent-drop|reject)')
         THEN gave_up = 'denied' AND status IN (0, 400)
         WHEN rule LIKE 'timeout http-request %' THEN gave_up = 'client-slow' END, false);
