-- The connections to a server of clients that are not on the path, as far as its capture has them; and their packets
-- that met a full queue, or may have met one.
SELECT count(*) FILTER (established AND client_address <> server_address) AS others,
       (SELECT coalesce(sum(syns_lost + ack_dropped_max), 0)::BIGINT
          FROM arriving_flows WHERE to_instance = $instance AND from_instance IS NULL) AS dropped
  FROM flows
 WHERE to_instance = $instance AND from_instance IS NULL;
