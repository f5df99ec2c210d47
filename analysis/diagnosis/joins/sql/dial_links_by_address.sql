-- The connection of each dial, by the four addresses and ports, and the time of the first SYN.
CREATE TABLE dial_links AS
SELECT dials.instance, dials.id AS dial, connections.observer, connections.id AS flow, 'address' AS how
  FROM addressed_dials AS dials
       JOIN connections
            ON connections.from_instance = dials.instance
           AND connections.client_address = dials.local_address AND connections.client_port = dials.local_port
           AND connections.server_address = dials.remote_address AND connections.server_port = dials.remote_port
           AND connections.first_time_us BETWEEN dials.time_us - $slack_us
                                             AND dials.time_us + dials.duration_us + $slack_us
QUALIFY row_number() OVER (PARTITION BY dials.instance, dials.id ORDER BY connections.first_time_us) = 1
 ORDER BY ALL;
