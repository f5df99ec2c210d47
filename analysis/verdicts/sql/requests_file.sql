-- requests.parquet: each request with its connections, its cause, and where its time went.
SELECT cases.instance, cases.id, vu, iteration, scenario, name, "group", method, url, status, error_code, error,
       time_us, end_us, total_us, blocked_us, connecting_us, tls_us, sending_us, waiting_us, receiving_us, duration_us,
       reused, outcome, cause, evidence,
       dial, dial_time_us, dial_duration_us, dial_local, dial_remote, dial_error_kind,
       flow_observer, flow_id, flow_how, flow_syn_count, flow_syns_lost, flow_queued_us, flow_accepted_after_us,
       flow_accepted_before_us,
       line_instance AS access_instance, line_line AS access_line, line_status AS access_status,
       behind_to_instance AS behind, behind_observer, behind_id, behind_held, behind_ports,
       try_tries AS tries, try_server, try_status, up_observer, up_id, up_how, up_syn_count, up_syns_lost,
       pool_us, syn_us, lost_us, data_us, ack_wait_us, ack_us, queue_us, up_pool_us, up_syn_us, up_lost_us, up_data_us,
       up_ack_wait_us, up_ack_us, up_queue_us, thread_us, server_us, handler_us, lag_us, retry_us, pause_us,
       throttled_us, starved_us
  FROM cases
       LEFT JOIN attributed USING (instance, id)
       LEFT JOIN waits USING (instance, id)
       LEFT JOIN behind USING (instance, id)
 ORDER BY cases.instance, cases.id;
