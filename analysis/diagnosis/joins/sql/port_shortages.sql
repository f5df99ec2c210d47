-- A port is held until its connection is over, or until the next one takes it. A dial, or a try of a proxy that
-- logs no dials, looks for one at some moment
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
), seekers AS (
    SELECT instance, id AS dial, NULL::BIGINT AS line, remote_address, remote_port, time_us,
           time_us + duration_us AS end_us
      FROM addressed_dials WHERE error_kind = $error_kind
    UNION ALL
    -- A log of milliseconds, rounded down.
    SELECT access.instance, NULL, access.line, tries.server_address, tries.server_port, tries.start_us,
           1000 * access.time_ms + 1000
      FROM access JOIN tries ON tries.instance = access.instance AND tries.line = access.line
     WHERE access.gave_up = $gave_up AND tries.try = tries.tries
)
SELECT seekers.instance, seekers.dial, seekers.line, max(levels.held) AS held,
       arg_max(levels.waiting, levels.held) AS waiting, any_value(port_ranges.ports) AS ports
  FROM seekers
       LEFT JOIN port_ranges ON port_ranges.instance = seekers.instance
       LEFT JOIN levels
            ON levels.from_instance = seekers.instance AND levels.server_address = seekers.remote_address
           AND levels.server_port = seekers.remote_port AND levels.time_us <= seekers.end_us
           AND (levels.until_us > seekers.time_us OR levels.until_us IS NULL)
 GROUP BY ALL
 ORDER BY ALL;
