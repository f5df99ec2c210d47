-- A request of results that opened no connection: it went over the last one that its user had, if that carried data of
-- the client since the request began.
UPDATE requests SET dial = kept.dial, reused = true
  FROM (
        SELECT asked.id, opened.dial
          FROM (SELECT requests.*
                  FROM requests
                       LEFT JOIN dials ON dials.instance = requests.instance AND dials.id = requests.dial
                       ANTI JOIN dial_links
                            ON dial_links.instance = requests.instance AND dial_links.dial = requests.dial
                 WHERE requests.instance = $instance AND requests.remote IS NOT NULL
                   AND dials.error_kind IS NULL) AS asked
               ASOF JOIN (SELECT requests.vu, requests.remote, requests.end_us, requests.dial,
                                 connections.client_last_data_time_us AS last_us
                            FROM requests
                                 JOIN dial_links USING (instance, dial)
                                 JOIN connections
                                      ON connections.observer = dial_links.observer
                                     AND connections.id = dial_links.flow
                           WHERE requests.instance = $instance AND connections.established) AS opened
                    ON opened.vu = asked.vu AND opened.remote = asked.remote
                   AND asked.time_us + $noted_us >= opened.end_us
         WHERE opened.last_us >= asked.time_us - $noted_us
       ) AS kept
 WHERE requests.instance = $instance AND requests.id = kept.id;
