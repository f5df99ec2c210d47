-- The established connections to a server that began in the window and that no request of the proxy's log used. A log
-- does not always tell the connection of a try that failed to connect, so these do not count.
SELECT count(*) AS checks
  FROM connections ANTI JOIN try_links
       ON try_links.observer = connections.observer AND try_links.flow = connections.id
 WHERE in_window AND established AND to_instance = $instance;
