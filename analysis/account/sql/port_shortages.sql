-- A port is held until its connection is over, or until the next one takes it. A dial looks for one at some moment
-- between its beginning and its end: the most that were held in that time are what it met.
CREATE TABLE port_shortages AS
WITH holds AS (
    SELECT from_instance, server_address, server_port, first_time_us AS start_us,
           least(
               lead(first_time_us) OVER (PARTITION BY from_instance, server_address, server_port, client_port
                                         ORDER BY first_time_us, observer, id),
               CASE WHEN time_wait_owner IN ('client', 'both') THEN last_time_us + $time_wait_us
                    WHEN NOT truncated_end THEN last_time_us END
           ) AS end_us,
           time_wait_owner IN ('client', 'both') AS waits, last_time_us
      FROM connections
), changes AS (
    SELECT from_instance, server_address, server_port, start_us AS time_us, 1 AS held, 0 AS waiting FROM holds
    UNION ALL
    SELECT from_instance, server_address, server_port, end_us, -1, if(waits, -1, 0) FROM holds
     WHERE end_us IS NOT NULL
    UNION ALL
    SELECT from_instance, server_address, server_port, last_time_us, 0, 1 FROM holds WHERE waits
), levels AS (
    SELECT *, lead(time_us) OVER (PARTITION BY from_instance, server_address, server_port
                                  ORDER BY time_us) AS until_us
      FROM (SELECT DISTINCT from_instance, server_address, server_port, time_us,
                   sum(held) OVER changes AS held, sum(waiting) OVER changes AS waiting
              FROM changes
            WINDOW changes AS (PARTITION BY from_instance, server_address, server_port ORDER BY time_us))
)
SELECT dials.instance, dials.id AS dial, max(levels.held) AS held, arg_max(levels.waiting, levels.held) AS waiting,
       any_value(port_ranges.ports) AS ports
  FROM addressed_dials AS dials
       LEFT JOIN port_ranges ON port_ranges.instance = dials.instance
       LEFT JOIN levels
            ON levels.from_instance = dials.instance AND levels.server_address = dials.remote_address
           AND levels.server_port = dials.remote_port AND levels.time_us <= dials.time_us + dials.duration_us
           AND (levels.until_us > dials.time_us OR levels.until_us IS NULL)
 WHERE dials.error_kind = $error_kind
 GROUP BY ALL
 ORDER BY ALL;
