-- Lines of logs that number no connection, and what was asked. A line is a candidate if nothing that both have
-- contradicts it: address, port, method, path, status, the request's id, and a time within the request's. Of requests
-- one after the other, over one port or to one server that logs no ports, the k-th is the k-th line, if there are as
-- many and each is a candidate. Else a line is linked to the only request that it can be, which can have no other.
INSERT INTO line_links
WITH lines AS (
    SELECT *, 1000 * time_ms AS line_us, path_of(request_uri) AS path
      FROM (
               FROM access
              UNION ALL BY NAME
               FROM served_lines
           ) AS logged
      ANTI JOIN line_links ON line_links.access_instance = logged.instance AND line_links.line = logged.line
     WHERE connection IS NULL OR $by_proxy
), spans AS (
    SELECT *, unnest(range((time_us - $slack_us) // 1000000 - 1, (end_us + $late_us) // 1000000 + 1)) AS second
      FROM asked WHERE by_proxy = $by_proxy
), candidates AS (
    SELECT spans.instance, spans.id, to_instance, if(remote_port IS NULL, NULL, port) AS port,
           spans.time_us, spans.end_us, spans.status, lines.line, lines.line_us
      FROM spans
           JOIN lines ON lines.instance = spans.to_instance AND lines.line_us // 1000000 = spans.second
     WHERE lines.line_us + coalesce(lines.resolution_us, 1000) >= spans.time_us - $slack_us
       AND lines.line_us <= spans.end_us + $late_us
       AND coalesce(lines.remote_addr = spans.address, true) AND coalesce(lines.remote_port = spans.port, true)
       AND (spans.status = 0 OR lines.status = spans.status)
       AND coalesce(lines.request_method = spans.method, true) AND coalesce(lines.path = spans.path, true)
       AND coalesce(lines.request_id = spans.request_id, true)
       AND (spans.status = 0
            OR coalesce(1000000 * lines.request_time <= spans.end_us - spans.time_us + $late_us, true))
), requests_in_order AS (
    SELECT *, row_number() OVER by_time AS place, count(*) OVER (PARTITION BY to_instance, port) AS total,
           coalesce(lead(time_us) OVER by_time >= end_us, true) AS apart
      FROM (SELECT DISTINCT to_instance, port, instance, id, time_us, end_us FROM candidates WHERE status <> 0)
    WINDOW by_time AS (PARTITION BY to_instance, port ORDER BY time_us, instance, id)
), lines_in_order AS (
    SELECT *, row_number() OVER (PARTITION BY to_instance, port ORDER BY line_us, line) AS place,
           count(*) OVER (PARTITION BY to_instance, port) AS total
      FROM (SELECT DISTINCT to_instance, port, line, line_us FROM candidates)
), in_order AS (
    SELECT asked.instance, asked.id, lined.to_instance, lined.line
      FROM requests_in_order AS asked
           JOIN lines_in_order AS lined
                ON lined.to_instance = asked.to_instance AND lined.port IS NOT DISTINCT FROM asked.port
               AND lined.place = asked.place AND lined.total = asked.total
           LEFT JOIN candidates
                ON candidates.to_instance = lined.to_instance AND candidates.line = lined.line
               AND candidates.instance = asked.instance AND candidates.id = asked.id
    QUALIFY bool_and(asked.apart AND candidates.line IS NOT NULL)
            OVER (PARTITION BY lined.to_instance, lined.port)
), alone AS (
    SELECT instance, id, to_instance, line
      FROM candidates ANTI JOIN in_order USING (to_instance, line)
    QUALIFY count(*) OVER (PARTITION BY instance, id, to_instance) = 1
        AND count(*) OVER (PARTITION BY to_instance, line) = 1
)
SELECT instance, id, to_instance, line, 'order' FROM in_order
UNION ALL
SELECT instance, id, to_instance, line, 'alone' FROM alone
 ORDER BY ALL;
