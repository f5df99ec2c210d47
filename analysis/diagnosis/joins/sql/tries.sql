-- One row for each server that the proxy tried for a request. A try begins when the ones before it are over, and the
-- last one is over when the request is. A log whose format is declared may leave open whether it was connected
-- (`guessed`): then it was if the answer may be the server's. A proxy counts a try as connected only once the TLS
-- handshake is over: where its error log says that it was in this, the connection stood (`securing`). nginx has no
-- connect time either for a connection that the server closed as soon as it was made; then its error log says that it
-- had the connection (`had`). What it sent less than it got is body that it did not send (`unsent_bytes`), if it is
-- more than the headers that it may have left out.
CREATE TABLE tries AS
WITH told AS (
    SELECT access.instance, access.line, list(errors.text) AS texts
      FROM access
           JOIN errors ON errors.instance = access.instance AND errors.connection = access.connection
                      AND errors.time_us BETWEEN (1000 * access.time_ms - round(1000000 * access.request_time)::BIGINT
                                                  - $turn_us) // 1000000 * 1000000
                                             AND 1000 * access.time_ms + $turn_us
     WHERE errors.text LIKE '%while SSL handshaking to upstream%'
        OR errors.text LIKE '%while sending request to upstream%'
        OR errors.text LIKE '%while reading response header from upstream%'
     GROUP BY ALL
), split AS (
    SELECT instance, line, time_ms, status AS line_status, coalesce(guessed, false) AS guessed, texts,
           string_split(upstream_addr, ', ') AS servers,
           string_split(upstream_status, ', ') AS statuses,
           seconds_of(upstream_connect_time) AS connects,
           seconds_of(upstream_header_time) AS headers,
           seconds_of(upstream_response_time) AS answers,
           string_split(upstream_connection, ', ') AS dials,
           string_split(upstream_reused, ', ') AS kept,
           string_split(upstream_local_port, ', ') AS ports,
           request_length, string_split(upstream_bytes_sent, ', ') AS sent
      FROM access LEFT JOIN told USING (instance, line) WHERE upstream_addr <> ''
), numbered AS (
    SELECT *, unnest(range(1, len(servers) + 1)) AS try FROM split
), heard AS (
    SELECT *, CASE WHEN connects[try] IS NULL
                   THEN list_filter(coalesce(texts, []), lambda text:
                       regexp_extract(text, 'upstream: "(?:\w+://)?([^/"]+)', 1) = servers[try]) ELSE [] END AS said
      FROM numbered
)
SELECT instance, line, try, len(servers) AS tries, servers[try] AS server,
       host_of(servers[try]) AS server_address, port_of(servers[try]) AS server_port,
       try_cast(statuses[try] AS BIGINT) AS status,
       round(1000000 * connects[try])::BIGINT AS connect_us,
       round(1000000 * headers[try])::BIGINT AS header_us,
       round(1000000 * answers[try])::BIGINT AS response_us,
       1000 * time_ms - round(1000000 * coalesce(list_sum(answers[try:]), 0))::BIGINT AS start_us,
       dials IS NOT NULL AS names_dial, try_cast(dials[try] AS BIGINT) AS dial,
       guessed, len(list_filter(said, lambda text: contains(text, 'while SSL handshaking'))) > 0 AS securing,
       len(said) > 0 AND NOT securing AS had, connects[try] IS NOT NULL OR securing OR had
           OR (guessed AND connects IS NULL AND line_status NOT IN (502, 503, 504)) AS connected,
       try_cast(kept[try] AS BOOLEAN) AS reused, try_cast(ports[try] AS BIGINT) AS local_port,
       if(request_length - try_cast(sent[try] AS BIGINT) > $headers_bytes,
          request_length - try_cast(sent[try] AS BIGINT), NULL) AS unsent_bytes
  FROM heard
 ORDER BY instance, line, try;
