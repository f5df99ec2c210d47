-- A connection that is observed at both its ends is one: the server's end proves what the client's end cannot see.
UPDATE ledger SET cause = servers.cause
  FROM (SELECT * FROM ledger WHERE direction = 'in') AS servers
 WHERE ledger.direction = 'out' AND ledger.cause = 'unexplained' AND ledger.client_isn = servers.client_isn
   AND ledger.client_address = servers.client_address AND ledger.client_port = servers.client_port
   AND ledger.server_address = servers.server_address AND ledger.server_port = servers.server_port;
