-- What queued inside the server that answered a request with 502 or 503, slowly, or not at all: at its unix sockets,
-- and at ports that no client comes to. Such a queue, once full, refuses at once by a unix socket: so the answer came
-- at once, too.
-- inside_full: the queue was full at the last tick before the answer and at the first one after it.
-- inside_refusals: how many messages of the server's own, of the answer's second, say that a unix socket refused it, if
-- these are as many as its answers of that second. Its clock may be a turn of its event loop late: then of both.
CREATE TABLE inside AS
WITH asked AS (
    SELECT cases.instance, cases.id, outcome = 'failed' AND status <> 0 AS failed,
           coalesce(tried.instance, flow_to_instance) AS service,
           coalesce(try_start_us, cases.time_us + blocked_us) AS asked_us,
           coalesce(try_start_us + try_response_us,
                    if(flow_server_last_data_time_us BETWEEN cases.time_us AND cases.end_us,
                       flow_server_last_data_time_us, NULL), cases.end_us) AS answered_us
      FROM cases LEFT JOIN addresses AS tried ON tried.address = host_of(try_server)
     WHERE outcome = 'slow' OR (outcome = 'failed' AND status IN (0, 502, 503))
), around AS (
    SELECT asked.*, earlier.time_us AS before_us, later.time_us AS after_us,
           answered_us // 1000000 * 1000000 AS second_us,
           (answered_us - $turn_us) // 1000000 * 1000000 AS second_before_us
      FROM asked
           ASOF LEFT JOIN ticks AS earlier
                ON earlier.instance = asked.service AND earlier.time_us <= asked.answered_us
           ASOF LEFT JOIN ticks AS later ON later.instance = asked.service AND later.time_us >= asked.answered_us
), held AS (
    SELECT around.instance, around.id, queues.name, max(queues.depth) AS depth,
           arg_max(queues.queue_limit, queues.depth) AS queue_limit,
           any_value(failed AND answered_us - asked_us <= $at_once_us AND queues.name LIKE 'unix:%')
               AND count(*) FILTER (queues.depth > queues.queue_limit
                                    AND queues.time_us IN (before_us, after_us)) = 2 AS is_full
      FROM around
           JOIN inner_queues AS queues
                ON queues.instance = around.service
               AND queues.time_us BETWEEN least(asked_us, before_us) AND coalesce(after_us, answered_us)
     GROUP BY ALL
), deepest AS (
    SELECT * FROM held
    QUALIFY row_number() OVER (PARTITION BY instance, id ORDER BY is_full DESC, depth - queue_limit DESC, name ASC) = 1
), answers AS (
    SELECT service, second_us, count(*) AS answers FROM around WHERE failed GROUP BY ALL
), messages AS (
    SELECT instance AS service, time_us AS second_us, count(*) AS messages, min(line) AS line, min(name) AS name
      FROM inner_refusals GROUP BY ALL
), seconds AS (
    SELECT around.instance, around.id, around.service, unnest(list_distinct([second_us, second_before_us])) AS second_us
      FROM around
     WHERE failed
), refused AS (
    SELECT seconds.instance, seconds.id, min(messages.name) AS name, min(messages.line) AS line,
           sum(messages)::BIGINT AS messages
      FROM seconds
           LEFT JOIN messages USING (service, second_us)
           LEFT JOIN answers USING (service, second_us)
     GROUP BY ALL
    HAVING sum(messages) >= sum(answers)
)
SELECT around.instance, around.id, around.service AS inside_of, coalesce(refused.name, deepest.name) AS inside_queue,
       deepest.depth AS inside_depth, deepest.queue_limit AS inside_limit,
       coalesce(deepest.is_full, false) AS inside_full,
       refused.messages AS inside_refusals, refused.line AS inside_line, around.answered_us AS inside_answered_us
  FROM around
       LEFT JOIN deepest ON deepest.instance = around.instance AND deepest.id = around.id
       LEFT JOIN refused ON refused.instance = around.instance AND refused.id = around.id
 WHERE deepest.depth IS NOT NULL OR refused.line IS NOT NULL
 ORDER BY ALL;
