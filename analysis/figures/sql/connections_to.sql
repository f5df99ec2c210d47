-- What became of the connections to a server that began in the window, by the figures' names.
-- Two processors may each make a connection, and one throws its own away (tcp_v4_syn_recv_sock, own_req): these are
-- `made_at_once`.
SELECT count(*) AS total,
       count(*) FILTER (established) AS established,
       count(*) FILTER (refused) AS refused,
       count(*) FILTER (NOT answered AND NOT refused) AS unanswered,
       count(*) FILTER (answered AND NOT established) AS half_open,
       count(*) FILTER (established AND syns_lost > 0) AS recovered,
       coalesce(sum(syn_count), 0)::BIGINT AS syns,
       coalesce(sum(syns_lost), 0)::BIGINT AS syn_unanswered,
       coalesce(sum(syns_lost) FILTER (answered_us IS NOT NULL), 0)::BIGINT AS syn_recovered,
       coalesce(sum(syns_lost) FILTER (answered_us IS NULL), 0)::BIGINT AS syn_failed,
       coalesce(sum(syn_retransmissions), 0)::BIGINT AS syn_retransmissions,
       coalesce(sum(synack_count - 1) FILTER (synack_count > 0), 0)::BIGINT AS synack_retransmissions,
       count(*) FILTER (entered AND NOT queued_late) AS entered,
       count(*) FILTER (CASE WHEN entered THEN queued_late
                             ELSE established AND NOT aborted AND close_kind = 'none' END) AS perhaps_entered,
       count(*) FILTER (client_first_data_time_us - handshake_ack_time_us < 50) AS made_at_once,
       count(*) FILTER (perhaps_unknown AND NOT queued_late) AS perhaps_unknown,
       coalesce(sum(ack_dropped_min), 0)::BIGINT AS ack_dropped_min,
       coalesce(sum(ack_dropped_max), 0)::BIGINT AS ack_dropped_max,
       count(*) FILTER (entered AND gave_up_us IS NOT NULL) AS in_vain,
       coalesce(sum(dropped_late), 0)::BIGINT AS dropped_late,
       count(*) FILTER (closed_by = 'client') AS closed_by_client,
       count(*) FILTER (closed_by = 'server') AS closed_by_server,
       count(*) FILTER (first_rst_by = 'client') AS reset_by_client,
       count(*) FILTER (first_rst_by = 'server') AS reset_by_server,
       coalesce(sum(client_retransmissions + server_retransmissions), 0)::BIGINT AS retransmissions,
       count(*) FILTER (reused_port_of IS NOT NULL) AS port_reuses
  FROM connections WHERE in_window AND to_instance = $instance;
