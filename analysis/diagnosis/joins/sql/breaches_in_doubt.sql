-- Tries that broke off, without a header or before all of the request was sent, of which nobody knows which connection
-- was their own: each connection that the server ended meanwhile. One whose own tries are known, if any is, carried
-- another only if they were over a turn before its last data, and this one only if that came after this one began.
-- And whether the server had sent data on it by then: after the try began, or as the first data of all, right before it
-- closed. Over TLS nobody knows, because the end of TLS is data, too.
CREATE TABLE breaches_in_doubt AS
WITH open_tries AS (
    SELECT * FROM tries ANTI JOIN try_links USING (instance, line, try)
     WHERE server_port IS NOT NULL AND connected
       AND ((header_us IS NULL AND status = 502) OR unsent_bytes > 0)
), candidates AS (
    SELECT connections.*, over_us,
           server_close_us(server_fin_time_us, first_rst_by, first_rst_time_us) AS closed_us,
           tls_handshakes.id IS NOT NULL AS over_tls
      FROM connections
           LEFT JOIN last_known_tries
                ON last_known_tries.observer = connections.observer AND last_known_tries.flow = connections.id
           LEFT JOIN tls_handshakes
                ON tls_handshakes.observer = connections.observer AND tls_handshakes.id = connections.id
     WHERE established AND coalesce(over_us < client_last_data_time_us - $slack_us, over_us IS NULL)
)
SELECT open_tries.instance, open_tries.line, open_tries.try, candidates.observer, candidates.id AS flow,
       NOT over_tls
       AND coalesce(candidates.server_last_data_time_us >= open_tries.start_us
                    OR closed_us <= candidates.server_first_data_time_us + $at_once_us, false) AS answered
  FROM open_tries
       JOIN candidates
            ON candidates.from_instance = open_tries.instance AND candidates.server_address = open_tries.server_address
           AND candidates.server_port = open_tries.server_port
           AND candidates.closed_us BETWEEN open_tries.start_us - $slack_us
                                        AND open_tries.start_us + open_tries.response_us + $slack_us
           AND (over_us IS NULL OR candidates.client_last_data_time_us >= open_tries.start_us - $slack_us)
 ORDER BY ALL;
