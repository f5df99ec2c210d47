-- Requests of HTTP/2, and calls of gRPC, that their client sent again by itself: it may, if the server says that it
-- did not process them. A GOAWAY says so of all above a number, and the connection takes no further one: the client
-- closes it as soon as the others have their answers, and before the connection that carries them now. A refused stream
-- is said of one, and the connection goes on. `ended_us`: when it was closed after a GOAWAY; `together`: how many it
-- sent back; `lasted`: how many it had carried.
CREATE TABLE resent AS
WITH carried AS (
    SELECT instance, dial, count(*) AS carried, max(time_us + blocked_us) AS last_sent_us, max(end_us) AS last_end_us
      FROM requests WHERE protocol IN ('http2', 'grpc') AND remote IS NOT NULL GROUP BY ALL
), found AS (
    SELECT requests.instance, requests.id, requests.first_dial, requests.sent_again, requests.again_us,
           coalesce(carried.carried, 0) AS carried, firsts.time_us AS closed_us,
           coalesce(carried.last_sent_us >= requests.time_us + requests.blocked_us, false)
               OR firsts.time_us > greatest(carried.last_end_us, requests.time_us + requests.blocked_us
                                            - requests.again_us) + $prompt_us
               OR coalesce(lasts.time_us - firsts.time_us <= $together_us, false) AS stayed
      FROM requests
           LEFT JOIN carried ON carried.instance = requests.instance AND carried.dial = requests.first_dial
           LEFT JOIN closes AS firsts ON firsts.instance = requests.instance AND firsts.id = requests.first_dial
           LEFT JOIN closes AS lasts ON lasts.instance = requests.instance AND lasts.id = requests.dial
     WHERE requests.protocol IN ('http2', 'grpc') AND requests.sent_again > 0
)
SELECT instance, id, first_dial, sent_again, again_us, carried,
       CASE WHEN stayed THEN 'refused' WHEN closed_us IS NOT NULL THEN 'goaway' END AS why,
       if(why = 'goaway', closed_us, NULL) AS ended_us,
       if(why = 'goaway', count(*) OVER (PARTITION BY instance, first_dial, why), NULL) AS together
  FROM found
 ORDER BY instance, id;
