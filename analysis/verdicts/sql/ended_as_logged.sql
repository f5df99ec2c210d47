-- How many connections to a server ended as a log says; known: whether a capture has any to it. Captures of both ends
-- have the same connection, which counts once.
WITH seen AS (
    SELECT client_address, client_port, count(*) FILTER (list_contains($outcomes::VARCHAR[], outcome)) AS alike
      FROM ledger WHERE server_address || ':' || server_port = $server
     GROUP BY observer, client_address, client_port
), once AS (
    SELECT max(alike) AS alike FROM seen GROUP BY client_address, client_port
)
SELECT count(*) > 0 AS known, coalesce(sum(alike), 0)::BIGINT AS alike FROM once;
