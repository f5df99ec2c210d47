-- How many connections to an instance that began in the window the kernels of their ends told otherwise than the
-- packets, or than the samples of its queue.
-- An event is of the last connection between its ends that had begun by then.
WITH events AS (
    SELECT instance, kind, flags, time_us, true AS by_client, local AS client_address, local_port AS client_port,
           peer AS server_address, peer_port AS server_port
      FROM kernel_events
    UNION ALL
    SELECT instance, kind, flags, time_us, false, peer, peer_port, local, local_port FROM kernel_events
), of_connection AS (
    SELECT observer, id, kind, flags, by_client
      FROM events ASOF JOIN (SELECT *, first_time_us - 1000 AS from_us FROM connections) AS begun
           ON events.client_address = begun.client_address AND events.client_port = begun.client_port
              AND events.server_address = begun.server_address AND events.server_port = begun.server_port
              AND events.time_us >= begun.from_us
     WHERE events.instance = if(by_client, from_instance, to_instance)
), told AS (
    SELECT observer, id,
           count(*) FILTER (by_client AND kind = 'retransmitted' AND contains(flags, 'S')) AS syns,
           count(*) FILTER (NOT by_client AND kind = 'synack_retransmitted') AS synacks,
           count(*) FILTER (by_client AND kind = 'reset_sent') AS client_rsts,
           count(*) FILTER (NOT by_client AND kind = 'reset_sent') AS server_rsts
      FROM of_connection GROUP BY observer, id
)
SELECT count(*) FILTER (coalesce(syns, 0) <> syn_retransmissions) AS syns,
       count(*) FILTER (coalesce(synacks, 0) <> greatest(synack_count - 1, 0)) AS synacks,
       count(*) FILTER (coalesce(client_rsts, 0) <> client_rst_count
                        OR coalesce(server_rsts, 0) <> server_rst_count) AS resets,
       -- Accepted when the samples say that they were not.
       count(*) FILTER (told_us NOT BETWEEN sampled_after_us - $slack_us AND sampled_before_us + $slack_us) AS accepts
  FROM connections LEFT JOIN told USING (observer, id) LEFT JOIN told_accepts USING (observer, id)
 WHERE in_window AND to_instance = $instance;
