-- The peers of an instance: those with the most failed connections, then those with the most.
SELECT to_instance AS server, if(direction = 'in', client_address, server_address) AS peer,
       count(*) AS connections,
       count(*) FILTER (outcome IN ('refused', 'never-answered', 'never-accepted', 'closed-unanswered', 'given-up',
                                    'reset', 'half-open')) AS failed,
       count(*) FILTER (outcome = 'recovered') AS recovered
  FROM ledger WHERE observer = $instance GROUP BY ALL
 ORDER BY failed DESC, connections DESC, peer ASC, server ASC LIMIT $most;
