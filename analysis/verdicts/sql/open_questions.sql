-- The connections of one capture that were not made, and nothing proves why, by server and outcome.
SELECT direction, outcome,
       format(if(contains(server_address, ':'), '[{}]:{}', '{}:{}'), server_address, server_port) AS server,
       count(*) AS connections, sum(syn_count)::BIGINT AS syns
  FROM ledger WHERE observer = $observer AND cause = 'unexplained'
   AND outcome IN ('never-answered', 'never-accepted') GROUP BY ALL
 ORDER BY connections DESC, server ASC, outcome ASC LIMIT 20;
