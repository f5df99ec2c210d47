-- At a client: the begin of each dial, before its first SYN, and the end of each that was connected, after the answer.
INSERT INTO events BY NAME
WITH told AS (
    SELECT client, server, place, places, unnest(['syn', 'answer']) AS what, unnest(['client', 'server']) AS sender,
           unnest([time_us, if(error IS NULL AND error_kind IS NULL, time_us + duration_us, NULL)]) AS time_us
      FROM dialled
)
SELECT (SELECT any_value(machine) FROM instances WHERE instance = $instance) AS machine, 'client' AS side,
       client, server, place, places, what, sender, time_us
  FROM told WHERE time_us IS NOT NULL;
