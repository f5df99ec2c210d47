-- flows.parquet: each connection of the captures, with what the joins know about it.
SELECT flows.*, connections.hop, connections.in_window, connections.refused, connections.answered_us,
       connections.syns_lost, connections.ack_dropped_min, connections.ack_dropped_max, connections.entered,
       connections.queued_us, accepted_after_us, accepted_before_us
  FROM flows
       LEFT JOIN connections ON connections.observer = flows.observer AND connections.id = flows.id
       LEFT JOIN accepted ON accepted.observer = flows.observer AND accepted.id = flows.id
 ORDER BY flows.observer, flows.id;
