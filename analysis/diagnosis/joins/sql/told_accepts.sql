-- Connections that the server's kernel told to have left the accept queue, and what its samples say of the same moment.
-- Such an event is of the last connection between its ends that had begun by then. It names the connection itself, so
-- it holds for several listeners of one port, too. A system that was watched has its servers as instance:port.
CREATE TABLE told_accepts AS
WITH accepts AS (
    SELECT instance, local, local_port, peer, peer_port, time_us, wait_us, program
      FROM kernel_events WHERE kind = 'accepted'
), first AS (
    SELECT observer, id, queued_us, time_us, wait_us, program
      FROM accepts ASOF JOIN (SELECT *, first_time_us - 1000 AS from_us FROM connections) AS begun
           ON begun.client_address = accepts.peer AND begun.client_port = accepts.peer_port
              AND begun.server_address = accepts.local AND begun.server_port = accepts.local_port
              AND accepts.time_us >= begun.from_us
     WHERE accepts.instance = split_part(begun.to_instance, ':', 1)
   QUALIFY row_number() OVER (PARTITION BY observer, id ORDER BY accepts.time_us) = 1
)
SELECT first.observer, first.id, greatest(first.time_us, first.queued_us) AS told_us, first.wait_us, first.program,
       accepted_after_us AS sampled_after_us, accepted_before_us AS sampled_before_us
  FROM first LEFT JOIN accepted ON accepted.observer = first.observer AND accepted.id = first.id
 ORDER BY first.observer, first.id;
