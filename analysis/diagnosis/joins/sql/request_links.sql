-- The n-th request over a connection at the client is the n-th line of that connection at the proxy. That was written
-- when the client's answer came, if one did: else a record is missing, and the line is a neighbour's.
CREATE TABLE request_links AS
WITH sent AS (
    SELECT instance, id, dial,
           row_number() OVER (PARTITION BY instance, dial ORDER BY time_us, id) AS place
      FROM requests WHERE dial IS NOT NULL AND remote IS NOT NULL
)
SELECT requests.instance, requests.id, sent.place, access.instance AS access_instance, access.line
  FROM requests
       LEFT JOIN sent ON sent.instance = requests.instance AND sent.id = requests.id
       LEFT JOIN sessions ON sessions.dial_instance = sent.instance AND sessions.dial = sent.dial
       LEFT JOIN access ON access.instance = sessions.instance AND access.connection = sessions.connection
                       AND access.connection_requests = sent.place
                       AND (requests.status = 0 OR 1000 * access.time_ms BETWEEN requests.time_us - $slack_us
                                                                            AND requests.end_us + $late_us)
QUALIFY row_number() OVER (PARTITION BY requests.instance, requests.id ORDER BY access.line) = 1
 ORDER BY requests.instance, requests.id;
