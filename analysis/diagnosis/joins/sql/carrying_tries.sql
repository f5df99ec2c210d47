-- The proxies' connections that may have carried slow tries of which nobody knows the connection: those to their
-- servers that were there meanwhile. What TLS hides tells of no exchange.
WITH open_tries AS (
    SELECT instance, server_address, server_port, min(start_us) AS from_us, max(start_us + response_us) AS to_us
      FROM tries ANTI JOIN try_links USING (instance, line, try)
     WHERE NOT names_dial AND connected AND header_us IS NOT NULL AND response_us > $slow_us
     GROUP BY ALL
)
SELECT flows.observer, flows.id, flows.to_instance, flows.client_address, flows.client_port,
       flows.server_address, flows.server_port, flows.first_time_us, flows.last_time_us,
       flows.client_packets + flows.server_packets AS packets
  FROM connections AS flows
       JOIN open_tries
            ON open_tries.instance = flows.from_instance AND open_tries.server_address = flows.server_address
           AND open_tries.server_port = flows.server_port
           AND flows.first_time_us <= open_tries.to_us AND flows.last_time_us >= open_tries.from_us
       ANTI JOIN tls_handshakes
            ON tls_handshakes.observer = flows.observer AND tls_handshakes.id = flows.id
 WHERE flows.established
 ORDER BY flows.observer, flows.id;
