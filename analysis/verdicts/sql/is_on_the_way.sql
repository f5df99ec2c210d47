-- Whether connections that two captures have in common go from the one to the other: the server's address is the
-- other's.
SELECT count(*) > 0 AS towards
  FROM flows AS here
       JOIN flows AS there USING (client_address, client_port, server_address, server_port, client_isn)
       JOIN own ON own.observer = $server_end AND own.address = server_address
 WHERE here.observer = $client_end AND there.observer = $server_end
   AND NOT EXISTS (SELECT 1 FROM own AS mine WHERE mine.observer = $client_end AND mine.address = here.server_address);
