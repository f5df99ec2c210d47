-- Tries that broke off, without a header or before all of the request was sent, of which nobody knows which connection
-- was their own: each connection that the server ended meanwhile, and whose own tries, if any is known, were over a
-- turn before its last data; and whether the server had sent data on it by then: after the try began, or as the first
-- data of all, right before it closed.
CREATE TABLE breaches_in_doubt AS
WITH open_tries AS (
    SELECT * FROM tries ANTI JOIN try_links USING (instance, line, try)
     WHERE server_port IS NOT NULL AND connected
       AND ((header_us IS NULL AND status = 502) OR unsent_bytes > 0)
), unclaimed AS (
    SELECT connections.*, server_close_us(server_fin_time_us, first_rst_by, first_rst_time_us) AS closed_us
      FROM connections ANTI JOIN last_known_tries
           ON last_known_tries.observer = connections.observer AND last_known_tries.flow = connections.id
          AND over_us >= coalesce(client_last_data_time_us, 0) - $slack_us
     WHERE established
)
SELECT open_tries.instance, open_tries.line, open_tries.try, unclaimed.observer, unclaimed.id AS flow,
       coalesce(unclaimed.server_last_data_time_us >= open_tries.start_us
                OR closed_us <= unclaimed.server_first_data_time_us + $at_once_us, false) AS answered
  FROM open_tries
       JOIN unclaimed
            ON unclaimed.from_instance = open_tries.instance AND unclaimed.server_address = open_tries.server_address
           AND unclaimed.server_port = open_tries.server_port
           AND unclaimed.closed_us BETWEEN open_tries.start_us - $slack_us
                                       AND open_tries.start_us + open_tries.response_us + $slack_us
 ORDER BY ALL;
