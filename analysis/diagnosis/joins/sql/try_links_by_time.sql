-- Tries that are still without a connection, by time: a try that began alone, with a connection that did. If the try
-- was connected late, so that a SYN was sent again, so was the connection. nginx counts a try as connected when its TLS
-- handshake is over.
INSERT INTO try_links
WITH open_tries AS (
    SELECT * FROM tries ANTI JOIN try_links USING (instance, line, try)
     WHERE server_port IS NOT NULL AND NOT names_dial
), unclaimed AS (
    SELECT connections.*, coalesce(tls_end_time_us, answered_us) AS ready_us,
           row_number() OVER (PARTITION BY from_instance, server_address, server_port
                              ORDER BY first_time_us, connections.observer, connections.id) AS place
      FROM connections ANTI JOIN try_links
           ON try_links.observer = connections.observer AND try_links.flow = connections.id
           LEFT JOIN tls_handshakes
                ON tls_handshakes.observer = connections.observer AND tls_handshakes.id = connections.id
), during AS (
    SELECT open_tries.*, coalesce(before.place, 0) AS place_before, coalesce(last.place, 0) AS place_last
      FROM open_tries
           ASOF LEFT JOIN unclaimed AS before
                ON before.from_instance = open_tries.instance
               AND before.server_address = open_tries.server_address
               AND before.server_port = open_tries.server_port
               AND before.first_time_us < open_tries.start_us - $slack_us
           ASOF LEFT JOIN unclaimed AS last
                ON last.from_instance = open_tries.instance
               AND last.server_address = open_tries.server_address
               AND last.server_port = open_tries.server_port
               AND last.first_time_us <= open_tries.start_us + $alone_us
)
SELECT during.instance, during.line, during.try, unclaimed.observer, unclaimed.id, 'time'
  FROM during
       JOIN unclaimed
            ON unclaimed.from_instance = during.instance AND unclaimed.server_address = during.server_address
           AND unclaimed.server_port = during.server_port AND unclaimed.place = during.place_last
           AND (unclaimed.established = during.connected OR (during.guessed AND NOT during.connected))
           AND (during.connect_us IS NULL
                OR during.start_us + during.connect_us BETWEEN unclaimed.answered_us - $slack_us
                                                           AND unclaimed.ready_us + $retry_us)
 WHERE during.place_last = during.place_before + 1
QUALIFY count(*) OVER (PARTITION BY unclaimed.observer, unclaimed.id) = 1
 ORDER BY ALL;
