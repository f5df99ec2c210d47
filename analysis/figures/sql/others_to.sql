-- The connections to a server of clients that are not on the path, as far as its capture has them.
SELECT count(*) AS others
  FROM flows
 WHERE to_instance = $instance AND from_instance IS NULL AND established AND client_address <> server_address;
