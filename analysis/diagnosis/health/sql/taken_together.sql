-- Two connections of a server whose handshakes ended together as its accept queue became full: the first such pair.
WITH connections AS (
  SELECT *, row_number() OVER () AS id FROM read_parquet($path, hive_partitioning = false)
   WHERE first_time_us >= $start_us AND list_contains($addresses, server_address)
         AND list_contains($clients, client_address)
), taken AS (
  SELECT id, client_address, client_port, server_address, server_port, handshake_ack_time_us AS end_us,
         list_max(list_filter(syn_times_us, lambda at_us: at_us <= handshake_ack_time_us)) AS begin_us
    FROM connections WHERE handshake_ack_time_us IS NOT NULL
), refused AS (
  SELECT connections.server_address, connections.server_port,
         unnest(list_filter(syn_times_us, lambda at_us: begin_us IS NULL OR at_us < begin_us)) AS at_us
    FROM connections LEFT JOIN taken USING (id) WHERE synack_count = 0 OR begin_us IS NOT NULL
), last AS (
  SELECT DISTINCT taken.* FROM refused
  ASOF JOIN taken ON refused.server_address = taken.server_address AND refused.server_port = taken.server_port
                     AND refused.at_us >= taken.end_us
)
SELECT last.client_address, last.client_port, other.client_address, other.client_port
  FROM last JOIN taken AS other
       ON other.server_address = last.server_address AND other.server_port = last.server_port
          AND other.id <> last.id AND other.begin_us <= last.end_us AND other.end_us >= last.begin_us
 ORDER BY last.end_us, last.client_address, last.client_port, other.end_us, other.client_address, other.client_port
 LIMIT 1;
