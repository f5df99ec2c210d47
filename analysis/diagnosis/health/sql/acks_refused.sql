-- Connections of a server that sent its SYN-ACK again although the client had completed the handshake: there was room
-- in the accept queue as the SYN came, and none as the last ACK did.
SELECT client_address, client_port, count(*) OVER () AS connections
  FROM read_parquet($path, hive_partitioning = false)
 WHERE first_time_us >= $start_us AND list_contains($addresses, server_address)
       AND list_contains($clients, client_address)
       AND handshake_ack_time_us IS NOT NULL
       AND synack_count > len(list_filter(syn_times_us, lambda at_us: at_us <= handshake_ack_time_us))
 ORDER BY handshake_ack_time_us, client_address, client_port
 LIMIT 1;
