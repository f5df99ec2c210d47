-- The first connection with which more were open to a server than it holds. It is open from the ACK that completed its
-- handshake to the server's FIN or a RST of either side. One whose ACK met a full queue got its SYN-ACK again: when it
-- came in is not known, and it is left out.
WITH taken AS (
  SELECT *, least(server_fin_time_us, first_rst_time_us) AS closed_us
    FROM read_parquet($path, hive_partitioning = false)
   WHERE list_contains($addresses, server_address) AND handshake_ack_time_us IS NOT NULL
         AND synack_count = len(list_filter(syn_times_us, lambda at_us: at_us <= handshake_ack_time_us))
), changes AS (
  SELECT client_address, client_port, server_address, server_port, handshake_ack_time_us AS at_us, 1 AS change
    FROM taken
   UNION ALL
  SELECT client_address, client_port, server_address, server_port, closed_us, -1 FROM taken WHERE closed_us IS NOT NULL
), held AS (
  SELECT *,
         -- What closes at a moment goes before what opens at the same.
         sum(change) OVER (PARTITION BY server_address, server_port ORDER BY at_us, change
                            ROWS UNBOUNDED PRECEDING)::BIGINT AS open
    FROM changes
)
SELECT client_address, client_port, open
  FROM held
 WHERE open > $capacity AND at_us >= $start_us AND list_contains($clients, client_address)
 ORDER BY at_us, client_address, client_port
 LIMIT 1;
