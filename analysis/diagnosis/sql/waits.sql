-- A part that is not proven is NULL while it is worked out, and 0 at the end.
-- - pool: it waited for a connection that was there already; at the proxy, too (up_pool).
-- - stream: the same over HTTP/2 and by gRPC: it waited for a stream of a connection that was there before it.
-- - goaway, refused: over HTTP/2 it was sent in vain before, and sent again when the server had sent it back. What its
--   second connection cost is a part of that; its wait before, for a stream or a new connection, is one of its own.
-- - syn: from the first SYN to the first answer, of a connection made for it, if the server's kernel counted a drop at
--   a full queue around each lost SYN.
-- - lost: the same, if nothing was dropped there: the SYNs, or the answers to them, got lost on the way. A SYN that
--   never came to the server is in no capture of the server's; then the client's kernel sent SYNs again that nobody
--   captured, and the first one that came did so a retransmission timeout after the dial, or the proxy's try, began.
-- - data: for data of the request or the answer that got lost on the way; at the proxy's connection, too (up_data).
--   It is no part of the server's time, or of the answer's way.
-- - ack_wait: the same, of data that its sender's kernel held back until the other side acknowledged what came before.
-- - ack: from the handshake's last ACK, which met a full accept queue, until the connection was made.
-- - queue: in the accept queue; that is surely over at the last tick that still saw it there.
-- - tls_wait: in the TLS handshake of a connection made for it, without the accept queue, lost packets and pauses. The
--   client recorded it; of a proxy's connection (up_tls_wait) its packets tell.
-- - thread: all of the server's threads were busy, or one of its event loops, in every reading while it was with the
--   server, but for the time of an average request at the end, when the handler worked on it; from the first of these
--   on, or from its coming if they were busy before. Where no reading came meanwhile, in the one before and the one
--   after it. Right after its coming a reading counts as one before: a burst takes the threads one after the other.
--   The average is of those that ended after the next reading, if any did: others may have been quick ones before it.
-- - handler: there were threads in every reading before, meanwhile and after, nobody waited to be accepted, and the
--   server's own account of its work agrees. Where no reading came meanwhile, waves of requests may have come and gone
--   unseen: then it is no more than an average request took.
-- - server: with a server that tells nothing of its threads, from when it surely had connection and request. unread is
--   the same without the handler's part, where no reading of the threads came meanwhile. It is no part of the proven
--   time: it explains a request that these do not.
-- - lag: the answer was on its way.
-- - retry: the proxy had tried other servers, or other connections, before.
-- - throttled, starved: a processor limit held a server, or the client; less what it took until the server had the
--   connection.
-- - pause: the lab had paused a server that had the connection already; who waited to be accepted then, waited there.
--   The server's own account of its work runs on meanwhile; the pause is neither its handler's nor its threads'.
CREATE TABLE waits AS
WITH late AS (
    SELECT served.instance, served.id,
           sum(until_us - data_waits.from_us) FILTER (NOT up AND NOT held)::BIGINT AS data_us,
           sum(until_us - data_waits.from_us) FILTER (up AND NOT held)::BIGINT AS up_data_us,
           sum(until_us - data_waits.from_us) FILTER (NOT up AND held)::BIGINT AS ack_wait_us,
           sum(until_us - data_waits.from_us) FILTER (up AND held)::BIGINT AS up_ack_wait_us,
           min(data_waits.from_us) AS data_from_us, max(until_us) AS data_until_us, bool_or(asks) AS data_asks,
           sum(greatest(least(until_us, to_us) - greatest(data_waits.from_us, served.from_us), 0))::BIGINT
               AS in_service_us,
           sum(greatest(least(until_us, to_us) - greatest(data_waits.from_us, taken_us), 0))::BIGINT AS in_had_us,
           sum(greatest(until_us - greatest(data_waits.from_us, left_us), 0))::BIGINT AS in_lag_us
      FROM served JOIN data_waits USING (instance, id)
     GROUP BY ALL
), measured AS (
    SELECT served.instance, served.id, served.server, served.left_us,
           late.* EXCLUDE (instance, id),
           if(acted.paused = served.server, acted.overlap_us, 0)
               + if(acted.throttled_server = served.server, greatest(acted.throttled_us, 0), 0) AS held_us,
           served.to_us - served.from_us - held_us - coalesce(late.in_service_us, 0) AS service_us,
           served.to_us - served.taken_us - held_us - coalesce(late.in_had_us, 0) AS had_us,
           CASE WHEN list_contains($silent::VARCHAR[], served.server) THEN had_us END AS server_us, served.taken_us,
           acceptance_known OR queue_last.ticks = queue_first.ticks AS accepted_at_once,
           last.scrapes - first.scrapes AS scrapes, last.saturated - first.saturated AS saturated,
           settled.scrapes AS scrapes_before, settled.saturated AS saturated_till,
           settled.is_saturated AS saturated_since, first.is_saturated AS saturated_before,
           next.is_saturated AS saturated_after, last.threads_max,
           next.holes = first.holes AS without_hole,
           greatest(if(settled.is_saturated, settled.time_us, following.time_us) - served.from_us, 0) AS free_us,
           1000 * (next.processing_ms - first.processing_ms) AS processing_us,
           coalesce(1000 * (next.processing_ms - following.processing_ms)
                    // nullif(greatest(next.requests - following.requests, 0), 0),
                    processing_us // nullif(greatest(next.requests - first.requests, 0), 0)) AS average_us,
           served.to_us - average_us AS begun_us
      FROM (SELECT *, from_us + least($settling_us, (to_us - from_us) // 2) AS settled_us FROM served) AS served
           LEFT JOIN acted USING (instance, id)
           LEFT JOIN late USING (instance, id)
           ASOF LEFT JOIN scraped AS first ON first.instance = served.server AND first.time_us <= served.from_us
           ASOF LEFT JOIN scraped AS settled
                ON settled.instance = served.server
               AND settled.time_us <= served.settled_us
           ASOF LEFT JOIN scraped AS following
                ON following.instance = served.server
               AND following.time_us > served.settled_us
           ASOF LEFT JOIN scraped AS last ON last.instance = served.server AND last.time_us <= served.to_us
           ASOF LEFT JOIN scraped AS next ON next.instance = served.server AND next.time_us >= served.to_us
           ASOF LEFT JOIN queued_ticks AS queue_first
                ON queue_first.instance = served.server AND queue_first.time_us <= served.from_us
           ASOF LEFT JOIN queued_ticks AS queue_last
                ON queue_last.instance = served.server AND queue_last.time_us <= served.to_us
), readings AS (
    SELECT measured.*, waiting.scrapes - scrapes_before AS scrapes_waiting,
           waiting.saturated - saturated_till = scrapes_waiting
           AND (scrapes_waiting > 0 OR saturated_since AND begun.is_saturated) AS waited
      FROM measured
           ASOF LEFT JOIN scraped AS waiting ON waiting.instance = measured.server AND waiting.time_us <= begun_us
           ASOF LEFT JOIN scraped AS begun ON begun.instance = measured.server AND begun.time_us >= begun_us
), again AS (
    SELECT resent.instance, resent.id, resent.first_dial, resent.why, resent.again_us,
           dials.time_us + dials.duration_us AS first_opened_us, connections.queued_us, accepted.accepted_after_us
      FROM resent
           LEFT JOIN dials ON dials.instance = resent.instance AND dials.id = resent.first_dial
           LEFT JOIN dial_links ON dial_links.instance = dials.instance AND dial_links.dial = dials.id
           LEFT JOIN connections ON connections.observer = dial_links.observer AND connections.id = dial_links.flow
           LEFT JOIN accepted ON accepted.observer = connections.observer AND accepted.id = connections.id
     WHERE resent.why IS NOT NULL
), parts AS (
    SELECT instance, id, readings.* EXCLUDE (instance, id),
           again.why IS NOT NULL AS was_again,
           least(again.first_opened_us, dial_time_us + dial_duration_us) AS opened_us,
           NOT reused AND NOT was_again AS dialed,
           coalesce(protocol IN ('http2', 'grpc') AND opened_us <= time_us, false) AS had_one,
           if(had_one, NULL, again.first_dial) AS waited_dial,
           CASE WHEN sent_again > 0 AND coalesce(protocol, '') NOT IN ('http2', 'grpc')
                THEN cases.again_us END AS unanswered_us,
           blocked_us - coalesce(again.again_us, unanswered_us, 0) AS unsent_us,
           CASE WHEN reused AND coalesce(protocol, '') <> 'http2' AND NOT had_one THEN unsent_us END AS pool_us,
           CASE WHEN (reused OR was_again) AND had_one THEN unsent_us END AS stream_us,
           CASE WHEN again.why = 'goaway' THEN again.again_us END AS goaway_us,
           CASE WHEN again.why = 'refused' THEN again.again_us END AS refused_us,
           CASE WHEN try_reused THEN try_connect_us END AS up_pool_us,
           CASE WHEN dialed AND flow_syns_lost > 0 AND flow_answered_us IS NOT NULL
                 AND flow_syns_overflowed + flow_syns_syn_queue_full = flow_syns_lost
                THEN least(flow_answered_us, end_us) - flow_first_time_us END AS syn_us,
           CASE WHEN up_syns_lost > 0 AND up_answered_us IS NOT NULL
                 AND up_syns_overflowed + up_syns_syn_queue_full = up_syns_lost
                THEN least(up_answered_us, end_us) - greatest(up_first_time_us, time_us) END AS up_syn_us,
           CASE WHEN dialed AND flow_syns_lost > 0 AND flow_answered_us IS NOT NULL
                 AND flow_syns_not_dropped = flow_syns_lost
                THEN least(flow_answered_us, end_us) - flow_first_time_us
                WHEN dialed AND coalesce(flow_syns_lost, 0) = 0 AND flow_answered_us IS NOT NULL
                 AND list_contains($unseen_syns::VARCHAR[], instance)
                 AND flow_first_time_us - dial_time_us >= $syn_timeout_us
                THEN least(flow_answered_us, end_us) - dial_time_us END AS lost_us,
           CASE WHEN up_syns_lost > 0 AND up_answered_us IS NOT NULL AND up_syns_not_dropped = up_syns_lost
                THEN least(up_answered_us, end_us) - greatest(up_first_time_us, time_us)
                WHEN NOT coalesce(try_reused, false) AND coalesce(up_syns_lost, 0) = 0
                 AND list_contains($unseen_syns::VARCHAR[], line_instance)
                 AND try_connect_us >= $syn_timeout_us
                 AND coalesce(up_first_time_us, connect_first_syn_us) - coalesce(try_dial_time_us, try_start_us)
                     >= $syn_timeout_us
                THEN least(coalesce(up_answered_us - try_dial_time_us, try_connect_us), end_us - try_start_us)
            END AS up_lost_us,
           CASE WHEN dialed AND flow_ack_dropped_min > 0
                THEN least(coalesce(flow_queued_us, end_us), end_us) - flow_handshake_ack_time_us END AS ack_us,
           CASE WHEN up_ack_dropped_min > 0
                THEN least(coalesce(up_queued_us, end_us), end_us)
                     - greatest(up_handshake_ack_time_us, time_us) END AS up_ack_us,
           CASE WHEN NOT had_one AND again.accepted_after_us IS NOT NULL
                THEN least(again.accepted_after_us, end_us) - greatest(again.queued_us, time_us)
                WHEN NOT was_again AND flow_accepted_after_us IS NOT NULL
                THEN least(flow_accepted_after_us, end_us) - greatest(flow_queued_us, time_us) END AS queue_us,
           CASE WHEN up_accepted_after_us IS NOT NULL
                THEN least(up_accepted_after_us, end_us) - greatest(up_queued_us, time_us) END AS up_queue_us,
           CASE WHEN dialed AND tls_us > 0 OR protocol = 'http2' AND opened_us > time_us
                THEN if(protocol = 'http2', unsent_us - greatest(opened_us - time_us, 0), tls_us)
                      - greatest(coalesce(queue_us, 0), 0) - greatest(coalesce(ack_us, 0), 0)
                     - coalesce(acted.overlap_us, 0) - greatest(coalesce(acted.throttled_us, 0), 0)
                     - greatest(coalesce(acted.starved_us, 0), 0)
           END AS tls_wait_us,
           CASE WHEN NOT coalesce(try_reused, false) AND up_tls_end_time_us IS NOT NULL
                THEN least(up_tls_end_time_us, end_us) - greatest(up_client_hello_time_us, time_us)
                     - greatest(coalesce(up_queue_us, 0), 0) - greatest(coalesce(up_ack_us, 0), 0)
                     - coalesce(acted.overlap_us, 0) - greatest(coalesce(acted.throttled_us, 0), 0)
           END AS up_tls_wait_us,
           CASE WHEN without_hole AND waited
                THEN service_us - free_us - average_us END AS thread_us,
           CASE WHEN without_hole AND NOT saturated_before AND saturated = 0 AND NOT saturated_after
                 AND accepted_at_once AND 2 * processing_us >= service_us
                THEN if(scrapes > 0, service_us, least(service_us, average_us)) END AS handler_us,
           CASE WHEN server_us IS NULL AND thread_us IS NULL AND scrapes = 0
                THEN had_us - coalesce(handler_us, 0) END AS unread_us,
           end_us - left_us - greatest(coalesce(acted.starved_us, 0), 0) - coalesce(in_lag_us, 0) AS lag_us,
           CASE WHEN try_tries > 1 THEN try_start_us - first_start_us END AS retry_us,
           greatest(syn_us, up_syn_us, lost_us, up_lost_us, ack_us, up_ack_us, queue_us, up_queue_us, 0)
               AS until_had_us,
           CASE WHEN until_had_us = 0 THEN acted.overlap_us END AS pause_us,
           acted.throttled_us - until_had_us AS throttled_us, acted.starved_us - until_had_us AS starved_us,
           acted.paused, acted.throttled_server, acted.throttled_says, acted.starved_says
      FROM readings JOIN cases USING (instance, id) LEFT JOIN acted USING (instance, id)
           LEFT JOIN again USING (instance, id)
)
SELECT instance, id, server, left_us, scrapes, scrapes_waiting, threads_max,
       coalesce(list_contains($loops::VARCHAR[], server), false) AS has_loops,
       CASE WHEN last_idle.start_us >= first_idle.start_us
            THEN 100.0 * (last_idle.idle_before_ms + last_idle.idle_ms - first_idle.idle_before_ms)
                 / nullif(last_idle.total_before_ms + last_idle.total_ms - first_idle.total_before_ms, 0)
        END AS idle_percent,
       greatest(COLUMNS(['pool_us', 'up_pool_us', 'stream_us', 'goaway_us', 'refused_us', 'unanswered_us', 'syn_us',
                         'up_syn_us', 'lost_us', 'up_lost_us', 'ack_us', 'up_ack_us', 'queue_us', 'up_queue_us',
                         'tls_wait_us', 'up_tls_wait_us', 'thread_us', 'server_us', 'unread_us', 'handler_us', 'lag_us',
                         'retry_us', 'pause_us', 'throttled_us', 'starved_us']), 0) AS '\0',
       coalesce(data_us, 0) AS data_us, coalesce(up_data_us, 0) AS up_data_us,
       coalesce(ack_wait_us, 0) AS ack_wait_us, coalesce(up_ack_wait_us, 0) AS up_ack_wait_us,
       data_from_us, data_until_us, data_asks, waited_dial, opened_us, taken_us, paused, throttled_server,
       throttled_says, starved_says
  FROM parts
       LEFT JOIN machines USING (instance)
       ASOF LEFT JOIN (FROM idle_spans WHERE end_us IS NOT NULL) AS first_idle
            ON first_idle.machine = machines.machine AND first_idle.end_us > parts.left_us
       ASOF LEFT JOIN (FROM idle_spans WHERE end_us IS NOT NULL) AS last_idle
            ON last_idle.machine = machines.machine AND last_idle.start_us < parts.left_us + parts.lag_us
 ORDER BY instance, id;
