-- A dial of which a file of results did not say that it failed, and whose connection never stood, by its packets: it
-- lasted as long as the request.
UPDATE dials
   SET error = requests.error, error_kind = if(connections.refused, 'refused', 'timeout'),
       duration_us = requests.end_us - requests.time_us
  FROM requests, dial_links, connections
 WHERE dials.instance = $instance AND dials.error_kind IS NULL
   AND requests.instance = dials.instance AND requests.dial = dials.id AND requests.error_code <> 0
   AND dial_links.instance = dials.instance AND dial_links.dial = dials.id
   AND connections.observer = dial_links.observer AND connections.id = dial_links.flow
   AND NOT connections.established;
