-- The connections of which two captures have unequal packets or data, repetitions included, or that one capture alone
-- has: SYNs that never came leave none at the other end. Those first of which most is missing; cards cut and join
-- packets, so unequal numbers of them alone say less.
WITH pairs AS (
    SELECT client_address, client_port, server_address, server_port,
           here.last_time_us AS here_last, there.last_time_us AS there_last,
           coalesce(here.first_time_us, there.first_time_us) AS here_first,
           coalesce(there.first_time_us, here.first_time_us) AS there_first,
           abs(coalesce(here.client_packets, 0) - coalesce(there.client_packets, 0))
               + abs(coalesce(here.server_packets, 0) - coalesce(there.server_packets, 0)) AS packets,
           abs(coalesce(here.client_payload_bytes, 0) - coalesce(there.client_payload_bytes, 0))
               + abs(coalesce(here.server_payload_bytes, 0) - coalesce(there.server_payload_bytes, 0)) AS data
      FROM (SELECT * FROM flows WHERE observer = $client_end) AS here
           FULL JOIN (SELECT * FROM flows WHERE observer = $server_end) AS there
                USING (client_address, client_port, server_address, server_port, client_isn)
     WHERE (here.id IS NOT NULL AND there.id IS NOT NULL)
        OR (here.id IS NOT NULL AND server_address IN (SELECT server_address FROM flows WHERE observer = $server_end))
), spans AS (
    SELECT *, least(here_first, there_first) - 1000000 AS first_us,
           greatest(coalesce(here_last, there_last), coalesce(there_last, here_last)) + 1000000 AS last_us
      FROM pairs WHERE packets + data > 0
)
SELECT client_address || ':' || client_port AS client, server_address || ':' || server_port AS server,
       struct_pack(client_address, client_port, server_address, server_port, first_time_us := first_us,
                   last_time_us := last_us) AS connection
  FROM spans
 ORDER BY data = 0 AND there_last IS NOT NULL AND here_last IS NOT NULL ASC, data DESC, packets DESC, first_us ASC,
          client ASC, server ASC;
