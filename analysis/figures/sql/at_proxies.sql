-- What the proxies' access logs say of the window, by the figures' names. They have milliseconds, rounded down.
-- nginx writes no connect time for a try that was never connected, and no status for one that it gave up itself.
WITH tried AS (
    SELECT count(*) AS tries_total, count(connect_us) AS tries_connected,
           count(*) FILTER (connect_us IS NULL AND status = 504) AS tries_connect_timeout,
           count(*) FILTER (connect_us IS NULL AND status = 502) AS tries_connect_failed,
           count(*) FILTER (connect_us IS NULL AND status IS NULL) AS tries_aborted,
           count(*) FILTER (try < tries) AS tries_retried
      FROM tries WHERE server_port IS NOT NULL AND start_us BETWEEN $start_us // 1000 * 1000 AND $end_us
), answered AS (
    SELECT count(*) FILTER (sent_http_connection = 'close') AS connection_close,
           count(*) FILTER (sent_http_connection = 'keep-alive') AS connection_keep_alive,
           count(*) FILTER (unsent) AS unsent,
           count(*) FILTER (connection_requests = 1 AND ssl_protocol <> '') AS tls_connections,
           count(*) FILTER (connection_requests = 1 AND ssl_session_reused = 'r') AS tls_resumed
      FROM access WHERE 1000 * time_ms BETWEEN $start_us // 1000 * 1000 AND $end_us
)
SELECT * FROM tried, answered;
