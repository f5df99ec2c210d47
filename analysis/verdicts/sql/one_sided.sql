-- How many connections of one capture have the packets of one side alone, in all and of the client's side.
SELECT count(*) AS connections, count(*) FILTER (client_packets > 0) AS of_client
  FROM ledger WHERE observer = $observer AND outcome = 'one-sided';
