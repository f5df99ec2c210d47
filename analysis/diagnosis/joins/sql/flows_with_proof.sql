-- Each connection with all that the account of a request asks of it: its handshakes, when it was accepted, who stood
-- before it in the queue, what its lost SYNs prove, and what the server's kernel counted where none was answered.
CREATE VIEW flows_with_proof AS
SELECT connections.observer, connections.id, to_instance, first_time_us, last_time_us, syn_count, syn_times_us,
       answered, answered_us, established, refused, syns_lost, queued_us, handshake_ack_time_us, ack_dropped_min,
       entered, aborted, perhaps_unknown, client_first_data_time_us, client_last_data_time_us,
       server_first_data_time_us, server_last_data_time_us, server_retransmissions, client_fin_time_us,
       server_fin_time_us, first_rst_by, first_rst_time_us, closed_by, close_kind, client_hello_time_us,
       server_hello_time_us, client_reply_time_us, tls_end_time_us, accepted_after_us, accepted_before_us, ahead,
       ahead_in_vain, syns_overflowed, syns_syn_queue_full, syns_not_dropped, syns_unsampled, depth_min, depth_max,
       queue_limit, queues, queue, synacks_again, cookies_sent, untracked, tracked, tracked_max
  FROM connections
       LEFT JOIN tls_handshakes USING (observer, id)
       LEFT JOIN accepted USING (observer, id)
       LEFT JOIN ahead USING (observer, id)
       LEFT JOIN syn_drop_proof USING (observer, id)
       LEFT JOIN before_socket USING (observer, id);
