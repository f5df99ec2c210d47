-- When a listener began its answers.
SELECT count(*) AS count, min(server_first_data_time_us) AS first_us, max(server_first_data_time_us) AS last_us
  FROM ledger JOIN connections USING (observer, id)
 WHERE ledger.to_instance = $server AND ledger.direction = 'in' AND server_first_data_time_us IS NOT NULL;
