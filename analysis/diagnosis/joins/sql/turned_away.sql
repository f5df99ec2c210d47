-- Connections that a server closed as they came, without any data of its own, for want of room. Either it then held
-- more others than when it took any that it answered, and closed several so: that is as many as it takes (taken). Or a
-- process of its had as many files open as it may, at the reading before or after: each connection is one.
-- held: its other connections when this one came. A place is free when the server has closed its end, or a moment
-- later: it counts as held until then.
CREATE TABLE turned_away AS
WITH had AS (
    SELECT observer, id, to_instance AS instance, queued_us AS came_us, server_first_data_time_us IS NOT NULL AS served,
           server_close_us(server_fin_time_us, first_rst_by, first_rst_time_us) AS closed_us,
           least(server_fin_time_us, first_rst_time_us) AS free_us,
           coalesce(NOT served AND closed_us BETWEEN came_us AND came_us + $at_once_us
                    AND coalesce(client_fin_time_us > closed_us, true), false) AS refused
      FROM arriving_flows
     WHERE established AND queued_us IS NOT NULL
), changes AS (
    SELECT instance, came_us AS time_us, 1 AS surely, 1 AS perhaps FROM had WHERE NOT refused
     UNION ALL
    SELECT instance, free_us, -1, 0 FROM had WHERE NOT refused AND free_us IS NOT NULL
     UNION ALL
    SELECT instance, free_us + $lag_us, 0, -1 FROM had WHERE NOT refused AND free_us IS NOT NULL
), levels AS (
    SELECT instance, time_us, sum(sum(surely)) OVER earlier AS surely, sum(sum(perhaps)) OVER earlier AS perhaps
      FROM changes GROUP BY instance, time_us
    WINDOW earlier AS (PARTITION BY instance ORDER BY time_us)
), met AS (
    SELECT had.*, coalesce(levels.surely, 0)::BIGINT AS surely, coalesce(levels.perhaps, 0)::BIGINT AS held
      FROM had ASOF LEFT JOIN levels ON levels.instance = had.instance AND levels.time_us < had.came_us
), capacities AS (
    SELECT instance, max(surely) + 1 AS most FROM met WHERE served GROUP BY instance
), proven AS (
    SELECT instance, most FROM met JOIN capacities USING (instance)
     WHERE refused AND held >= most
     GROUP BY ALL HAVING count(*) >= $refusals
)
SELECT met.observer, met.id, met.instance, met.came_us, met.held,
       if(met.held >= proven.most, proven.most, NULL) AS taken,
       min(full_processes.pid) AS pid, arg_min(full_processes.comm, full_processes.pid) AS comm,
       arg_min(full_processes.files, full_processes.pid) AS files
  FROM met
       LEFT JOIN proven ON proven.instance = met.instance
       LEFT JOIN full_processes
            ON full_processes.instance = met.instance AND met.came_us BETWEEN from_us AND to_us
 WHERE met.refused
 GROUP BY ALL
HAVING taken IS NOT NULL OR pid IS NOT NULL
 ORDER BY met.observer, met.id;
