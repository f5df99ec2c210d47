-- Tries that were never connected, of which nobody knows which connection was their own: how many connections of no
-- other try may have been, those of their proxy and server that sent a SYN meanwhile and never stood; and of how many
-- of these the SYNs, or the answers to them, got lost on the way. With none, none of the try's SYNs came to the
-- capture.
CREATE TABLE dials_in_doubt AS
WITH open_tries AS (
    SELECT * FROM tries ANTI JOIN try_links USING (instance, line, try)
     WHERE server_port IS NOT NULL AND NOT connected AND NOT guessed
), unclaimed AS (
    SELECT connections.*, coalesce(syns_not_dropped, 0) = syns_lost AS is_silent
      FROM connections
           ANTI JOIN try_links ON try_links.observer = connections.observer AND try_links.flow = connections.id
           LEFT JOIN syn_drop_proof
                ON syn_drop_proof.observer = connections.observer AND syn_drop_proof.id = connections.id
     WHERE NOT established
)
SELECT open_tries.instance, open_tries.line, open_tries.try, count(unclaimed.id) AS possible,
       count(*) FILTER (is_silent AND NOT refused) AS silent
  FROM open_tries
       LEFT JOIN unclaimed
            ON unclaimed.from_instance = open_tries.instance AND unclaimed.server_address = open_tries.server_address
           AND unclaimed.server_port = open_tries.server_port
           AND unclaimed.first_time_us <= open_tries.start_us + open_tries.response_us + $slack_us
           AND list_max(unclaimed.syn_times_us) >= open_tries.start_us - $slack_us
 GROUP BY ALL
 ORDER BY ALL;
