-- A request with a connection of its own found it new, and has none to name if its dial failed.
UPDATE requests
   SET reused = false, remote = if(dials.error_kind IS NULL, requests.remote, NULL)
  FROM dials, dial_links
 WHERE requests.instance = $instance AND dials.instance = requests.instance AND dials.id = requests.dial
   AND dial_links.instance = dials.instance AND dial_links.dial = dials.id;
