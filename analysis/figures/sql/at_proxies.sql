-- What the proxies' access logs say of the window, by the figures' names. They have milliseconds, rounded down.
-- nginx writes no connect time for a try that was never connected, and no status for one that it gave up itself. A try
-- that ended in its TLS handshake, or as soon as it was connected, has none either: the error log says so, or the
-- connection from the port that the log names.
WITH ended AS (
    SELECT tries.*, connect_us IS NOT NULL OR coalesce(securing OR had, false)
               OR coalesce(how = 'port' AND established, false) AS stood
      FROM tries
           LEFT JOIN try_links USING (instance, line, try)
           LEFT JOIN connections ON connections.observer = try_links.observer AND connections.id = try_links.flow
), tried AS (
    SELECT count(*) AS tries_total, count(*) FILTER (stood) AS tries_connected,
           count(*) FILTER (NOT stood AND status = 504) AS tries_connect_timeout,
           count(*) FILTER (NOT stood AND status = 502) AS tries_connect_failed,
           count(*) FILTER (NOT stood AND status IS NULL) AS tries_aborted,
           count(*) FILTER (try < tries) AS tries_retried
      FROM ended WHERE server_port IS NOT NULL AND start_us BETWEEN $start_us // 1000 * 1000 AND $end_us
), answered AS (
    SELECT count(*) FILTER (sent_http_connection = 'close') AS connection_close,
           count(*) FILTER (sent_http_connection = 'keep-alive') AS connection_keep_alive,
           count(*) FILTER (unsent) AS unsent,
           count(*) FILTER (connection_requests = 1 AND ssl_protocol <> '') AS tls_connections,
           count(*) FILTER (connection_requests = 1 AND ssl_session_reused = 'r') AS tls_resumed
      FROM access WHERE 1000 * time_ms BETWEEN $start_us // 1000 * 1000 AND $end_us
)
SELECT * FROM tried, answered;
