-- A scan: one client that tries a hundred ports of a host or more, and gets next to no connection. Its connections are
-- counted under one name, `…:*`, as they are about no server.
UPDATE flows SET to_instance = regexp_replace(to_instance, ':[0-9]+$', ':*')
  FROM (SELECT observer, client_address, server_address FROM flows GROUP BY ALL
        HAVING count(DISTINCT server_port) >= 100 AND count(*) FILTER (established) * 10 < count(*)) AS scans
 WHERE scans.observer = flows.observer AND scans.client_address = flows.client_address
   AND scans.server_address = flows.server_address;
