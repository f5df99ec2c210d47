-- How long an instance kept idle connections, as measured from those that it closed (its `idle_closes`; no row where
-- these are too few or tell nothing), and how many answered requests came to one so late that it was about to close.
WITH used AS (
    SELECT flow_observer AS observer, flow_id AS id, time_us + blocked_us AS asked_us, end_us AS over_us,
           outcome <> 'failed' AS answered
      FROM cases WHERE flow_to_instance = $instance
    UNION ALL
    SELECT up_observer, up_id, try_start_us, try_start_us + try_response_us, outcome <> 'failed'
      FROM cases WHERE up_to_instance = $instance
), idle AS (
    SELECT answered, asked_us - lag(over_us) OVER (PARTITION BY observer, id ORDER BY asked_us, over_us) AS idle_us
      FROM used
)
SELECT low_us, high_us,
       (SELECT count(*) FROM idle WHERE answered AND idle_us >= idle_closes.low_us - $near_us)::BIGINT AS near
  FROM idle_closes WHERE instance = $instance;
