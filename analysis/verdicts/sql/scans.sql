-- Who scanned whom, in one capture.
SELECT client_address AS client, server_address AS server, sum(syn_count)::BIGINT AS syns,
       count(DISTINCT server_port) AS ports, count(*) FILTER (outcome = 'refused') AS refused,
       coalesce(sum(synack_count) FILTER (outcome IN ('half-open', 'given-up')), 0)::BIGINT AS synacks
  FROM ledger WHERE observer = $observer AND ends_with(to_instance, ':*') GROUP BY ALL
 ORDER BY syns DESC, client ASC, server ASC;
