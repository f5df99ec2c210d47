-- Slow tries that are still without a connection, as one over a kept connection is, by their exchange on it: its
-- request came when the try began, or its answer when the proxy had the header, and there was no other exchange on the
-- connection meanwhile. One end alone agrees where data got lost: a capture at the server has a request as it came at
-- last, and an answer as it was sent first.
-- An exchange both of whose ends agree with another try's is that one's, unless that try has one that agrees with none
-- else (sure), or the slow try has this one alone and the other try has more (spared).
INSERT INTO try_links
WITH known AS (
    SELECT tries.instance, line, try, server_address, server_port, start_us, start_us + header_us AS header_time_us,
           flow IS NULL AND response_us > $slow_us AS open, observer, flow
      FROM tries LEFT JOIN try_links USING (instance, line, try)
     WHERE NOT names_dial AND connected AND header_us IS NOT NULL
), seen AS (
    SELECT exchanges.*, connections.from_instance, connections.server_address, connections.server_port,
           lag(end_us) OVER (PARTITION BY exchanges.observer, flow ORDER BY turn) AS before_us,
           lead(time_us) OVER (PARTITION BY exchanges.observer, flow ORDER BY turn) AS after_us
      FROM exchanges_of_tries AS exchanges
           JOIN connections ON connections.observer = exchanges.observer AND connections.id = exchanges.flow
     WHERE exchanges.time_us IS NOT NULL AND exchanges.first_us IS NOT NULL
), sought AS (
    SELECT *, true AS at_begin, start_us // $at_once_us + unnest([-1, 0, 1]) AS place FROM known
     UNION ALL
    SELECT *, false, header_time_us // $at_once_us + unnest([-1, 0, 1]) FROM known
), placed AS (
    SELECT *, true AS at_begin, time_us // $at_once_us AS place FROM seen
     UNION ALL
    SELECT *, false, first_us // $at_once_us FROM seen
), pairs AS (
    SELECT DISTINCT sought.instance, sought.line, sought.try, sought.open, placed.observer, placed.flow, placed.turn,
           abs(placed.time_us - start_us) <= $at_once_us AS begins,
           abs(placed.first_us - header_time_us) <= $at_once_us AS ends
      FROM sought
           JOIN placed ON placed.from_instance = sought.instance AND placed.server_address = sought.server_address
                      AND placed.server_port = sought.server_port
                      AND placed.at_begin = sought.at_begin AND placed.place = sought.place
     WHERE (begins OR ends)
       AND placed.time_us BETWEEN start_us - $at_once_us AND header_time_us
       AND placed.first_us <= header_time_us + $at_once_us
       AND coalesce(placed.before_us, start_us) <= start_us + $at_once_us
       AND coalesce(placed.after_us, header_time_us) >= header_time_us - $at_once_us
       AND (sought.flow IS NULL OR (placed.observer = sought.observer AND placed.flow = sought.flow))
), sure AS (
    SELECT * FROM pairs WHERE begins AND ends QUALIFY count(*) OVER (PARTITION BY observer, flow, turn) = 1
), fitting AS (
    SELECT pairs.*
      FROM pairs LEFT JOIN sure USING (instance, line, try)
     WHERE sure.flow IS NULL OR (pairs.observer, pairs.flow, pairs.turn) = (sure.observer, sure.flow, sure.turn)
), free AS (
    SELECT * FROM fitting
    QUALIFY count(*) FILTER (begins AND ends) OVER (PARTITION BY observer, flow, turn) <= (begins AND ends)::INT
), alone AS (
    SELECT * FROM free
    QUALIFY count(*) OVER (PARTITION BY instance, line, try) = 1
        AND count(*) OVER (PARTITION BY observer, flow, turn) = 1
), counted AS (
    SELECT *, count(*) OVER (PARTITION BY instance, line, try) AS possible,
           begins AND ends AND count(*) FILTER (begins AND ends) OVER (PARTITION BY instance, line, try) > 1 AS spared
      FROM fitting
), needed AS (
    SELECT * FROM counted
    QUALIFY possible = 1
        AND count(*) FILTER (NOT spared) OVER (PARTITION BY observer, flow, turn) = 1
)
SELECT instance, line, try, observer, flow, 'exchange' FROM alone WHERE open
 UNION
SELECT instance, line, try, observer, flow, 'exchange' FROM needed WHERE open
 ORDER BY ALL;
