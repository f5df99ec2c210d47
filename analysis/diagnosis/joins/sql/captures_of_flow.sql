-- A connection in every capture that has it, that of its own observer first.
SELECT others.*
  FROM flows
       JOIN flows AS others
            ON others.client_address = flows.client_address AND others.client_port = flows.client_port
           AND others.server_address = flows.server_address AND others.server_port = flows.server_port
           AND others.client_isn IS NOT DISTINCT FROM flows.client_isn
 WHERE flows.observer = $observer AND flows.id = $id
 ORDER BY others.observer <> $observer, others.observer, others.id;
