-- Dials that were refused so close together that time alone cannot tell whose connection is whose: each gets one, in
-- their order, if as many connections began in that time as there were dials, and all of them were refused; or none of
-- them was answered, because ICMP messages refused the dials. Which one it is then makes no difference to what is said
-- of it.
INSERT INTO dial_links
WITH refused AS (
    SELECT *, time_us - $slack_us AS from_us, time_us + duration_us + $slack_us AS to_us
      FROM dials_of_unknown_port AS dials ANTI JOIN dial_links
           ON dial_links.instance = dials.instance AND dial_links.dial = dials.id
     WHERE error_kind = 'refused'
), apart AS (
    SELECT *, from_us > coalesce(max(to_us) OVER (before ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS first
      FROM refused WINDOW before AS (PARTITION BY instance, remote ORDER BY time_us, id)
), grouped AS (
    SELECT *, sum(first::BIGINT) OVER (PARTITION BY instance, remote ORDER BY time_us, id) AS number FROM apart
), groups AS (
    SELECT instance, remote_address, remote_port, number, min(from_us) AS from_us, max(to_us) AS to_us,
           array_agg(id ORDER BY time_us, id) AS dials
      FROM grouped GROUP BY ALL
), answered AS (
    SELECT groups.instance, groups.dials, connections.observer,
           array_agg(connections.id ORDER BY first_time_us, connections.id) AS flows
      FROM groups
           JOIN connections
                ON connections.from_instance = groups.instance AND connections.server_address = groups.remote_address
               AND connections.server_port = groups.remote_port
               AND connections.first_time_us BETWEEN groups.from_us AND groups.to_us
           ANTI JOIN dial_links ON dial_links.observer = connections.observer AND dial_links.flow = connections.id
     GROUP BY ALL
    HAVING (bool_and(connections.refused) OR bool_and(NOT connections.refused AND NOT connections.answered))
       AND count(*) = len(groups.dials)
)
SELECT instance, unnest(dials), observer, unnest(flows), 'group' FROM answered ORDER BY ALL;
