-- Each packet with data, and each bare acknowledgement, of a connection's client or server (`asks`); of data that the
-- capture shows again, when it had it first.
INSERT INTO sent_packets
WITH packets AS (
    SELECT connection, number, $steady AS time_us, "from" = 'client' AS asks, payload_bytes > 0 AS has_data,
           seq + payload_bytes AS reaches
      FROM read_ndjson($path, columns = { connection: 'BIGINT', number: 'BIGINT', time_us: 'BIGINT', "from": 'VARCHAR',
                                          flags: 'VARCHAR[]', seq: 'BIGINT', payload_bytes: 'BIGINT' })
     WHERE payload_bytes > 0 OR NOT list_has_any(flags, ['SYN', 'FIN', 'RST'])
), told AS (
    SELECT *, max(reaches) FILTER (has_data) OVER (PARTITION BY connection, asks ORDER BY number
                                                   ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS reached
      FROM packets
)
SELECT $observer, list_extract($flows, again.connection + 1), again.number, again.asks, again.has_data, again.time_us,
       min(before.time_us)
  FROM told AS again
       LEFT JOIN packets AS before
            ON before.connection = again.connection AND before.asks = again.asks AND before.number < again.number
           AND before.has_data AND again.has_data AND before.reaches >= again.reaches
           AND again.reached >= again.reaches
 GROUP BY again.connection, again.number, again.asks, again.has_data, again.time_us
 ORDER BY again.connection, again.number;
