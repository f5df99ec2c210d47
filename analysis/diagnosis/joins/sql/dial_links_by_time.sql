-- A dial that failed too fast to read its port: by the server's address and time, if just one connection that no other
-- dial explains began during it.
INSERT INTO dial_links
WITH unclaimed AS (
    SELECT *, row_number() OVER (PARTITION BY from_instance, server_address, server_port
                                 ORDER BY first_time_us, observer, id) AS place
      FROM connections ANTI JOIN dial_links
           ON dial_links.observer = connections.observer AND dial_links.flow = connections.id
), during AS (
    SELECT dials.instance, dials.id, dials.remote_address, dials.remote_port,
           coalesce(before.place, 0) AS place_before, coalesce(last.place, 0) AS place_last
      FROM dials_of_unknown_port AS dials
           ANTI JOIN dial_links ON dial_links.instance = dials.instance AND dial_links.dial = dials.id
           ASOF LEFT JOIN unclaimed AS before
                ON before.from_instance = dials.instance AND before.server_address = dials.remote_address
               AND before.server_port = dials.remote_port AND before.first_time_us < dials.time_us - $slack_us
           ASOF LEFT JOIN unclaimed AS last
                ON last.from_instance = dials.instance AND last.server_address = dials.remote_address
               AND last.server_port = dials.remote_port
               AND last.first_time_us <= dials.time_us + dials.duration_us + $slack_us
)
SELECT during.instance, during.id, unclaimed.observer, unclaimed.id, 'time'
  FROM during
       JOIN unclaimed
            ON unclaimed.from_instance = during.instance AND unclaimed.server_address = during.remote_address
           AND unclaimed.server_port = during.remote_port AND unclaimed.place = during.place_last
 WHERE during.place_last = during.place_before + 1
QUALIFY count(*) OVER (PARTITION BY unclaimed.observer, unclaimed.id) = 1
 ORDER BY ALL;
