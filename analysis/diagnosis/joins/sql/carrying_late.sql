-- The connections of requests whose data may have been late: those of slow ones, or of ones that failed without an
-- answer, on which the capture shows data again, or whose sender's kernel sent data again that no capture has; and
-- those of slow ones that did not take longer than twice a delayed acknowledgement.
SELECT DISTINCT flows.observer, flows.id, flows.to_instance, flows.client_address, flows.client_port,
       flows.server_address, flows.server_port, flows.first_time_us, flows.last_time_us,
       flows.client_packets + flows.server_packets AS packets
  FROM cases
       JOIN connections AS flows
            ON (flows.observer = cases.flow_observer AND flows.id = cases.flow_id)
            OR (flows.observer = cases.up_observer AND flows.id = cases.up_id)
 WHERE (cases.outcome = 'slow' OR (cases.outcome = 'failed' AND cases.status = 0))
   AND coalesce(cases.protocol, '') NOT IN ('http2', 'grpc', 'websocket')
   AND (flows.client_retransmissions + flows.server_retransmissions > 0
        OR list_contains($again::VARCHAR[], flows.from_instance)
        OR (cases.outcome = 'slow' AND cases.total_us <= 2 * $delayed_max_us))
 ORDER BY flows.observer, flows.id;
