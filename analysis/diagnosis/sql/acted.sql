-- What the lab did to a server, a client or a link that the request had to do with, while it had an effect; the longest
-- pause by its overlap, and the longest time within a processor limit that held a server (`throttled`) or the client
-- (`starved`), less what requests take without one: the median of those outside of it; where there are none, the
-- quickest; where all were slow, 0.
CREATE TABLE acted AS
WITH limited AS (
    SELECT min(start_us) AS start_us, max(until_us) AS until_us FROM actions WHERE throttled IS NOT NULL
), usual AS (
    SELECT coalesce(median(cases.end_us - cases.time_us)
                        FILTER (cases.end_us <= limited.start_us OR cases.time_us >= limited.until_us),
                    min(cases.end_us - cases.time_us), 0)::BIGINT AS usual_us
      FROM cases, limited WHERE outcome = 'ok'
), shared AS (
    SELECT cases.instance, cases.id, cases.time_us, actions.instance AS touched, actions.deed, actions.words,
           actions.throttled, touched = cases.instance AS of_client, actions.start_us,
           coalesce(actions.until_us, cases.end_us) AS over_us,
           least(over_us, cases.end_us) - greatest(actions.start_us, cases.time_us) AS for_us
      FROM cases
           LEFT JOIN addresses AS firsts ON firsts.address = host_of(dial_remote)
           LEFT JOIN addresses AS seconds ON seconds.address = host_of(try_server)
           JOIN actions ON actions.instance IN (cases.instance, flow_to_instance, firsts.instance, seconds.instance)
     WHERE cases.outcome <> 'ok' AND for_us > 0
)
SELECT instance, id, max(for_us) FILTER (deed = 'pause') AS overlap_us,
       min(touched ORDER BY for_us DESC) FILTER (deed = 'pause') AS paused,
       max(for_us) FILTER (throttled IS NOT NULL AND NOT of_client) - (SELECT usual_us FROM usual) AS throttled_us,
       min(touched ORDER BY for_us DESC) FILTER (throttled IS NOT NULL AND NOT of_client) AS throttled_server,
       min(throttled ORDER BY for_us DESC) FILTER (throttled IS NOT NULL AND NOT of_client) AS throttled_says,
       max(for_us) FILTER (throttled IS NOT NULL AND of_client) - (SELECT usual_us FROM usual) AS starved_us,
       min(throttled ORDER BY for_us DESC) FILTER (throttled IS NOT NULL AND of_client) AS starved_says,
       string_agg(format('; the lab had begun to {} at {}, {}', words, moment(start_us),
                         if(start_us <= time_us, took(time_us - start_us) || ' before the request',
                            took(start_us - time_us) || ' after the request began')), ''
                  ORDER BY start_us, touched) AS says
  FROM shared
 GROUP BY instance, id;
