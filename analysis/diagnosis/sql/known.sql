-- All that the proof of a cause may rest on, for each request that failed or was slow.
CREATE TABLE known AS
WITH broken AS (
    SELECT *, server_close_us(flow_server_fin_time_us, flow_first_rst_by, flow_first_rst_time_us) AS flow_close_us,
           server_close_us(up_server_fin_time_us, up_first_rst_by, up_first_rst_time_us) AS up_close_us
      FROM cases WHERE outcome <> 'ok'
), ended AS (
    SELECT broken.instance, broken.id, ended_processes.pid AS ended_pid, ended_processes.comm AS ended_comm,
           ended_processes.line AS ended_line, ended_processes.seen_us AS ended_seen_us,
           ended_processes.gone_us AS ended_gone_us,
           count(*) OVER (PARTITION BY broken.instance, broken.id) - 1 AS ended_others
      FROM broken
           JOIN ended_processes
                ON ended_processes.instance = if(line_line IS NULL, flow_to_instance, up_to_instance)
               AND if(line_line IS NULL, flow_close_us, up_close_us) + $apart_us >= ended_processes.seen_us
               AND if(line_line IS NULL, flow_close_us, up_close_us) - $apart_us <= ended_processes.gone_us + $ending_us
    QUALIFY row_number() OVER (PARTITION BY broken.instance, broken.id
                               ORDER BY ended_line ASC NULLS FIRST, ended_seen_us DESC, ended_pid ASC) = 1
), first_lines AS (
    SELECT broken.instance, broken.id, access.instance AS unsent_instance, access.line AS unsent_line,
           access.status AS unsent_status, 1000 * access.time_ms AS unsent_time_us,
           access.upstream_addr AS unsent_server
      FROM broken
           JOIN dials ON dials.instance = broken.instance AND dials.id = broken.first_dial
           JOIN access ON access.remote_addr = host_of(dials.local) AND access.remote_port = port_of(dials.local)
                      AND 1000 * access.time_ms BETWEEN broken.time_us - $apart_us
                                                    AND broken.time_us + broken.again_us + $ending_us + $apart_us
     WHERE coalesce(broken.protocol, '') NOT IN ('http2', 'grpc')
   QUALIFY row_number() OVER (PARTITION BY broken.instance, broken.id
                              ORDER BY access.time_ms DESC, access.line DESC) = 1
), heard AS (
    SELECT broken.instance, broken.id, max(exchanges.heard_us) AS flow_heard_us
      FROM broken
           JOIN exchanges ON exchanges.observer = broken.flow_observer AND exchanges.flow = broken.flow_id
                         AND exchanges.asked_us <= broken.end_us
     GROUP BY ALL
)
SELECT broken.*, waits.* EXCLUDE (instance, id),
       list_sort([pool_us, up_pool_us, stream_us, goaway_us, refused_us, unanswered_us, syn_us, up_syn_us, lost_us,
                  up_lost_us, data_us, up_data_us, ack_wait_us, up_ack_wait_us, ack_us, up_ack_us, queue_us,
                  up_queue_us, tls_wait_us, up_tls_wait_us, thread_us, server_us, handler_us, lag_us, retry_us,
                  pause_us, throttled_us, starved_us], 'DESC') AS parts,
       parts[1] AS part_max_us, parts[2] AS part_next_us, list_sum(parts)::BIGINT AS parts_us,
       resent.first_dial AS sent_dial, resent.sent_again AS sent_times, resent.carried AS sent_beside,
       resent.ended_us AS sent_ended_us, resent.together AS sent_together,
       beside.* EXCLUDE (instance, id), behind.* EXCLUDE (instance, id),
       inside.* EXCLUDE (instance, id),
       $bound_us::BIGINT AS bound_us, $idle_percent_min AS idle_percent_min, $captured AS captured,
       $captured_behind AS captured_behind, $proxied AS proxied, $relayed AS relayed, $apart_us::BIGINT AS apart_us,
       coalesce(end_us > $whole_until_us, false) AS torn,
       CASE WHEN $proxied THEN flow_idle.kept_us
            ELSE coalesce($keep_alive_us::BIGINT, flow_idle.kept_us - $slack_us) END AS flow_keep_us,
       coalesce($keep_alive_us::BIGINT, up_idle.kept_us - $slack_us) AS up_keep_us,
       COLUMNS(flow_idle.* EXCLUDE (instance, kept_us)) AS 'flow_idle_\0',
       COLUMNS(up_idle.* EXCLUDE (instance, kept_us)) AS 'up_idle_\0',
       heard.flow_heard_us, ended.* EXCLUDE (instance, id),
       first_lines.* EXCLUDE (instance, id),
       if(status = 0, flow_away, up_away) AS away,
       timers.connect_timer, timers.answer_timer,
       own_timers.answer_timer AS own_answer_timer
  FROM broken
       LEFT JOIN waits USING (instance, id)
       LEFT JOIN resent USING (instance, id)
       LEFT JOIN beside USING (instance, id)
       LEFT JOIN behind USING (instance, id)
       LEFT JOIN inside USING (instance, id)
       LEFT JOIN ended USING (instance, id)
       LEFT JOIN heard USING (instance, id)
       LEFT JOIN first_lines USING (instance, id)
       LEFT JOIN timers ON timers.instance = broken.line_instance
       LEFT JOIN timers AS own_timers ON own_timers.instance = broken.own_instance
       LEFT JOIN turned_away AS flow_away
            ON flow_away.observer = broken.flow_observer AND flow_away.id = broken.flow_id
       LEFT JOIN turned_away AS up_away ON up_away.observer = broken.up_observer AND up_away.id = broken.up_id
       LEFT JOIN idle_closes AS flow_idle ON flow_idle.instance = broken.flow_to_instance
       LEFT JOIN idle_closes AS up_idle ON up_idle.instance = broken.up_to_instance
 ORDER BY broken.instance, broken.id;
