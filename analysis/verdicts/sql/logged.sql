-- How many lines of a log name the client's end of a connection that a capture has.
SELECT count(*) FILTER (client IN (SELECT client_address || ':' || client_port FROM ledger))
  FROM (SELECT unnest($clients::VARCHAR[]) AS client);
