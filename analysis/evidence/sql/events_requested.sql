-- At a client: the begin of the first and of the last request over a connection, and the end of the first.
INSERT INTO events BY NAME
WITH told AS (
    SELECT client, server, place, places,
           unnest(['client data', 'last client data', 'server data']) AS what,
           unnest(['client', 'client', 'server']) AS sender,
           unnest([first_us, last_us, end_us]) AS time_us
      FROM dialled JOIN answered ON answered.dial = dialled.id
)
SELECT (SELECT any_value(machine) FROM instances WHERE instance = $instance) AS machine, 'client' AS side,
       client, server, place, places, what, sender, time_us
  FROM told WHERE time_us IS NOT NULL;
