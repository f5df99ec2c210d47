-- The clients that failed though a queue had a free place again, because their next SYN was due after their timeout.
WITH ticks AS (
    SELECT instance, time_us, listen_depth >= listen_limit + $queues AS is_full
      FROM timeline WHERE ticks > 0 AND listen_depth IS NOT NULL
), filled AS (
    SELECT instance, max(time_us) AS until_us FROM ticks WHERE is_full GROUP BY instance
), free AS (
    SELECT ticks.instance, min(ticks.time_us) AS since_us
      FROM ticks JOIN filled USING (instance) WHERE ticks.time_us > filled.until_us GROUP BY ticks.instance
), dials AS (
    SELECT to_instance AS instance, first_time_us, list_last(syn_times_us) AS last_us,
           dial_time_us + dial_duration_us AS end_us
      FROM requests JOIN flows ON observer = flow_observer AND flows.id = flow_id
     WHERE cause = $cause AND dial_error_kind = 'timeout' AND NOT established
)
SELECT count(*) AS count, min(since_us) AS since_us, max(last_us - first_time_us) AS last_us,
       min(end_us) AS first_end_us, max(end_us) AS last_end_us
  FROM dials JOIN free USING (instance) WHERE last_us < since_us AND since_us < end_us;
