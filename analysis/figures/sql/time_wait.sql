-- How many sockets of an instance are in TIME_WAIT at a tick: the least and the most that the captures allow.
-- Where a capture does not show the owner, a side that sent its FIN may be it.
-- Where both sent their FINs before they had the other's, a side that then sent a RST may have been in TIME_WAIT.
-- A side that still sent data behind the other's FIN may have closed before: its FIN waits behind data not sent yet.
-- By everything captured, the warm-up included: a socket in TIME_WAIT outlasts it. A later connection between the same
-- addresses and ports has taken the socket's place; a RST may have ended it (net.ipv4.tcp_rfc1337).
-- sockstat counts among them the sockets that wait for the other side's FIN and belong to no process any more
-- (net/ipv4/tcp_minisocks.c, tcp_time_wait); a capture cannot tell whether one does.
-- Beyond net.ipv4.tcp_max_tw_buckets the kernel closes a socket instead, and counts it as TCPTimeWaitOverflow. A
-- capture cannot tell which ones; `gone` are those, from the first overflow on, that are not in TIME_WAIT for other
-- reasons.
WITH ended AS (
    SELECT *, CASE WHEN simultaneous_close AND first_rst_by = side THEN NULL
                   WHEN first_fin_by <> side AND if(side = 'client', client_last_data_time_us >= server_fin_time_us,
                                                    server_last_data_time_us >= client_fin_time_us)
                        AND time_wait_owner <> 'none' THEN NULL
                   ELSE time_wait_owner IN (side, 'both') END AS waits,
           if(side = 'client', client_fin_time_us, server_fin_time_us) AS own_fin_us,
           if(side = 'client', server_fin_time_us, client_fin_time_us) AS other_end_us
      FROM (SELECT ours.*, later.id IS NOT NULL AS replaced,
                   if(ours.from_instance = $instance, 'client', 'server') AS side
              FROM connections AS ours
                   LEFT JOIN connections AS later
                        ON later.observer = ours.observer AND later.reused_port_of = ours.id
                       AND later.first_time_us <= $tick_us
             WHERE ours.from_instance = $instance OR ours.to_instance = $instance)
)
SELECT count(*) FILTER (NOT replaced AND waits AND client_rst_count + server_rst_count = 0
                        AND last_time_us <= $tick_us - $slack_us AND last_time_us > $tick_us - $short_us) AS least,
       count(*) FILTER (NOT replaced AND (
           coalesce(waits, own_fin_us IS NOT NULL)
           AND last_time_us <= $tick_us + $slack_us AND last_time_us > $tick_us - $long_us
           OR own_fin_us <= $tick_us + $slack_us AND own_fin_us > $tick_us - $long_us
              AND coalesce(least(other_end_us, first_rst_time_us) > $tick_us - $slack_us, true))) AS most,
       count(*) FILTER (own_fin_us > $overflow_us - $slack_us
                        AND (replaced OR client_rst_count + server_rst_count > 0)) AS gone
  FROM ended;
