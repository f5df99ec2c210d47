-- When the captures at two ends both ran, as far as they tell.
SELECT max(start_us) AS start_us, min(end_us) AS end_us
  FROM spans WHERE observer IN ($client_end, $server_end);
