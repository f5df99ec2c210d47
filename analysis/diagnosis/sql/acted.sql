-- What the lab did to a server, or a link, that the request had to do with, while it had an effect; the longest pause
-- by its overlap.
CREATE TABLE acted AS
WITH shared AS (
    SELECT cases.instance, cases.id, cases.time_us, actions.instance AS touched, actions.deed, actions.words,
           actions.start_us, coalesce(actions.until_us, cases.end_us) AS over_us,
           least(over_us, cases.end_us) - greatest(actions.start_us, cases.time_us) AS for_us
      FROM cases
           LEFT JOIN addresses AS firsts ON firsts.address = host_of(dial_remote)
           LEFT JOIN addresses AS seconds ON seconds.address = host_of(try_server)
           JOIN actions ON actions.instance IN (cases.instance, flow_to_instance, firsts.instance, seconds.instance)
     WHERE cases.outcome <> 'ok' AND for_us > 0
)
SELECT instance, id, max(for_us) FILTER (deed = 'pause') AS overlap_us,
       min(touched ORDER BY for_us DESC) FILTER (deed = 'pause') AS paused,
       string_agg(format('; the lab had begun to {} at {}, {}', words, moment(start_us),
                         if(start_us <= time_us, took(time_us - start_us) || ' before the request',
                            took(start_us - time_us) || ' after the request began')), ''
                  ORDER BY start_us, touched) AS says
  FROM shared
 GROUP BY instance, id;
