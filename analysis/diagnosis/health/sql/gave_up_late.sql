-- A client whose last SYN left after its connect timeout, though nobody had answered: it was late to give up, and the
-- timeout alone does not say how many SYNs it sends.
SELECT client_address, client_port, (list_max(syn_times_us) - list_min(syn_times_us)) / 1000 AS after_ms
  FROM read_parquet($path, hive_partitioning = false)
 WHERE first_time_us >= $start_us AND list_contains($addresses, server_address)
       AND list_contains($clients, client_address)
       AND synack_count = 0 AND list_max(syn_times_us) - list_min(syn_times_us) >= $connect_timeout_us
 ORDER BY list_max(syn_times_us), client_address, client_port
 LIMIT 1;
