-- What became of an instance's connections, by the server's end; how long their parts took, and who closed them.
SELECT to_instance AS server, direction, count(*) AS connections,
       coalesce(sum(syns_lost), 0)::BIGINT AS syns_lost,
       coalesce(sum(client_retransmissions), 0)::BIGINT AS client_retransmissions,
       coalesce(sum(server_retransmissions), 0)::BIGINT AS server_retransmissions,
       histogram(outcome) AS outcomes, coalesce(histogram(cause), map()) AS causes,
       struct_pack(count := count(handshake_us), p50 := quantile_cont(handshake_us, 0.5),
                   p99 := quantile_cont(handshake_us, 0.99), max := max(handshake_us)) AS handshake_us,
       struct_pack(count := count(first_data_us), p50 := quantile_cont(first_data_us, 0.5),
                   p99 := quantile_cont(first_data_us, 0.99), max := max(first_data_us)) AS first_data_us,
       struct_pack(count := count(first_byte_us), p50 := quantile_cont(first_byte_us, 0.5),
                   p99 := quantile_cont(first_byte_us, 0.99), max := max(first_byte_us)) AS first_byte_us,
       struct_pack(count := count(in_queue_us), p50 := quantile_cont(in_queue_us, 0.5),
                   p99 := quantile_cont(in_queue_us, 0.99), max := max(in_queue_us)) AS in_queue_us,
       histogram(coalesce(closed_by, 'nobody')) AS first_to_close,
       histogram(coalesce(time_wait_owner, 'unknown')) AS time_wait
  FROM ledger WHERE observer = $instance GROUP BY ALL ORDER BY direction, server;
