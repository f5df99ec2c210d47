-- A server's first SYN that met a full accept queue, if fewer connections were open then than the server holds: the
-- program had not accepted yet what stood in its queue. The server's FIN closes a connection, and a RST of either side.
-- Nothing is found if another user took the place so soon that only the names changed, and nobody who was refused
-- before that came in later.
WITH connections AS (
  SELECT * FROM read_parquet($path, hive_partitioning = false) WHERE list_contains($addresses, server_address)
), taken AS (
  SELECT handshake_ack_time_us AS end_us, least(server_fin_time_us, first_rst_time_us) AS closed_us
    FROM connections WHERE handshake_ack_time_us IS NOT NULL
), refused AS (
  SELECT client_address, client_port, list_min(syn_times_us) AS at_us, handshake_ack_time_us IS NOT NULL AS came_in
    FROM connections
   -- A RST answers the SYN where nobody listens.
   WHERE first_time_us >= $start_us AND list_contains($clients, client_address)
         AND (synack_count = 0 AND first_rst_time_us IS NULL
              OR synack_count = 1 AND list_min(syn_times_us)
                 < list_max(list_filter(syn_times_us, lambda at_us: at_us <= handshake_ack_time_us)))
), first AS (
  SELECT * FROM refused ORDER BY at_us, client_address, client_port LIMIT 1
), moments AS (
  SELECT at_us FROM first
   UNION ALL
  SELECT taken.end_us FROM taken, first
   WHERE taken.end_us > first.at_us AND taken.end_us <= first.at_us + $soon_us
), held AS (
  SELECT at_us,
         (SELECT count(*) FROM taken
           WHERE taken.end_us <= moments.at_us
                 AND (taken.closed_us IS NULL OR taken.closed_us > moments.at_us)) AS open
    FROM moments
), filled AS (
  SELECT min(at_us) AS at_us FROM held WHERE at_us > (SELECT at_us FROM first) AND open >= $capacity
)
SELECT first.client_address, first.client_port, held.open
  FROM first JOIN held USING (at_us), filled
 WHERE held.open < $capacity
       AND (filled.at_us IS NULL
            OR EXISTS (SELECT 1 FROM refused WHERE refused.came_in AND refused.at_us < filled.at_us));
