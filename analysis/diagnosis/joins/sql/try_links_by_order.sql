-- Tries that never connected, and connections that never stood; tries that connected, and connections that stood: the
-- k-th of the one is the k-th of the other, if there are as many, each begins with its partner and took as long to
-- connect, and no connection is kept for further requests. nginx's log does not name the port it connected from.
INSERT INTO try_links
WITH begun AS (
    SELECT * EXCLUDE (place),
           row_number() OVER (PARTITION BY instance, server, connected ORDER BY start_us, line, try) AS place,
           count(*) OVER (PARTITION BY instance, server, connected) AS total
      FROM tries ANTI JOIN try_links USING (instance, line, try)
     WHERE server_port IS NOT NULL AND NOT names_dial
), made AS (
    SELECT *, row_number() OVER (PARTITION BY from_instance, server_address, server_port, established
                                 ORDER BY first_time_us, observer, id) AS place,
           count(*) OVER (PARTITION BY from_instance, server_address, server_port, established) AS total
      FROM connections ANTI JOIN try_links
           ON try_links.observer = connections.observer AND try_links.flow = connections.id
)
SELECT begun.instance, begun.line, begun.try, made.observer, made.id AS flow, 'order' AS how
  FROM begun
       JOIN made ON made.from_instance = begun.instance AND made.server_address = begun.server_address
                AND made.server_port = begun.server_port AND made.established = begun.connected
                AND made.total = begun.total AND made.place = begun.place
QUALIFY bool_and(made.first_time_us BETWEEN begun.start_us - $slack_us AND begun.start_us + $turn_us
                 AND (connect_us IS NULL OR made.answered_us - made.first_time_us
                                            BETWEEN connect_us - $turn_us AND connect_us + $slack_us))
        OVER (PARTITION BY begun.instance, begun.server, begun.connected)
 ORDER BY ALL;
