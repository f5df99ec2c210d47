-- When connections were accepted to which several listeners of one port have a queue each: nobody knows which is in
-- which queue, but once a second the collector names all that no program has accepted. One that no reading named may
-- have waited between two of them: there is no lower bound. One that was reset meanwhile waits all the same, and is not
-- named.
INSERT INTO accepted
WITH several AS (
    SELECT instance FROM ticks GROUP BY instance HAVING max(listeners) > 1
), entries AS (
    SELECT observer, id, split_part(to_instance, ':', 1) AS host, client_address, client_port, server_port,
           first_time_us, queued_us, server_first_data_time_us, first_rst_time_us
      FROM arriving_flows SEMI JOIN several ON several.instance = to_instance
     WHERE queued_us IS NOT NULL AND NOT perhaps_unknown
), named AS (
    SELECT entries.observer, entries.id, max(unaccepted.time_us) AS named_us
      FROM unaccepted
           ASOF JOIN entries
                ON entries.host = unaccepted.instance AND entries.client_address = unaccepted.peer
               AND entries.client_port = unaccepted.peer_port AND entries.server_port = unaccepted.port
               AND unaccepted.time_us >= entries.first_time_us
     GROUP BY ALL
), whole AS (
    SELECT instance, time_us FROM unaccepted_readings WHERE more = 0
), bounds AS (
    SELECT entries.*, named.named_us, greatest(queued_us + $slack_us, coalesce(named_us, 0)) AS from_us
      FROM entries LEFT JOIN named USING (observer, id)
), freed AS (
    SELECT bounds.observer, bounds.id, if(coalesce(first_rst_time_us <= whole.time_us, false), NULL, whole.time_us)
               AS free_us
      FROM bounds ASOF JOIN whole ON whole.instance = bounds.host AND whole.time_us > bounds.from_us
)
SELECT bounds.observer, bounds.id, if(named_us IS NULL, NULL, greatest(named_us, queued_us)) AS accepted_after_us,
       least(server_first_data_time_us, free_us + $slack_us) AS accepted_before_us
  FROM bounds LEFT JOIN freed USING (observer, id)
 WHERE named_us IS NOT NULL OR free_us IS NOT NULL
 ORDER BY bounds.observer, bounds.id;
