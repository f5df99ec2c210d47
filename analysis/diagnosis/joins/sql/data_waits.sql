-- For how long a request waited for its data or the answer's, in spans that do not overlap, on the client's connection
-- and on the proxy's (`up`): because some got lost on the way, or because its sender's kernel held it back (`held`).
-- Lost, where the capture is the sender's: from when it had the data first until it had it again, before the request
-- was over. In a receiver's capture that shows a lost acknowledgement only; where no capture has what the receiver's
-- kernel then sent again, its answer was lost, too. What a receiver's capture lacks of a request came a
-- retransmission's timeout or more after it was sent, or never, and the sender's kernel sent data again that no capture
-- has.
-- Held: from data to the next, where a bare acknowledgement of the other side came in between, late and right before.
CREATE TABLE data_waits AS
WITH asked AS (
    SELECT instance, id, false AS up, flow_observer AS observer, flow_id AS flow, instance AS sender,
           flow_to_instance AS server, time_us + blocked_us + sending_us AS sent_us, end_us,
           coalesce(server_close_us(flow_server_fin_time_us, flow_first_rst_by, flow_first_rst_time_us) < end_us, false)
               AS is_closed
      FROM cases
     WHERE flow_id IS NOT NULL AND flow_established AND remote IS NOT NULL
       AND (outcome = 'slow' OR (outcome = 'failed' AND status = 0))
     UNION ALL
    SELECT instance, id, true, up_observer, up_id, line_instance, up_to_instance,
           try_start_us + coalesce(try_connect_us, 0), try_start_us + try_response_us, true
      FROM cases WHERE outcome = 'slow' AND up_id IS NOT NULL AND try_response_us IS NOT NULL
), next AS (
    SELECT observer, flow, asks, time_us AS from_us, lead(time_us, 2) OVER packets AS until_us
      FROM sent_packets
    WINDOW packets AS (PARTITION BY observer, flow ORDER BY number)
   QUALIFY has_data AND first_us IS NULL AND lead(asks) OVER packets <> asks AND NOT lead(has_data) OVER packets
       AND lead(asks, 2) OVER packets = asks AND lead(has_data, 2) OVER packets
       AND lead(time_us) OVER packets - time_us BETWEEN $delayed_us AND $delayed_max_us
       AND lead(time_us, 2) OVER packets - lead(time_us) OVER packets <= $at_once_us
), meanwhile AS (
    SELECT asked.*, sent_packets.asks, sent_packets.first_us, sent_packets.time_us,
           bool_or(NOT asks) OVER (PARTITION BY asked.instance, asked.id, asked.up) AS is_answered
      FROM asked
           JOIN sent_packets ON sent_packets.observer = asked.observer AND sent_packets.flow = asked.flow
                            AND sent_packets.has_data
                            AND sent_packets.time_us BETWEEN asked.sent_us - $slack_us AND asked.end_us + $slack_us
), came AS (
    SELECT observer, flow, instance, id, min(time_us) AS came_us
      FROM meanwhile WHERE asks AND first_us IS NULL GROUP BY ALL
), spans AS (
    SELECT asked.instance, asked.id, up, false AS held, true AS asks, sent_us AS from_us,
           coalesce(came_us, if(is_closed, NULL, end_us)) AS until_us
      FROM asked LEFT JOIN came USING (observer, flow, instance, id)
     WHERE list_contains($again::VARCHAR[], sender) AND until_us - from_us >= $timeout_us
     UNION ALL
    SELECT instance, id, up, false, asks, first_us, time_us
      FROM meanwhile
     WHERE first_us >= sent_us - $slack_us
       AND (observer = if(asks, sender, server)
            OR (asks AND NOT is_answered AND list_contains($again::VARCHAR[], server)))
     UNION ALL
    SELECT asked.instance, asked.id, asked.up, true, next.asks, next.from_us, next.until_us
      FROM asked
           JOIN next ON next.observer = asked.observer AND next.flow = asked.flow
                    AND next.from_us >= asked.sent_us - $slack_us AND next.until_us <= asked.end_us + $slack_us
), apart AS (
    SELECT * REPLACE (greatest(from_us, coalesce(max(until_us) OVER (
               PARTITION BY instance, id, up ORDER BY from_us, until_us
               ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), from_us)) AS from_us)
      FROM spans
)
SELECT * FROM apart WHERE until_us > from_us ORDER BY ALL;
