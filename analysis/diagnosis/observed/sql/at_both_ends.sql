-- How many connections the captures at two ends have in common.
SELECT count(*) AS count
  FROM flows AS here
       JOIN flows AS there USING (client_address, client_port, server_address, server_port, client_isn)
 WHERE here.observer = $client_end AND there.observer = $server_end;
