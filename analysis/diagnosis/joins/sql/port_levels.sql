-- How many ports a client held towards a server, from one change to the next. A port is held until its connection is
-- over, or until the next one takes it.
CREATE TABLE port_levels AS
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
)
SELECT *, lead(time_us) OVER (PARTITION BY from_instance, server_address, server_port ORDER BY time_us) AS until_us
  FROM (SELECT DISTINCT from_instance, server_address, server_port, time_us,
                   sum(held) OVER changes AS held, sum(waiting) OVER changes AS waiting
              FROM changes
            WINDOW changes AS (PARTITION BY from_instance, server_address, server_port ORDER BY time_us));
