-- Tries that never connected, and connections that never stood; tries that connected at once, and connections that did;
-- tries that connected late, and connections whose SYN was sent again: the k-th of the one is the k-th of the other, if
-- there are as many, each begins with its partner and took as long to connect, and none of these connections is kept
-- for further requests: a try over a kept one connects at once. nginx's log does not name the port it connected from.
-- What begins a long turn after all before it is counted anew: a burst, with none of the connections of earlier ones.
-- `guessed`: only tries of a log whose format is declared.
INSERT INTO try_links
WITH open_tries AS (
    SELECT *, coalesce(connect_us >= $retry_us, false) AS late
      FROM tries ANTI JOIN try_links USING (instance, line, try)
     WHERE server_port IS NOT NULL AND NOT names_dial AND (guessed OR NOT $guessed)
), unclaimed AS (
    SELECT *, coalesce(answered_us - first_time_us >= $retry_us, false) AS late
      FROM connections ANTI JOIN try_links
           ON try_links.observer = connections.observer AND try_links.flow = connections.id
), moments AS (
    SELECT instance, server_address, server_port, start_us AS at_us FROM open_tries
     UNION ALL
    SELECT from_instance, server_address, server_port, first_time_us FROM unclaimed
), bursts AS (
    SELECT instance AS proxy, server_address, server_port, at_us AS burst FROM moments
    QUALIFY coalesce(at_us - lag(at_us) OVER (PARTITION BY instance, server_address, server_port ORDER BY at_us)
                     > $turn_us, true)
), tried AS (
    SELECT open_tries.*, bursts.burst
      FROM open_tries ASOF JOIN bursts
           ON open_tries.instance = bursts.proxy AND open_tries.server_address = bursts.server_address
          AND open_tries.server_port = bursts.server_port AND open_tries.start_us >= bursts.burst
), begun AS (
    SELECT *, row_number() OVER (PARTITION BY instance, server, connected, late, burst
                                 ORDER BY start_us, line, try) AS place,
           count(*) OVER (PARTITION BY instance, server, connected, late, burst) AS total
      FROM tried
), connecting AS (
    SELECT unclaimed.*, bursts.burst
      FROM unclaimed ASOF JOIN bursts
           ON unclaimed.from_instance = bursts.proxy AND unclaimed.server_address = bursts.server_address
          AND unclaimed.server_port = bursts.server_port AND unclaimed.first_time_us >= bursts.burst
), made AS (
    SELECT *, row_number() OVER (PARTITION BY from_instance, server_address, server_port, established, late, burst
                                 ORDER BY first_time_us, observer, id) AS place,
           count(*) OVER (PARTITION BY from_instance, server_address, server_port, established, late, burst) AS total
      FROM connecting
)
SELECT begun.instance, begun.line, begun.try, made.observer, made.id AS flow, 'order' AS how
  FROM begun
       JOIN made ON made.from_instance = begun.instance AND made.server_address = begun.server_address
                AND made.server_port = begun.server_port AND made.established = begun.connected
                AND made.late = begun.late AND made.burst = begun.burst
                AND made.total = begun.total AND made.place = begun.place
QUALIFY bool_and(made.first_time_us BETWEEN begun.start_us - $slack_us AND begun.start_us + $turn_us
                 AND (connect_us IS NULL OR made.answered_us - made.first_time_us
                                            BETWEEN connect_us - $turn_us AND connect_us + $slack_us))
        OVER (PARTITION BY begun.instance, begun.server, begun.connected, begun.late, begun.burst)
 ORDER BY ALL;
