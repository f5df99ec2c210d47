-- How many connections began in the window at a server, and how many of these it accepted.
SELECT count(*) FILTER (outcome <> 'earlier') AS came, count(in_queue_us) AS taken
  FROM ledger WHERE to_instance = $server AND in_window;
