-- What the lab did to a server that the request had to do with, while it lasted; the longest pause by its overlap.
CREATE TABLE acted AS
WITH shared AS (
    SELECT cases.instance, cases.id, actions.instance AS touched, actions.deed, actions.start_us,
           coalesce(actions.end_us, cases.end_us) AS over_us,
           least(over_us, cases.end_us) - greatest(actions.start_us, cases.time_us) AS for_us
      FROM cases
           LEFT JOIN addresses AS firsts ON firsts.address = host_of(dial_remote)
           LEFT JOIN addresses AS seconds ON seconds.address = host_of(try_server)
           JOIN actions ON actions.instance IN (flow_to_instance, firsts.instance, seconds.instance)
     WHERE cases.outcome <> 'ok' AND for_us > 0
)
SELECT instance, id, max(for_us) FILTER (deed = 'pause') AS overlap_us,
       min(touched ORDER BY for_us DESC) FILTER (deed = 'pause') AS paused,
       string_agg(format('; the lab had begun to {} {} at {}', deed, touched, moment(start_us)), ''
                  ORDER BY start_us, touched) AS says
  FROM shared
 GROUP BY instance, id;
