-- Tries that are still without a connection, by their answer: a try with the only connection that began with it and
-- whose first data came when the proxy had the header, if no other try fits that connection. One over a kept connection
-- that began at the same time does not.
INSERT INTO try_links
WITH open_tries AS (
    SELECT * FROM tries ANTI JOIN try_links USING (instance, line, try)
     WHERE server_port IS NOT NULL AND NOT names_dial AND connected AND NOT coalesce(reused, false)
), unclaimed AS (
    SELECT * FROM connections ANTI JOIN try_links
           ON try_links.observer = connections.observer AND try_links.flow = connections.id
     WHERE established
)
SELECT open_tries.instance, open_tries.line, open_tries.try, unclaimed.observer, unclaimed.id, 'answer'
  FROM open_tries
       JOIN unclaimed
            ON unclaimed.from_instance = open_tries.instance AND unclaimed.server_address = open_tries.server_address
           AND unclaimed.server_port = open_tries.server_port
           AND unclaimed.first_time_us BETWEEN open_tries.start_us - $slack_us AND open_tries.start_us + $turn_us
           AND unclaimed.server_first_data_time_us
               BETWEEN open_tries.start_us + open_tries.header_us - $turn_us
                   AND open_tries.start_us + open_tries.header_us + $slack_us
QUALIFY count(*) OVER (PARTITION BY open_tries.instance, open_tries.line, open_tries.try) = 1
    AND count(*) OVER (PARTITION BY unclaimed.observer, unclaimed.id) = 1
 ORDER BY ALL;
