-- What became of each connection that was alive in the window, and the cause that its packets, the listener's queue and
-- the kernel's counters prove; null where it needs none, `unexplained` where none is proved.
-- A server that accepts a connection after its client has left may still answer it: the client had given up.
-- A client's next SYN comes no later than after twice its last pause, and after 1 s at first, plus a tenth for a late
-- timer. When that time has passed within the capture, the client had given up. Of a capture that somebody else made,
-- nobody knows the end (not ends): there, SYNs that were sent again and got no answer were never answered in it.
-- A client that went on was answered: where the capture lacks the answer, it has one side's packets alone.
-- A scan, one client that knocks at a hundred ports of a host (`:*`), waits for no answer: its SYNs need no cause.
-- A connection whose client's last data the server answered had nothing under way: a RST, of either side, only closes
-- it. Whether an answer was whole, no packet tells, be it ended by RST or by FIN: the client's records do.
-- A client that left had waited until then (left_us). The cause is its longest proven wait, if proven waits cover half
-- of the time from its first SYN: for an answer to a SYN, for the ACK or data that found room in the accept queue, in
-- this queue, and for the program, which had the connection and the request.
CREATE TABLE ledger AS
WITH facts AS (
    SELECT connections.*, spans.end_us AS until_us, spans.ends,
           ends_with(to_instance, ':*') AS scanned, accepted.accepted_after_us, accepted.accepted_before_us,
           proof.syns_overflowed, proof.syns_syn_queue_full, proof.syns_not_dropped, proof.syns_unsampled,
           proof.depth_max, proof.queue_limit, before_socket.synacks_again, before_socket.cookies_sent,
           syn_times_us[len(syn_times_us)] AS last_syn_us,
           least(client_fin_time_us, CASE WHEN first_rst_by = 'client' THEN first_rst_time_us END) AS left_us,
           coalesce(server_first_data_time_us > left_us, false) AS too_late,
           CASE WHEN len(syn_times_us) > 1 THEN syn_times_us[len(syn_times_us)] - syn_times_us[len(syn_times_us) - 1]
                ELSE 0 END AS last_pause_us
      FROM connections
           JOIN spans ON spans.observer = connections.observer
           LEFT JOIN syn_drop_proof AS proof ON proof.observer = connections.observer AND proof.id = connections.id
           LEFT JOIN before_socket
                ON before_socket.observer = connections.observer AND before_socket.id = connections.id
           LEFT JOIN accepted ON accepted.observer = connections.observer AND accepted.id = connections.id
     WHERE first_time_us <= $end_us AND last_time_us >= $start_us
), judged AS (
    SELECT *,
           CASE WHEN synack_count > 0 AND client_packets = 0 AND syn_count = 0 THEN 'one-sided'
                WHEN truncated_start OR client_inferred THEN 'earlier'
                WHEN refused THEN 'refused'
                WHEN NOT answered AND established THEN 'one-sided'
                WHEN NOT answered AND until_us >= last_syn_us + 1.1 * greatest(1000000, 2 * last_pause_us)
                    OR NOT answered AND NOT ends AND syn_count > 1
                    THEN 'never-answered'
                WHEN NOT answered THEN 'undecided'
                WHEN NOT established AND first_rst_by = 'client' THEN 'given-up'
                WHEN NOT established AND ends AND until_us < answered_us + 1000000 THEN 'undecided'
                WHEN NOT established THEN 'half-open'
                WHEN NOT entered AND NOT nothing_came THEN 'never-accepted'
                WHEN handshakes_only AND close_kind = 'rst' AND closed_by = 'server' THEN 'reset'
                WHEN handshakes_only THEN 'connected'
                WHEN too_late THEN 'given-up'
                WHEN close_kind = 'rst' AND closed_by = 'server' AND server_first_data_time_us IS NULL THEN 'reset'
                WHEN close_kind = 'rst' AND server_last_data_time_us < client_last_data_time_us THEN 'reset'
                WHEN server_first_data_time_us IS NOT NULL THEN 'answered'
                WHEN client_first_data_time_us IS NULL AND syns_lost > 0 AND closed_by = 'client' THEN 'given-up'
                WHEN client_first_data_time_us IS NULL THEN 'idle'
                WHEN closed_by = 'server' THEN 'closed-unanswered'
                WHEN closed_by = 'client' THEN 'given-up'
                ELSE 'waiting' END AS plain
      FROM facts
), waits AS (
    SELECT *,
           CASE WHEN syns_lost > 0 AND syns_overflowed + syns_syn_queue_full = syns_lost THEN 'waited-for-syn-retry'
                WHEN syns_lost > 0 AND syns_not_dropped = syns_lost THEN 'syn-lost' END AS syn_retry,
           if(syn_retry IS NULL, 0, least(answered_us, left_us) - first_time_us) AS syn_us,
           if(ack_dropped_min > 0, least(queued_us, left_us) - handshake_ack_time_us, 0) AS ack_us,
           if(accepted_after_us IS NULL, 0, greatest(least(accepted_after_us, left_us) - queued_us, 0)) AS queue_us,
           if(accepted_before_us IS NULL OR client_first_data_time_us IS NULL, 0,
              greatest(left_us - greatest(accepted_before_us, client_last_data_time_us), 0)) AS server_us,
           greatest(syn_us, ack_us, queue_us, server_us) AS wait_max_us,
           2 * (syn_us + coalesce(ack_us, 0) + queue_us + server_us) >= left_us - first_time_us AS proven
      FROM judged
)
SELECT observer, id, $direction AS direction, to_instance, client_address, client_port, server_address, server_port,
       client_isn,
       if(plain IN ('answered', 'connected', 'idle', 'waiting') AND syns_lost > 0, 'recovered', plain) AS outcome,
       CASE WHEN scanned THEN NULL
            WHEN plain = 'refused' THEN 'connection-refused'
            WHEN plain = 'never-answered' AND syns_overflowed = syns_lost THEN 'accept-queue-drop'
            WHEN plain = 'never-answered' AND syns_syn_queue_full = syns_lost THEN 'syn-queue-drop'
            WHEN plain = 'never-answered' AND syns_not_dropped = syns_lost AND synacks_again = 0 AND cookies_sent = 0
                THEN 'dropped-before-socket'
            WHEN plain = 'never-answered' AND syns_not_dropped = syns_lost THEN 'connect-timeout'
            WHEN plain = 'never-accepted' AND aborted THEN 'accept-queue-reset'
            WHEN plain = 'never-accepted' AND ack_dropped_min > 0 THEN 'accept-queue-drop'
            WHEN plain = 'reset' AND closed_by = 'server' AND NOT handshakes_only THEN 'reset-by-peer'
            WHEN plain = 'closed-unanswered' THEN 'closed-without-answer'
            WHEN plain = 'given-up' AND ack_dropped_min > 0 AND coalesce(queued_us >= left_us, true)
                THEN 'accept-queue-drop'
            WHEN plain = 'given-up' AND proven AND wait_max_us > 0
                THEN CASE wait_max_us WHEN queue_us THEN 'waited-in-accept-queue'
                                      WHEN ack_us THEN 'waited-for-ack-retry'
                                      WHEN syn_us THEN syn_retry ELSE 'time-in-server' END
            WHEN plain IN ('never-answered', 'never-accepted', 'given-up', 'reset', 'half-open') THEN 'unexplained'
            WHEN plain <> 'earlier' AND plain <> 'one-sided' THEN syn_retry
       END AS cause,
       first_time_us, last_time_us, syn_count, syns_lost, answered_us, handshake_us, queued_us,
       accepted_before_us - queued_us AS in_queue_us,
       server_first_data_time_us - client_first_data_time_us AS first_byte_us,
       least(client_first_data_time_us, server_first_data_time_us) - handshake_ack_time_us AS first_data_us,
       client_first_data_time_us <= coalesce(server_first_data_time_us, client_first_data_time_us) AS client_begins,
       synack_count, client_rst_count, server_rst_count, client_packets, server_packets,
       client_unique_bytes, server_unique_bytes, client_retransmissions, server_retransmissions,
       closed_by, close_kind, time_wait_owner, depth_max, queue_limit,
       first_time_us BETWEEN $start_us AND $end_us AS in_window
  FROM waits
 ORDER BY observer, id;
