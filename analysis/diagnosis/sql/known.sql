-- All that the proof of a cause may rest on, for each request that failed or was slow.
CREATE TABLE known AS
WITH broken AS (
    SELECT *, server_close_us(flow_server_fin_time_us, flow_first_rst_by, flow_first_rst_time_us) AS flow_close_us,
           server_close_us(up_server_fin_time_us, up_first_rst_by, up_first_rst_time_us) AS up_close_us
      FROM cases WHERE outcome <> 'ok'
)
SELECT broken.*, waits.* EXCLUDE (instance, id),
       greatest(pool_us, up_pool_us, syn_us, up_syn_us, ack_us, up_ack_us, queue_us, up_queue_us, tls_wait_us,
                thread_us, server_us, handler_us, lag_us, retry_us, pause_us)
           AS part_max_us,
       list_sort([pool_us, up_pool_us, syn_us, up_syn_us, ack_us, up_ack_us, queue_us, up_queue_us, tls_wait_us,
                  thread_us, server_us, handler_us, lag_us, retry_us, pause_us], 'DESC')[2]
           AS part_next_us,
       pool_us + up_pool_us + syn_us + up_syn_us + ack_us + up_ack_us + queue_us + up_queue_us + tls_wait_us + thread_us
           + server_us + handler_us + lag_us + retry_us + pause_us
           AS parts_us,
       beside.* EXCLUDE (instance, id), behind.* EXCLUDE (instance, id),
       $bound_us::BIGINT AS bound_us, $idle_percent_min AS idle_percent_min, $captured AS captured,
       $proxied AS proxied, $apart_us::BIGINT AS apart_us, $keep_alive_us::BIGINT AS keep_alive_us,
       coalesce(end_us > $whole_until_us, false) AS torn
  FROM broken
       LEFT JOIN waits USING (instance, id)
       LEFT JOIN beside USING (instance, id)
       LEFT JOIN behind USING (instance, id)
 ORDER BY broken.instance, broken.id;
