-- Connections that may have been kept waiting by a full accept queue. The server's kernel counted overflows, and the
-- connection shows a sign of it: data or the SYN-ACK sent again, or a RST and not a single byte from the server.
-- defers: its socket waits for data (TCP_DEFER_ACCEPT).
CREATE TABLE candidates AS
WITH overflowed AS (
    SELECT instance FROM ticks GROUP BY instance HAVING max(overflows) > min(overflows)
), deferring AS (
    SELECT instance FROM ticks GROUP BY instance HAVING max(deferred) > min(deferred)
)
SELECT flows.observer, flows.id, client_address, client_port, server_address, server_port, first_time_us,
       last_time_us, flows.to_instance, deferring.instance IS NOT NULL AS defers
  FROM flows
       SEMI JOIN overflowed ON overflowed.instance = flows.to_instance
       SEMI JOIN hops ON hops.observer = flows.observer
       LEFT JOIN deferring ON deferring.instance = flows.to_instance
 WHERE established AND answered AND NOT handshakes_only
   AND (client_retransmissions > 0 OR synack_count > 1
        OR (first_rst_by = 'server' AND server_first_data_time_us IS NULL))
 ORDER BY flows.observer, flows.id;
