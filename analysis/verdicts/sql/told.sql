-- The connections of a capture that are worth a sentence: those that failed, that stood still, or that waited for long;
-- of each server, outcome, cause and alerts of TLS the few that waited longest. $alerts has those of each of $stalled.
WITH ranked AS (
    SELECT ledger.*, tls.server_hello_time_us - tls.client_hello_time_us AS server_hello_us,
           tls.client_reply_time_us - tls.server_hello_time_us AS client_reply_us,
           tls.tls_end_time_us - tls.client_reply_time_us AS tls_end_us,
           greatest(coalesce(handshake_us, 0), coalesce(first_data_us, 0), coalesce(first_byte_us, 0),
                    coalesce(server_hello_us, 0), coalesce(client_reply_us, 0), coalesce(tls_end_us, 0)) AS longest_us,
           CASE WHEN outcome IN ('refused', 'never-answered', 'never-accepted', 'closed-unanswered', 'given-up',
                                 'reset', 'half-open', 'undecided') THEN 0
                WHEN list_contains($stalled, id) OR syns_lost > 0 THEN 1 ELSE 2 END AS rank,
           list_extract($alerts::VARCHAR[], list_position($stalled, id)) AS alerted
      FROM ledger LEFT JOIN tls_handshakes AS tls USING (observer, id) WHERE observer = $observer
), placed AS (
    SELECT *, row_number() OVER (alikes ORDER BY longest_us DESC, id ASC) AS place, count(*) OVER alikes AS alike,
           format(if(contains(client_address, ':'), '[{}]:{}', '{}:{}'), client_address, client_port) AS client,
           format(if(contains(server_address, ':'), '[{}]:{}', '{}:{}'), server_address, server_port) AS server,
           if(place = $alike, alike - place, 0) AS more
      FROM ranked
     WHERE outcome <> 'one-sided' AND (rank < 2 OR longest_us >= $long_us) AND NOT ends_with(to_instance, ':*')
    WINDOW alikes AS (PARTITION BY to_instance, outcome, cause, rank, alerted)
    QUALIFY place <= $alike
)
SELECT placed.* EXCLUDE (more), flows.syn_times_us, placed.more
  FROM placed LEFT JOIN flows ON flows.observer = placed.observer AND flows.id = placed.id
 ORDER BY rank ASC, longest_us DESC, placed.id ASC;
