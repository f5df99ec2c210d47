-- How long each server kept idle connections, as measured from those that it closed in order when it had answered all
-- that had come. One that it closed right after an answer was not idle, nor one that ended with a process of the server
-- (ended_processes). A reload closes connections at any time: then the times lie far apart, and tell nothing. Nor was
-- one idle on which a request was under way, by the client's record or the proxy's: an answer that paused for longer
-- than another timer bears, of a proxy for one.
CREATE TABLE idle_closes AS
WITH under_way AS (
    SELECT observer, flow AS id, time_us AS from_us, end_us AS to_us
      FROM dial_links JOIN requests USING (instance, dial)
     UNION ALL
    SELECT observer, flow, start_us, start_us + response_us FROM try_links JOIN tries USING (instance, line, try)
), closes AS (
    SELECT to_instance AS instance, server_fin_time_us - server_last_data_time_us AS idle_us
      FROM connections
     WHERE established AND closed_by = 'server' AND server_last_data_time_us >= client_last_data_time_us
       AND NOT EXISTS (FROM under_way
                        WHERE under_way.observer = connections.observer AND under_way.id = connections.id
                          AND server_fin_time_us BETWEEN from_us AND to_us + $slack_us)
       AND NOT EXISTS (FROM ended_processes
                        WHERE ended_processes.instance = to_instance
                          AND server_fin_time_us BETWEEN seen_us - $slack_us AND gone_us + $slack_us)
), kept AS (
    SELECT instance, count(*) AS closes, min(idle_us) AS least_us,
           quantile_disc(idle_us, 0.1) AS low_us, quantile_disc(idle_us, 0.9) AS high_us
      FROM closes WHERE idle_us > $idle_us GROUP BY instance
)
SELECT instance, closes, low_us, high_us, greatest(least_us, low_us // 2) AS kept_us
  FROM kept WHERE closes >= $closes AND 2 * low_us >= high_us
 ORDER BY instance;
