-- Tries that broke off before any header, and connections that the server ended with their last data unanswered: the
-- k-th of the one is the k-th of the other, if there are as many, and each ended when its partner did. So a try is
-- found that went over a kept connection. One that the server closed right behind its first data was not kept. A
-- connection whose own try is known was kept after it, if that was over a turn before its last data.
INSERT INTO try_links
WITH broken AS (
    SELECT *, start_us + response_us AS end_us,
           count(*) OVER (PARTITION BY instance, server) AS total,
           row_number() OVER (PARTITION BY instance, server ORDER BY start_us + response_us, line, try) AS place
      FROM tries ANTI JOIN try_links USING (instance, line, try)
     WHERE server_port IS NOT NULL AND NOT names_dial
       AND connect_us IS NOT NULL AND header_us IS NULL AND status = 502
), ended AS (
    SELECT *, least(server_fin_time_us, if(first_rst_by = 'server', first_rst_time_us, NULL)) AS close_us
      FROM connections ANTI JOIN last_known_tries
           ON last_known_tries.observer = connections.observer AND last_known_tries.flow = connections.id
          AND over_us >= client_last_data_time_us - $turn_us
     WHERE established AND client_last_data_time_us > coalesce(server_last_data_time_us, 0)
       AND coalesce(close_us > server_first_data_time_us + $at_once_us, true)
), unanswered AS (
    SELECT *, count(*) OVER (PARTITION BY from_instance, server_address, server_port) AS total,
           row_number() OVER (PARTITION BY from_instance, server_address, server_port
                              ORDER BY close_us, observer, id) AS place
      FROM ended WHERE close_us IS NOT NULL
)
SELECT broken.instance, broken.line, broken.try, unanswered.observer, unanswered.id, 'breach'
  FROM broken
       JOIN unanswered
            ON unanswered.from_instance = broken.instance AND unanswered.server_address = broken.server_address
           AND unanswered.server_port = broken.server_port AND unanswered.total = broken.total
           AND unanswered.place = broken.place
QUALIFY bool_and(close_us BETWEEN broken.end_us - $late_us AND broken.end_us + $slack_us)
        OVER (PARTITION BY broken.instance, broken.server)
 ORDER BY ALL;
