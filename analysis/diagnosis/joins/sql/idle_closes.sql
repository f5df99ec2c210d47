-- How long each server kept idle connections, as measured from those that it closed in order when it had answered all
-- that had come. One that it closed right after an answer was not idle. A worker's end or a reload closes connections
-- at any time: then the times lie far apart, and tell nothing.
CREATE TABLE idle_closes AS
WITH closes AS (
    SELECT to_instance AS instance, server_fin_time_us - server_last_data_time_us AS idle_us
      FROM connections
     WHERE established AND closed_by = 'server' AND server_last_data_time_us >= client_last_data_time_us
), kept AS (
    SELECT instance, count(*) AS closes, min(idle_us) AS least_us,
           quantile_disc(idle_us, 0.1) AS low_us, quantile_disc(idle_us, 0.9) AS high_us
      FROM closes WHERE idle_us > $idle_us GROUP BY instance
)
SELECT instance, closes, low_us, high_us, greatest(least_us, low_us // 2) AS kept_us
  FROM kept WHERE closes >= $closes AND 2 * low_us >= high_us
 ORDER BY instance;
