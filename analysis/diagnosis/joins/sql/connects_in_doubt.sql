-- Tries that were connected so late that a SYN was sent again, and are still without a connection: each connection of
-- no other try that may be theirs: when the try was connected, the server had answered it, and not long ago; over TLS,
-- the handshake was not long over. Its first SYN came to the capture when the try began, or a retransmission's timeout
-- later, because the capture at the server lacks what got lost before.
CREATE TABLE connects_in_doubt AS
SELECT tries.instance, tries.line, tries.try, unclaimed.observer, unclaimed.id AS flow, unclaimed.first_time_us
  FROM (FROM tries ANTI JOIN try_links USING (instance, line, try)) AS tries
       JOIN (SELECT connections.*, coalesce(tls_end_time_us, answered_us) AS ready_us
               FROM connections
                    ANTI JOIN try_links
                         ON try_links.observer = connections.observer AND try_links.flow = connections.id
                    LEFT JOIN tls_handshakes
                         ON tls_handshakes.observer = connections.observer AND tls_handshakes.id = connections.id)
            AS unclaimed
            ON unclaimed.from_instance = tries.instance AND unclaimed.server_address = tries.server_address
           AND unclaimed.server_port = tries.server_port
           AND tries.start_us + tries.connect_us BETWEEN unclaimed.answered_us - $slack_us
                                                     AND unclaimed.ready_us + $turn_us
           AND unclaimed.first_time_us NOT BETWEEN tries.start_us + $turn_us AND tries.start_us + $timeout_us
 WHERE connect_us >= $timeout_us AND NOT coalesce(reused, false)
 ORDER BY ALL;
