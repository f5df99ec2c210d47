-- Each packet with data, of a connection's client or server (`asks`); of data that the capture shows again, when it had
-- it first.
INSERT INTO data_sent
WITH packets AS (
    SELECT connection, number, $steady AS time_us, "from" = 'client' AS asks, seq + payload_bytes AS reaches
      FROM read_ndjson($path, columns = { connection: 'BIGINT', number: 'BIGINT', time_us: 'BIGINT', "from": 'VARCHAR',
                                          seq: 'BIGINT', payload_bytes: 'BIGINT' })
     WHERE payload_bytes > 0
), told AS (
    SELECT *, max(reaches) OVER (PARTITION BY connection, asks ORDER BY number
                                 ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS reached
      FROM packets
)
SELECT $observer, list_extract($flows, again.connection + 1), again.asks, again.time_us, min(before.time_us)
  FROM told AS again
       LEFT JOIN packets AS before
            ON before.connection = again.connection AND before.asks = again.asks AND before.number < again.number
           AND before.reaches >= again.reaches AND again.reached >= again.reaches
 GROUP BY again.connection, again.number, again.asks, again.time_us
 ORDER BY again.connection, again.number;
