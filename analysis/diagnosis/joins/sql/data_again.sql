-- How many packets with data of each instance the captures show again.
SELECT instance, sum(again)::BIGINT
  FROM (SELECT from_instance AS instance, client_retransmissions AS again FROM connections
         UNION ALL
        SELECT to_instance, server_retransmissions FROM connections)
 GROUP BY instance;
