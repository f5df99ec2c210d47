-- The connections of slow requests on which data may have got lost: the capture shows some again, or the kernel of the
-- side that asks sent data again that no capture has.
SELECT DISTINCT flows.observer, flows.id, flows.to_instance, flows.client_address, flows.client_port,
       flows.server_address, flows.server_port, flows.first_time_us, flows.last_time_us,
       flows.client_packets + flows.server_packets AS packets
  FROM cases
       JOIN connections AS flows
            ON (flows.observer = cases.flow_observer AND flows.id = cases.flow_id)
            OR (flows.observer = cases.up_observer AND flows.id = cases.up_id)
 WHERE cases.outcome = 'slow' AND coalesce(cases.protocol, '') NOT IN ('http2', 'grpc', 'websocket')
   AND (flows.client_retransmissions + flows.server_retransmissions > 0
        OR list_contains($again::VARCHAR[], flows.from_instance))
 ORDER BY flows.observer, flows.id;
