-- How many connections to a server ended as a log says; known: whether a capture has any to it.
SELECT count(*) > 0 AS known, count(*) FILTER (list_contains($outcomes::VARCHAR[], outcome)) AS alike
  FROM ledger WHERE server_address || ':' || server_port = $server;
