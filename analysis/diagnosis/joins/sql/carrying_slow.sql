-- The same, of a client that records its requests: those that had a slow one which the connection's last data does not
-- tell of, of servers that tell nothing of their threads, or of clients whose processors the lab limited; and those on
-- which the server went on with an answer after its client had given up.
SELECT DISTINCT flows.observer, flows.id, flows.to_instance, flows.client_address, flows.client_port,
       flows.server_address, flows.server_port, flows.first_time_us, flows.last_time_us,
       flows.client_packets + flows.server_packets AS packets
  FROM cases JOIN connections AS flows ON flows.observer = cases.flow_observer AND flows.id = cases.flow_id
 WHERE coalesce(cases.protocol, '') NOT IN ('http2', 'grpc', 'websocket')
   AND (cases.outcome = 'slow' AND (cases.opaque OR cases.flow_server_last_data_time_us > cases.end_us)
        AND (list_contains($silent::VARCHAR[], flows.to_instance)
             OR list_contains($limited::VARCHAR[], cases.instance))
        OR cases.outcome = 'failed' AND cases.status = 0 AND cases.receiving_us > 0
        AND cases.flow_server_last_data_time_us > cases.end_us)
 ORDER BY flows.observer, flows.id;
