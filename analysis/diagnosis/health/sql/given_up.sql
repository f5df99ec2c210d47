-- How many connections the clients closed while others still asked for one.
WITH connections AS (
  SELECT * FROM read_parquet($path, hive_partitioning = false)
   WHERE first_time_us >= $start_us AND list_contains($clients, client_address)
), asking AS (
  SELECT max(list_max(syn_times_us)) AS until_us FROM connections WHERE NOT established
)
SELECT count(*) FROM connections, asking
 WHERE closed_by = 'client' AND close_kind = 'fin' AND client_fin_time_us < until_us
   -- After an answer: a request that timed out ends its connection by right.
   AND server_last_data_time_us >= client_last_data_time_us;
