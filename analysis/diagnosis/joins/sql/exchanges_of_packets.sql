-- A turn begins where the client sends after the server did, or as the first; turn 0 is a server that spoke first.
-- heard_us: the server's last data before the client closed its side; a client that left hears no more.
INSERT INTO exchanges
WITH sent AS (
    SELECT connection, number, $steady AS time_us, "from" = 'client' AS asks, flags, seq, payload_bytes
      FROM read_ndjson($path, columns = { connection: 'BIGINT', number: 'BIGINT', time_us: 'BIGINT', "from": 'VARCHAR',
                                          flags: 'VARCHAR[]', seq: 'BIGINT', payload_bytes: 'BIGINT' })
), closed AS (
    SELECT connection, min(time_us) AS closed_us FROM sent
     WHERE asks AND list_has_any(flags, ['FIN', 'RST']) GROUP BY connection
), packets AS (
    SELECT connection, number, time_us, asks, list_contains(flags, 'PSH') AS pushed, seq + payload_bytes AS reaches
      FROM sent WHERE payload_bytes > 0
), told AS (
    SELECT *, max(reaches) OVER (PARTITION BY connection, asks ORDER BY number
                                 ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS reached
      FROM packets
), anew AS (
    SELECT *, lag(asks, 1, false) OVER (PARTITION BY connection ORDER BY number) AS asked
      FROM told WHERE reached IS NULL OR reaches > reached
), turns AS (
    SELECT *, count(*) FILTER (asks AND NOT asked) OVER (PARTITION BY connection ORDER BY number) AS turn FROM anew
)
SELECT $observer, list_extract($flows, connection + 1), list_extract($servers, connection + 1), turn,
       min(time_us) FILTER (asks), max(time_us) FILTER (asks), min(time_us) FILTER (NOT asks),
       max(time_us) FILTER (NOT asks), count(*) FILTER (asks AND pushed),
       max(time_us) FILTER (NOT asks AND coalesce(time_us <= closed_us, true))
  FROM turns LEFT JOIN closed USING (connection)
 GROUP BY connection, turn
 ORDER BY connection, turn;
