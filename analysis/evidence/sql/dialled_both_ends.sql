-- The whole dials of a client's log that have both ends, as a capture names them.
CREATE OR REPLACE TABLE dialled AS
SELECT *, row_number() OVER (PARTITION BY client, server ORDER BY time_us, id) AS place,
       count(*) OVER (PARTITION BY client, server) AS places
  FROM (SELECT *, regexp_replace(replace(replace(local, '[', ''), ']', ''), ':(\d+)$', ' \1') AS client,
               regexp_replace(replace(replace(remote, '[', ''), ']', ''), ':(\d+)$', ' \1') AS server
          FROM read_json($path, format = 'newline_delimited', ignore_errors = true, columns = $fields)
         WHERE $whole AND local IS NOT NULL AND remote IS NOT NULL
           AND error_kind IS DISTINCT FROM 'address-not-available')
 WHERE hash(client) % $one_of = 0;
