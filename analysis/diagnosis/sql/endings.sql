-- The requests of each end that the lab gave a server in order (drain, stop, restart), and of each reload: those under
-- way at it then, and those that came to it until it served again. A request was at each server that it went to,
-- also in vain; `elsewhere` is one that another server answered.
CREATE TABLE endings AS
WITH visits AS (
    SELECT cases.instance, cases.id, flow_to_instance AS server FROM cases WHERE flow_to_instance IS NOT NULL
     UNION
    SELECT cases.instance, cases.id, addresses.instance
      FROM cases JOIN addresses ON addresses.address = host_of(dial_remote)
     UNION
    SELECT cases.instance, cases.id, addresses.instance
      FROM cases
           JOIN tries ON tries.instance = line_instance AND tries.line = line_line
           JOIN addresses ON addresses.address = tries.server_address
)
SELECT actions.number, cases.time_us >= actions.start_us AS came, cases.outcome = 'failed' AS lost,
       cases.outcome <> 'failed' AND coalesce(try_tries > 1 AND lasts.instance <> actions.instance, false) AS elsewhere,
       attributed.cause, count(*) AS requests
  FROM actions
       JOIN visits ON visits.server = actions.instance
       JOIN cases ON cases.instance = visits.instance AND cases.id = visits.id
       LEFT JOIN addresses AS lasts ON lasts.address = host_of(try_server)
       LEFT JOIN attributed ON attributed.instance = cases.instance AND attributed.id = cases.id
 WHERE actions.is_ending AND cases.end_us > actions.start_us
   AND cases.time_us < coalesce(actions.until_us, cases.end_us + 1)
 GROUP BY ALL
 ORDER BY ALL;
