-- Every connection in a capture, with the server's end named: `instance:port` where it is an observed instance, else
-- `instance>address:port`, a server elsewhere that the instance connects to. On the loopback an instance is both; it
-- counts as the server.
CREATE TABLE flows AS
SELECT captured.observer, 'peers' AS from_instance,
       if(servers.address IS NOT NULL OR (clients.address IS NULL AND ports.instance IS NOT NULL), 'in', 'out')
           AS direction,
       if(direction = 'in', format('{}:{}', captured.observer, server_port),
          format(if(contains(server_address, ':'), '{}>[{}]:{}', '{}>{}:{}'),
                 captured.observer, server_address, server_port)) AS to_instance,
       captured.* EXCLUDE (observer)
  FROM captured
       LEFT JOIN own AS clients ON clients.observer = captured.observer AND clients.address = client_address
       LEFT JOIN own AS servers ON servers.observer = captured.observer AND servers.address = server_address
       LEFT JOIN (SELECT DISTINCT instance FROM ticks) AS ports
            ON ports.instance = format('{}:{}', captured.observer, server_port)
 ORDER BY captured.observer, captured.id;
