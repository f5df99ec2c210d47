-- What stood behind the service that answered a request with a server error: on its hop to the next server, the most
-- ports that it held while it had the request, and the connection that failed last before the answer, if one began and
-- failed in that time. A failed connection is of one request: the one that was answered soonest after it failed. One
-- without any answer was given up at an unknown moment after its last SYN: it is of the request that came just before
-- it, or, if there are as many of them as requests, the k-th of the k-th. Where the service is a proxy whose log has
-- the request, that names the server, and perhaps the port of the last try.
-- waiting_sampled: all that the service's kernel had in TIME_WAIT, as its sampler counted at the last tick before the
-- answer.
CREATE TABLE behind AS
WITH asked AS (
    SELECT cases.instance, cases.id, coalesce(tried.instance, flow_to_instance) AS service,
           coalesce(try_start_us, cases.time_us + blocked_us) - $apart_us AS asked_us,
           coalesce(try_start_us + try_response_us, cases.end_us) + $apart_us AS answered_us, own_server,
           own_try_port, row_number() OVER (PARTITION BY service ORDER BY asked_us, cases.id) AS place,
           count(*) OVER (PARTITION BY service) AS total
      FROM cases LEFT JOIN addresses AS tried ON tried.address = host_of(try_server)
     WHERE outcome = 'failed' AND status >= 500
), held AS (
    SELECT asked.instance, asked.id, max(levels.held) AS held, arg_max(levels.waiting, levels.held) AS waiting,
           any_value(port_ranges.ports) AS ports, arg_max(levels.server_address, levels.held) AS server_address,
           arg_max(levels.server_port, levels.held) AS server_port
      FROM asked
           JOIN port_levels AS levels
                ON levels.from_instance = asked.service AND levels.time_us <= asked.answered_us
               AND (levels.until_us > asked.asked_us OR levels.until_us IS NULL)
           LEFT JOIN port_ranges ON port_ranges.instance = asked.service
     GROUP BY ALL
), named AS (
    SELECT asked.instance, asked.id, connections.*
      FROM asked
           JOIN (SELECT *, id AS flow, coalesce(answered_us, last_time_us) AS over_us
                   FROM connections WHERE NOT established) AS connections
                ON connections.from_instance = asked.service AND connections.client_port = asked.own_try_port
               AND connections.first_time_us BETWEEN asked.asked_us AND asked.answered_us
    QUALIFY row_number() OVER (PARTITION BY asked.instance, asked.id ORDER BY connections.first_time_us DESC) = 1
), failed AS (
    SELECT asked.instance, asked.id, connections.* EXCLUDE (place, total)
      FROM asked
           JOIN (SELECT *, id AS flow, coalesce(answered_us, last_time_us) AS over_us,
                        row_number() OVER (PARTITION BY from_instance, answered_us IS NULL
                                           ORDER BY first_time_us, observer, id) AS place,
                        count(*) OVER (PARTITION BY from_instance, answered_us IS NULL) AS total
                   FROM connections WHERE NOT established) AS connections
                ON connections.from_instance = asked.service AND connections.first_time_us >= asked.asked_us
               AND connections.over_us <= asked.answered_us
    QUALIFY row_number() OVER (
        PARTITION BY connections.observer, connections.flow
        ORDER BY connections.answered_us IS NULL AND connections.total = asked.total
                     AND connections.place = asked.place DESC,
                 if(connections.answered_us IS NULL, connections.first_time_us - asked.asked_us, asked.answered_us)
    ) = 1
), last AS (
    SELECT * FROM named
    UNION ALL
    SELECT * FROM failed ANTI JOIN asked AS told
           ON told.instance = failed.instance AND told.id = failed.id AND told.own_try_port IS NOT NULL
    QUALIFY row_number() OVER (PARTITION BY instance, id ORDER BY over_us DESC, flow ASC) = 1
)
SELECT asked.instance, asked.id, asked.service AS behind_from, held.held AS behind_held,
       held.waiting AS behind_waiting, held.ports AS behind_ports, waiting_sockets.count AS behind_waiting_sampled,
       coalesce(last.to_instance, told.instance, servers.instance) AS behind_to_instance,
       last.observer AS behind_observer, last.flow AS behind_id, last.established AS behind_established,
       last.refused AS behind_refused, last.answered_us AS behind_answered_us, last.syn_count AS behind_syn_count,
       last.syn_times_us AS behind_syn_times_us, last.syns_lost AS behind_syns_lost,
       proof.syns_overflowed AS behind_syns_overflowed, proof.depth_min AS behind_depth_min,
       proof.depth_max AS behind_depth_max, proof.queue_limit AS behind_queue_limit, proof.queues AS behind_queues,
       proof.queue AS behind_queue
  FROM asked
       ASOF LEFT JOIN waiting_sockets
            ON waiting_sockets.instance = asked.service AND waiting_sockets.time_us <= asked.answered_us
       LEFT JOIN held ON held.instance = asked.instance AND held.id = asked.id
       LEFT JOIN last ON last.instance = asked.instance AND last.id = asked.id
       LEFT JOIN syn_drop_proof AS proof ON proof.observer = last.observer AND proof.id = last.flow
       LEFT JOIN addresses AS servers ON servers.address = held.server_address
       LEFT JOIN addresses AS told ON told.address = host_of(asked.own_server)
 WHERE held.held IS NOT NULL OR last.flow IS NOT NULL OR told.instance IS NOT NULL
 ORDER BY ALL;
