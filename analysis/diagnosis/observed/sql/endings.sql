-- The connections of one capture that the server's side ended, by server and outcome. Where the server's own capture
-- has them, that of the client says nothing more.
WITH ended AS (
    SELECT direction, outcome, server_address, server_port, client_address, client_port
      FROM ledger WHERE observer = $observer AND outcome IN ('refused', 'reset', 'closed-unanswered')
       AND NOT ends_with(to_instance, ':*') AND (outcome <> 'reset' OR closed_by = 'server')
), at_server AS (
    SELECT DISTINCT server_address, server_port, client_address, client_port
      FROM ledger WHERE observer <> $observer AND direction = 'in'
)
SELECT direction, outcome, server_port AS port,
       format(if(contains(server_address, ':'), '[{}]:{}', '{}:{}'), server_address, server_port) AS server,
       count(*) AS connections
  FROM ended
 WHERE direction = 'in' OR (server_address, server_port, client_address, client_port) NOT IN (FROM at_server)
 GROUP BY ALL ORDER BY connections DESC, server ASC, outcome ASC LIMIT 20;
