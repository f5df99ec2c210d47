-- What became of an instance's connections, by the server's end; how long their parts took, and who closed them. A
-- server's first data on a connection by TLS is its ServerHello: of requests and answers its packets do not tell.
WITH secured AS (
    SELECT ledger.*, if(tls.id IS NULL, first_byte_us, NULL) AS first_answer_us,
           greatest(tls.server_hello_time_us, tls.client_reply_time_us, tls.tls_end_time_us)
               - tls.client_hello_time_us AS tls_us,
           if(handshake_us IS NULL, NULL, last_time_us - first_time_us) AS lasted_us
      FROM ledger LEFT JOIN tls_handshakes AS tls USING (observer, id)
     WHERE observer = $instance
)
SELECT to_instance AS server, direction, count(*) AS connections,
       coalesce(sum(syns_lost), 0)::BIGINT AS syns_lost,
       coalesce(sum(client_retransmissions), 0)::BIGINT AS client_retransmissions,
       coalesce(sum(server_retransmissions), 0)::BIGINT AS server_retransmissions,
       histogram(outcome) AS outcomes, coalesce(histogram(cause), map()) AS causes,
       struct_pack(count := count(handshake_us), p50 := quantile_cont(handshake_us, 0.5),
                   p99 := quantile_cont(handshake_us, 0.99), max := max(handshake_us)) AS handshake_us,
       struct_pack(count := count(first_data_us), p50 := quantile_cont(first_data_us, 0.5),
                   p99 := quantile_cont(first_data_us, 0.99), max := max(first_data_us)) AS first_data_us,
       struct_pack(count := count(tls_us), p50 := quantile_cont(tls_us, 0.5),
                   p99 := quantile_cont(tls_us, 0.99), max := max(tls_us)) AS tls_us,
       struct_pack(count := count(first_answer_us), p50 := quantile_cont(first_answer_us, 0.5),
                   p99 := quantile_cont(first_answer_us, 0.99), max := max(first_answer_us)) AS first_byte_us,
       struct_pack(count := count(in_queue_us), p50 := quantile_cont(in_queue_us, 0.5),
                   p99 := quantile_cont(in_queue_us, 0.99), max := max(in_queue_us)) AS in_queue_us,
       struct_pack(count := count(lasted_us), p50 := quantile_cont(lasted_us, 0.5),
                   p99 := quantile_cont(lasted_us, 0.99), max := max(lasted_us)) AS lasted_us,
       histogram(coalesce(closed_by, 'nobody')) AS first_to_close,
       histogram(coalesce(time_wait_owner, 'unknown')) AS time_wait
  FROM secured GROUP BY ALL ORDER BY direction, server;
