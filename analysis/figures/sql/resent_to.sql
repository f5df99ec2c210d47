-- The requests that met a connection which the server closed without an answer to them, and that did not fail for it:
-- the client's side sent them again over another connection. One that may be that of a failed try does not count, nor
-- one that the server closed right behind its own data: it was not idle. What passes by TLS is not told from the end of
-- TLS itself.
WITH failed AS (
    SELECT dial_links.observer, dial_links.flow
      FROM requests JOIN dial_links ON dial_links.instance = requests.instance AND dial_links.dial = requests.dial
     WHERE NOT succeeded(requests.error_code, requests.status) OR requests.tls_us > 0
    UNION ALL
    SELECT try_links.observer, try_links.flow
      FROM try_links JOIN tries USING (instance, line, try)
     WHERE tries.try = tries.tries AND tries.status = 502
    UNION ALL
    SELECT observer, flow FROM breaches_in_doubt
), told AS (
    SELECT DISTINCT dial_links.observer, dial_links.flow
      FROM requests
           JOIN dial_links ON dial_links.instance = requests.instance AND dial_links.dial = requests.first_dial
     WHERE requests.sent_again > 0 AND coalesce(requests.protocol, '') NOT IN ('http2', 'grpc')
)
SELECT count(*) AS resent
  FROM connections
       ANTI JOIN failed ON failed.observer = connections.observer AND failed.flow = connections.id
       LEFT JOIN told ON told.observer = connections.observer AND told.flow = connections.id
 WHERE in_window AND established AND to_instance = $instance
   AND (told.flow IS NOT NULL
        OR (client_last_data_time_us > server_last_data_time_us
            AND coalesce(server_close_us(server_fin_time_us, first_rst_by, first_rst_time_us)
                         > server_last_data_time_us + 10000, true)
            AND (closed_by = 'server' OR (first_rst_by = 'server' AND client_fin_time_us IS NULL))));
