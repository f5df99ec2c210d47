-- The SYNs of connections to a server that began in the window, that its capture has and nothing answered, and that
-- came to no socket: its kernel counted no drop around any of them. Where no later SYN was answered either, it sent no
-- SYN-ACK again.
SELECT coalesce(sum(syns_lost), 0)::BIGINT AS syns
  FROM connections
       JOIN syn_drop_proof ON syn_drop_proof.observer = connections.observer AND syn_drop_proof.id = connections.id
       LEFT JOIN before_socket
            ON before_socket.observer = connections.observer AND before_socket.id = connections.id
 WHERE in_window AND to_instance = $instance AND syns_not_dropped = syns_lost
   AND if(answered, connections.observer = split_part(to_instance, ':', 1), synacks_again = 0 AND cookies_sent = 0);
