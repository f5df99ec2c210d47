-- The connections of an observation by time, those of peers left out; of too many those that failed come before others.
WITH chosen AS (
    SELECT *, count(*) OVER () AS in_all FROM read_parquet($path, hive_partitioning = false)
     WHERE NOT list_contains($peers, observer)
     ORDER BY outcome IN ('answered', 'connected', 'idle', 'waiting'), first_time_us, observer, id
     LIMIT $most
)
SELECT outcome, to_instance AS server, in_all,
       first_time_us - $start_us AS begin_us, coalesce(handshake_us, -1) AS handshake_us,
       coalesce(handshake_us + greatest(first_data_us, 0), -1) AS data_us,
       coalesce(handshake_us + greatest(first_data_us, 0) + greatest(first_byte_us, 0), -1) AS answer_us,
       last_time_us - first_time_us AS lasts_us, client_address || ':' || client_port AS peer
  FROM chosen
 ORDER BY first_time_us, observer, id;
