-- What stands at the proxy, of each request that has a line in its access log. Where that leaves open what became of
-- the last try, the try's connection tells.
CREATE TABLE proxied AS
SELECT request_links.instance, request_links.id,
       lines.instance AS line_instance, lines.line AS line_line, lines.time_ms AS line_time_ms,
       lines.connection AS line_connection, lines.connection_requests AS line_connection_requests,
       lines.request_time AS line_request_time, lines.status AS line_status, lines.gave_up AS line_gave_up,
       lines.upstream_addr = '' AND NOT coalesce(lines.guessed, false) AS line_tried_none,
       lines.guessed AS line_guessed,
       last_tries.try AS try_try, last_tries.tries AS try_tries, last_tries.server AS try_server,
       coalesce(last_tries.status, if(last_tries.guessed AND ups.established, lines.status, NULL)) AS try_status,
       coalesce(last_tries.connect_us,
                if(last_tries.guessed AND ups.established AND ups.first_time_us >= last_tries.start_us - $slack_us,
                   greatest(ups.answered_us - last_tries.start_us, 0), NULL)) AS try_connect_us,
       last_tries.header_us AS try_header_us, last_tries.response_us AS try_response_us,
       last_tries.start_us AS try_start_us, last_tries.names_dial AS try_names_dial, last_tries.dial AS try_dial,
       last_tries.reused AS try_reused,
       last_tries.connect_us IS NULL AND NOT last_tries.guessed AND coalesce(ups.established, last_tries.securing)
           AS try_securing,
       dials_in_doubt.possible AS doubt_possible, dials_in_doubt.silent AS doubt_silent,
       try_dials.error_kind AS try_dial_error_kind,
       first_tries.server AS first_server, first_tries.status AS first_status, first_tries.start_us AS first_start_us,
       try_links.how AS up_how,
       ups.observer AS up_observer, ups.id AS up_id, ups.to_instance AS up_to_instance,
       ups.client_address AS up_client_address, ups.client_port AS up_client_port,
       ups.first_time_us AS up_first_time_us, ups.last_time_us AS up_last_time_us, ups.syn_count AS up_syn_count,
       ups.syn_times_us AS up_syn_times_us, ups.answered AS up_answered, ups.answered_us AS up_answered_us,
       ups.established AS up_established, ups.refused AS up_refused, ups.syns_lost AS up_syns_lost,
       ups.queued_us AS up_queued_us, ups.handshake_ack_time_us AS up_handshake_ack_time_us,
       ups.ack_dropped_min AS up_ack_dropped_min, ups.entered AS up_entered, ups.aborted AS up_aborted,
       ups.perhaps_unknown AS up_perhaps_unknown, ups.client_first_data_time_us AS up_client_first_data_time_us,
       ups.client_last_data_time_us AS up_client_last_data_time_us,
       ups.server_first_data_time_us AS up_server_first_data_time_us,
       ups.server_last_data_time_us AS up_server_last_data_time_us,
       ups.server_retransmissions AS up_server_retransmissions,
       ups.client_fin_time_us AS up_client_fin_time_us, ups.server_fin_time_us AS up_server_fin_time_us,
       ups.first_rst_by AS up_first_rst_by, ups.first_rst_time_us AS up_first_rst_time_us,
       ups.closed_by AS up_closed_by, ups.close_kind AS up_close_kind,
       up_tls.client_hello_time_us AS up_client_hello_time_us, up_tls.server_hello_time_us AS up_server_hello_time_us,
       up_tls.client_reply_time_us AS up_client_reply_time_us, up_tls.tls_end_time_us AS up_tls_end_time_us,
       up_accepted.accepted_after_us AS up_accepted_after_us, up_accepted.accepted_before_us AS up_accepted_before_us,
       up_ahead.ahead AS up_ahead, up_ahead.ahead_in_vain AS up_ahead_in_vain,
       up_proof.syns_overflowed AS up_syns_overflowed, up_proof.syns_syn_queue_full AS up_syns_syn_queue_full,
       up_proof.syns_not_dropped AS up_syns_not_dropped, up_proof.syns_unsampled AS up_syns_unsampled,
       up_proof.depth_min AS up_depth_min, up_proof.depth_max AS up_depth_max,
       up_proof.queue_limit AS up_queue_limit, up_proof.queues AS up_queues, up_proof.queue AS up_queue
  FROM request_links
       JOIN access AS lines
            ON lines.instance = request_links.access_instance AND lines.line = request_links.line
       LEFT JOIN tries AS last_tries
            ON last_tries.instance = lines.instance AND last_tries.line = lines.line
           AND last_tries.try = last_tries.tries
       LEFT JOIN tries AS first_tries
            ON first_tries.instance = lines.instance AND first_tries.line = lines.line AND first_tries.try = 1
       LEFT JOIN dials AS try_dials
            ON try_dials.instance = last_tries.instance AND try_dials.id = last_tries.dial
       LEFT JOIN try_links
            ON try_links.instance = lines.instance AND try_links.line = lines.line
           AND try_links.try = last_tries.try
       LEFT JOIN dials_in_doubt
            ON dials_in_doubt.instance = lines.instance AND dials_in_doubt.line = lines.line
           AND dials_in_doubt.try = last_tries.try
       LEFT JOIN connections AS ups ON ups.observer = try_links.observer AND ups.id = try_links.flow
       LEFT JOIN tls_handshakes AS up_tls ON up_tls.observer = ups.observer AND up_tls.id = ups.id
       LEFT JOIN accepted AS up_accepted ON up_accepted.observer = ups.observer AND up_accepted.id = ups.id
       LEFT JOIN ahead AS up_ahead ON up_ahead.observer = ups.observer AND up_ahead.id = ups.id
       LEFT JOIN syn_drop_proof AS up_proof ON up_proof.observer = ups.observer AND up_proof.id = ups.id;
