-- Who had the connections that a server had accepted, at the reading when most others waited in its accept queue: its
-- clients, by what these had sent by then. The queue is first in, first out: those that came last wait in it. A server
-- has a connection until its own FIN, or a RST. Readings near which a connection came or went tell nothing for sure;
-- nor do those of several listeners of one port.
-- process, files: a process that then had as many files open as it may, and could accept no more.
WITH victims AS (
    SELECT DISTINCT unnest([flow_to_instance, up_to_instance]) AS instance
      FROM attributed JOIN cases USING (instance, id)
     WHERE list_contains($causes::VARCHAR[], cause)
), single AS (
    SELECT instance FROM ticks SEMI JOIN victims USING (instance) GROUP BY instance HAVING max(listeners) = 1
), had AS (
    SELECT to_instance AS instance, queued_us, client_first_data_time_us, client_last_data_time_us,
           server_last_data_time_us, from_instance IS NULL AS other,
           least(server_fin_time_us, first_rst_time_us) AS ended_us
      FROM arriving_flows SEMI JOIN single ON single.instance = to_instance
     WHERE queued_us IS NOT NULL
), deepest AS (
    SELECT ticks.instance, ticks.time_us, ticks.depth
      FROM ticks
           SEMI JOIN single USING (instance)
           ANTI JOIN had ON had.instance = ticks.instance
                AND (had.queued_us BETWEEN ticks.time_us - $near_us AND ticks.time_us + $near_us
                     OR had.ended_us BETWEEN ticks.time_us - $near_us AND ticks.time_us + $near_us)
     WHERE ticks.depth > 0
   QUALIFY row_number() OVER (PARTITION BY ticks.instance ORDER BY ticks.depth DESC, ticks.time_us ASC) = 1
), crowded AS (
    SELECT deepest.instance, min(comm) AS process, min(files) AS files
      FROM deepest
           JOIN full_processes
                ON full_processes.instance = deepest.instance AND deepest.time_us BETWEEN from_us AND to_us
     GROUP BY deepest.instance
), there AS (
    SELECT deepest.instance, deepest.time_us, depth, other, client_first_data_time_us, client_last_data_time_us,
           server_last_data_time_us, ended_us,
           row_number() OVER (PARTITION BY deepest.instance ORDER BY queued_us DESC) AS from_the_end
      FROM deepest JOIN had ON had.instance = deepest.instance AND queued_us <= time_us
)
SELECT instance, time_us, depth AS waiting,
       count(*) FILTER (coalesce(client_first_data_time_us > time_us, true)) AS silent,
       count(*) FILTER (client_last_data_time_us <= server_last_data_time_us
                        AND server_last_data_time_us <= time_us) AS idle,
       count(*) AS held, count(*) FILTER (other) AS others, any_value(process) AS process, any_value(files) AS files
  FROM there
       LEFT JOIN crowded USING (instance)
 WHERE from_the_end > depth AND coalesce(ended_us > time_us, true)
 GROUP BY ALL
 ORDER BY instance;
