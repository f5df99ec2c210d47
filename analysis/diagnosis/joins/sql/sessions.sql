-- A session is a client's connection at the proxy, as its log numbers them: with the dial that made it, and with the
-- connection in the capture. A client may have the same port to each of nginx's addresses at once, so that nginx names
-- the one it was reached under; the gateway has one address, and does not.
CREATE TABLE sessions AS
WITH firsts AS (
    SELECT instance, connection, remote_addr, remote_port, 1000 * time_ms AS end_us,
           coalesce(server_addr, '') AS reached
      FROM access WHERE connection IS NOT NULL
    QUALIFY row_number() OVER (PARTITION BY instance, connection ORDER BY connection_requests, line) = 1
), own_dials AS (
    SELECT dials.*, addresses.instance AS to_instance, unnest([remote_address, '']) AS reached
      FROM addressed_dials AS dials JOIN addresses ON addresses.address = dials.remote_address
), own_connections AS (
    SELECT *, unnest([server_address, '']) AS reached FROM connections
)
SELECT firsts.instance, firsts.connection, dials.instance AS dial_instance, dials.id AS dial,
       flows.observer, flows.id AS flow
  FROM firsts
       ASOF LEFT JOIN own_dials AS dials
            ON dials.to_instance = firsts.instance AND dials.reached = firsts.reached
           AND dials.local_address = firsts.remote_addr
           AND dials.local_port = firsts.remote_port AND firsts.end_us + $slack_us >= dials.time_us
       ASOF LEFT JOIN own_connections AS flows
            ON flows.to_instance = firsts.instance AND flows.reached = firsts.reached
           AND flows.client_address = firsts.remote_addr
           AND flows.client_port = firsts.remote_port AND firsts.end_us + $slack_us >= flows.first_time_us
 ORDER BY firsts.instance, firsts.connection;
