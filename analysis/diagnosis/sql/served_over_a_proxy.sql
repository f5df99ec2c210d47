-- The same as served_directly.sql, of a request that went through a proxy.
-- The proxy's own log times the backend's part; the handshake with a kept connection takes no time. Some proxies count
-- the TLS handshake as connecting, others do not: the server can begin when it has ended. Where data of the proxy got
-- lost (unseen_data), and nobody knows the connection, nobody knows when the server had the request.
CREATE TABLE served AS
SELECT cases.instance, cases.id, addresses.instance AS server, 1000 * line_time_ms AS left_us,
       CASE WHEN try_connect_us IS NOT NULL
             AND (up_id IS NOT NULL OR line_instance NOT IN (SELECT instance FROM unseen_data))
            THEN greatest(try_start_us + try_connect_us, coalesce(up_accepted_after_us, 0),
                          coalesce(up_tls_end_time_us, 0)) END AS from_us,
       try_start_us + coalesce(try_header_us, try_response_us) AS to_us,
       CASE WHEN try_header_us IS NOT NULL AND try_connect_us IS NOT NULL AND up_accepted_before_us IS NOT NULL
            THEN greatest(try_start_us + try_connect_us, up_accepted_before_us, coalesce(up_tls_end_time_us, 0))
       END AS taken_us,
       up_accepted_after_us IS NOT NULL AS acceptance_known
  FROM cases LEFT JOIN addresses ON addresses.address = host_of(try_server)
 WHERE outcome = 'slow' OR (outcome = 'failed' AND status = 0);
