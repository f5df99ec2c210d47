-- The SYNs of connections to a server that began in the window and were never answered, and that came to no socket: its
-- kernel counted no drop around any of them, and sent no SYN-ACK again.
SELECT coalesce(sum(syns_lost), 0)::BIGINT AS syns
  FROM connections
       JOIN before_socket ON before_socket.observer = connections.observer AND before_socket.id = connections.id
       JOIN syn_drop_proof ON syn_drop_proof.observer = connections.observer AND syn_drop_proof.id = connections.id
 WHERE in_window AND to_instance = $instance AND NOT answered AND synacks_again = 0 AND cookies_sent = 0
   AND syns_not_dropped = syns_lost;
