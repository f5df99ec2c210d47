-- Of each connection to a server that began in the window: how long its handshake took, and its SYNs if none got an
-- answer.
SELECT handshake_us, if(NOT answered AND NOT refused, syn_count, NULL) AS syns_of_unanswered
  FROM connections WHERE in_window AND to_instance = $instance;
