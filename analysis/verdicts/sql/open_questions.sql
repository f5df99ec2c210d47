-- The connections of one capture whose failure nothing proves, by server and outcome.
SELECT direction, outcome, server_address || ':' || server_port AS server, count(*) AS connections,
       sum(syn_count)::BIGINT AS syns
  FROM ledger WHERE observer = $observer AND cause = 'unexplained' GROUP BY ALL
 ORDER BY connections DESC, server ASC, outcome ASC LIMIT 20;
