-- Connections that may have been kept waiting by a full accept queue. The server's kernel counted overflows, and the
-- connection shows a sign of it: data or the SYN-ACK sent again, or a RST and not a single byte from the server.
CREATE TABLE candidates AS
SELECT flows.observer, flows.id, client_address, client_port, server_address, server_port, first_time_us,
       last_time_us, flows.to_instance, coalesce(deferred, false) AS defers
  FROM flows
       SEMI JOIN hops ON hops.observer = flows.observer
       JOIN counted ON counted.instance = flows.to_instance AND overflowed
 WHERE established AND answered AND NOT handshakes_only
   AND (client_retransmissions > 0 OR synack_count > 1
        OR (first_rst_by = 'server' AND server_first_data_time_us IS NULL))
 ORDER BY flows.observer, flows.id;
