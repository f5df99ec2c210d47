-- The connections to each server of a hop, by its capture: those of the hop's client, and those of others that are not
-- on the path (from_instance is null), who take places in the same queue.
-- answered_us: the first answer to a SYN. A SYN that it answers is the last one before it; all earlier ones were lost,
-- but for one that came upon the former connection of the same ports, still in TIME_WAIT, where nothing listens: the
-- server answered with an ACK of that, the client with its RST, and then with the SYN once more (challenged_us).
-- A capture of handshakes alone lacks the ACK that completes one, so there a SYN-ACK has to stand for it.
-- queued_us: when the server's kernel put the connection into the accept queue: with the handshake's last ACK, unless
-- that met a full queue (.admissions), or with its first data or FIN, if the socket waits for that (TCP_DEFER_ACCEPT).
-- A server that closed it before had it: its socket did not wait then.
-- entered: whether it ever did. aborted: it met a RST for that.
-- nothing_came: what makes a connection. The client answered the SYN-ACK with a RST, as a health check that only
-- connects does, or sent nothing to a socket that waits for it.
-- queued_late: whether that was after the window, whose counters do not have it. dropped_late: how many of its packets
-- were surely dropped after the window.
-- gave_up_us: when the client, which had asked, ended the connection before the server sent any data. A client that
-- only ended its own side resets nothing when the answer comes. What passes after a handshake of TLS, or over HTTP/2,
-- begins with data of the server's own.
-- perhaps_unknown: the server sent nothing but a RST, and its kernel answered SYNs with cookies. Such a connection
-- leaves no trace at the server until an ACK of it finds room in the accept queue, so it may never have been there.
CREATE TABLE arriving_flows AS
WITH formers AS (
    SELECT observer AS former_observer, id AS former_id, first_rst_time_us AS former_rst_us
      FROM flows WHERE first_rst_by = 'client'
), asked AS (
    SELECT DISTINCT to_instance, server_port FROM flows WHERE from_instance IS NOT NULL
), candidates AS (
    SELECT hops.hop, flows.*,
           established OR (handshakes_only AND answered) AS stood,
           NOT answered AND coalesce(first_rst_by = 'server', false) AS refused,
           CASE WHEN answered THEN synack_times_us[1]
                WHEN first_rst_by = 'server' THEN first_rst_time_us END AS answered_us,
           CASE WHEN former_rst_us > first_time_us
                THEN list_last(list_filter(syn_times_us, lambda time: time < former_rst_us)) END AS challenged_us,
           coalesce(deferred, false) AND synack_count = 1 AND NOT handshakes_only
               AND coalesce(server_fin_time_us IS NULL
                            OR server_fin_time_us >= least(client_first_data_time_us, client_fin_time_us), false)
               AS defers,
           CASE WHEN defers THEN least(client_first_data_time_us, client_fin_time_us, server_first_data_time_us)
                ELSE coalesce(handshake_ack_time_us, synack_times_us[1]) END AS made_us,
           coalesce((defers AND made_us IS NULL)
                    OR NOT handshakes_only AND first_rst_by = 'client' AND handshake_ack_time_us IS NULL
                    AND client_first_data_time_us IS NULL, false) AS nothing_came,
           admissions.id IS NOT NULL AS examined, entered_us, coalesce(ack_dropped_us, []) AS ack_dropped_us,
           coalesce(ack_dropped_max, 0) AS ack_dropped_max, coalesce(aborted, false) AS aborted,
           sent_cookies
      FROM flows JOIN hops ON hops.observer = flows.observer
           JOIN instances AS servers ON servers.instance = to_instance AND servers.role = hops.server
           JOIN asked USING (to_instance, server_port)
           LEFT JOIN instances AS clients ON clients.instance = from_instance
           LEFT JOIN admissions ON admissions.observer = flows.observer AND admissions.id = flows.id
           LEFT JOIN counted ON counted.instance = to_instance
           LEFT JOIN formers ON former_observer = flows.observer AND former_id = reused_port_of
     WHERE clients.role = hops.client OR from_instance IS NULL AND client_address <> server_address
), lost AS (
    SELECT *, CASE WHEN answered_us IS NULL THEN syn_count
                   ELSE greatest(len(list_filter(syn_times_us, lambda time: time < answered_us)) - 1, 0)
              END AS unanswered,
           CASE WHEN answered_us IS NULL THEN syn_times_us
                ELSE list_filter(syn_times_us, lambda time: time < answered_us)[1:-2] END AS unanswered_us
      FROM candidates
)
SELECT * EXCLUDE (established, defers, made_us, examined, entered_us, unanswered, unanswered_us, challenged_us,
                  ack_dropped_us, sent_cookies),
       stood AS established,
       stood AND NOT nothing_came AND (NOT examined OR entered_us IS NOT NULL) AS entered,
       coalesce(stood AND (NOT examined OR entered_us IS NOT NULL) AND server_first_data_time_us IS NULL
                AND first_rst_by = 'server' AND sent_cookies, false) AS perhaps_unknown,
       first_time_us BETWEEN $start_us AND $end_us AS in_window,
       unanswered - if(list_contains(unanswered_us, challenged_us), 1, 0) AS syns_lost,
       list_filter(unanswered_us, lambda time: time IS DISTINCT FROM challenged_us) AS syns_lost_us,
       len(ack_dropped_us) AS ack_dropped_min,
       len(list_filter(list_concat(syns_lost_us, ack_dropped_us), lambda time: time > $end_us)) AS dropped_late,
       CASE WHEN examined THEN entered_us
            WHEN stood AND NOT nothing_came THEN made_us END AS queued_us,
       coalesce(queued_us > $end_us, false) AS queued_late,
       CASE WHEN first_rst_by = 'client' THEN least(client_fin_time_us, first_rst_time_us)
            ELSE client_fin_time_us END AS client_end_us,
       CASE WHEN client_first_data_time_us <= client_end_us AND coalesce(server_fin_time_us > client_end_us, true)
                 AND NOT coalesce(first_rst_by = 'server' AND first_rst_time_us < client_end_us, false)
                 AND (server_first_data_time_us IS NULL
                      OR (server_first_data_time_us > client_end_us AND first_rst_by = 'client'))
            THEN client_end_us END AS gave_up_us
  FROM lost
 ORDER BY observer, id;
