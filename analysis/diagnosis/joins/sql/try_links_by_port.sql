-- A log that names the port which a try came from names its connection: the last one from that port to the server that
-- had begun when the request was over, be it made for this try or kept from before. It had a packet while the request
-- was at the proxy; else the capture lacks the connection, and this is an earlier one.
INSERT INTO try_links
WITH named AS (
    SELECT instance, line, try, server_address, server_port, local_port,
           min(start_us) OVER (PARTITION BY instance, line) AS request_us, start_us + response_us AS end_us
      FROM tries
)
SELECT named.instance, named.line, named.try, connections.observer, connections.id, 'port'
  FROM named
       ASOF JOIN connections
            ON connections.from_instance = named.instance
           AND connections.server_address = named.server_address
           AND connections.server_port = named.server_port
           AND connections.client_port = named.local_port
           AND connections.first_time_us <= named.end_us + $slack_us
 WHERE connections.last_time_us >= named.request_us - $turn_us
 ORDER BY ALL;
