-- The n-th request over a connection at the client is the n-th line of that connection at the proxy. Over HTTP/2 many
-- are under way at once, and some numbers are of streams without a line: there the n-th answer is the n-th line, of
-- those alike. The line was written when the client's answer came, if one did: else a record is missing, and the line
-- is a neighbour's.
CREATE TABLE request_links AS
WITH sent AS (
    SELECT instance, id, dial,
           if(protocol = 'http2', concat_ws(' ', method, status), '') AS alike,
           row_number() OVER (PARTITION BY instance, dial, alike
                              ORDER BY if(protocol = 'http2', end_us, time_us), id) AS place
      FROM requests WHERE dial IS NOT NULL AND remote IS NOT NULL
), shared AS (
    SELECT DISTINCT sessions.instance, sessions.connection
      FROM sessions JOIN sent ON sent.instance = sessions.dial_instance AND sent.dial = sessions.dial
     WHERE sent.alike <> ''
), lines AS (
    SELECT instance, line, connection, time_ms, '' AS alike, connection_requests AS place
      FROM access ANTI JOIN shared USING (instance, connection)
    UNION ALL
    SELECT instance, line, connection, time_ms,
           concat_ws(' ', request_method, status) AS alike,
           row_number() OVER (PARTITION BY instance, connection, alike ORDER BY line) AS place
      FROM access SEMI JOIN shared USING (instance, connection)
)
SELECT requests.instance, requests.id, sent.place, lines.instance AS access_instance, lines.line
  FROM requests
       LEFT JOIN sent ON sent.instance = requests.instance AND sent.id = requests.id
       LEFT JOIN sessions ON sessions.dial_instance = sent.instance AND sessions.dial = sent.dial
       LEFT JOIN lines ON lines.instance = sessions.instance AND lines.connection = sessions.connection
                      AND lines.alike = sent.alike AND lines.place = sent.place
                      AND (requests.status = 0 OR 1000 * lines.time_ms BETWEEN requests.time_us - $slack_us
                                                                           AND requests.end_us + $late_us)
QUALIFY row_number() OVER (PARTITION BY requests.instance, requests.id ORDER BY lines.line) = 1
 ORDER BY requests.instance, requests.id;
