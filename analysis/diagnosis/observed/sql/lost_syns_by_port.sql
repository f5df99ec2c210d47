-- When SYNs to each port of a host got no answer, by its own capture: of those that lost some, the ports that
-- lost most.
WITH syns AS (
    SELECT server_port, unnest(if(answered, syn_times_us[:-2], syn_times_us)) AS time_us
      FROM captured
           JOIN own ON own.observer = captured.observer AND own.address = server_address
     WHERE captured.observer = $observer AND NOT client_inferred AND first_rst_by IS DISTINCT FROM 'server'
)
SELECT server_port, list(time_us ORDER BY time_us) FROM syns GROUP BY server_port
 ORDER BY count(*) DESC, server_port LIMIT 64;
