-- What a proxy's error log, the shortages of ports and the lab's actions say of a request.
-- If nginx logged several errors about one connection, the last within the request's time counts; its log has seconds,
-- so one of another request may be among them: an error with the answer's body is of a try that had its header.
-- If they name no connection, one in the second in which the proxy closed the connection counts. nginx reads its clock
-- once in each turn of its event loop, so it may still write the second before.
CREATE TABLE beside AS
WITH broken AS (
    SELECT instance, id, dial, time_us, end_us, line_instance, line_line, line_connection, line_status,
           line_gave_up, line_tried_none, try_dial, try_tries, try_header_us, flow_to_instance,
           server_close_us(flow_server_fin_time_us, flow_first_rst_by, flow_first_rst_time_us) AS flow_close_us
      FROM cases WHERE outcome <> 'ok'
), complaints AS (
    SELECT broken.instance, broken.id, max_by(errors.line, errors.line) AS error_line,
           max_by(errors.text, errors.line) AS error_text
      FROM broken
           JOIN errors ON errors.instance = broken.line_instance AND errors.connection = broken.line_connection
                      AND errors.time_us BETWEEN (broken.time_us - $turn_us) // 1000000 * 1000000 - $apart_us
                                             AND broken.end_us + $apart_us
     WHERE CASE WHEN errors.text LIKE '%while reading upstream%' THEN broken.try_header_us IS NOT NULL
                WHEN errors.text LIKE '%while sending request to upstream%'
                  OR errors.text LIKE '%while reading response header from upstream%'
                THEN broken.try_header_us IS NULL OR broken.try_tries > 1
                ELSE true END
     GROUP BY ALL
), exhausted AS (
    SELECT instance, time_us AS second_us, min(line) AS line
      FROM errors WHERE connection IS NULL AND text LIKE '%worker_connections are not enough%' GROUP BY ALL
), ruled AS (
    SELECT broken.instance, broken.id,
           string_agg(rules.place || ': ' || rules.rule, ', or ' ORDER BY rules.number) AS rules_met
      FROM broken
           LEFT JOIN complaints USING (instance, id)
           JOIN rules ON rules.instance = broken.line_instance
     WHERE broken.line_tried_none
       AND rule_fits(rules.rule, broken.line_status, complaints.error_text, broken.line_gave_up)
     GROUP BY ALL
)
SELECT broken.instance, broken.id, complaints.error_line, complaints.error_text, acted.says AS acted_says,
       ruled.rules_met,
       if(flow_close_us - exhausted.second_us < 1000000 + $turn_us + $apart_us, exhausted.line, NULL) AS exhausted_line,
       coalesce(port_shortages.held, up_shortages.held, line_shortages.held) AS shortage_held,
       coalesce(port_shortages.waiting, up_shortages.waiting, line_shortages.waiting) AS shortage_waiting,
       coalesce(port_shortages.ports, up_shortages.ports, line_shortages.ports) AS shortage_ports
  FROM broken
       LEFT JOIN acted USING (instance, id)
       LEFT JOIN complaints USING (instance, id)
       LEFT JOIN ruled USING (instance, id)
       ASOF LEFT JOIN exhausted
            ON exhausted.instance = broken.flow_to_instance AND exhausted.second_us <= broken.flow_close_us
       LEFT JOIN port_shortages
            ON port_shortages.instance = broken.instance AND port_shortages.dial = broken.dial
       LEFT JOIN port_shortages AS up_shortages
            ON up_shortages.instance = broken.line_instance AND up_shortages.dial = broken.try_dial
       LEFT JOIN port_shortages AS line_shortages
            ON line_shortages.instance = broken.line_instance AND line_shortages.line = broken.line_line;
