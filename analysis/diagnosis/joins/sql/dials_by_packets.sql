-- The port that a dial of a file of results came from, by its connection's packets.
UPDATE dials
   SET local = if(contains(client_address, ':'), '[' || client_address || ']', client_address) || ':' || client_port
  FROM dial_links, connections
 WHERE dials.instance = $instance AND dials.local IS NULL
   AND dial_links.instance = dials.instance AND dial_links.dial = dials.id
   AND connections.observer = dial_links.observer AND connections.id = dial_links.flow;
