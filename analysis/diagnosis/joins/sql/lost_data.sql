-- For how long a slow request waited for data that got lost on the way, in spans that do not overlap, on the client's
-- connection and on the proxy's (`up`).
-- Where the capture is the sender's, from when it had the data first until it had it again, before the request was
-- over. In a receiver's capture that shows a lost acknowledgement only. What it lacks of a request came a
-- retransmission's timeout or more after it was sent, and the sender's kernel sent data again that no capture has.
CREATE TABLE lost_data AS
WITH asked AS (
    SELECT instance, id, false AS up, flow_observer AS observer, flow_id AS flow, instance AS sender,
           flow_to_instance AS server, time_us + blocked_us + sending_us AS sent_us, end_us
      FROM cases WHERE outcome = 'slow' AND flow_id IS NOT NULL
     UNION ALL
    SELECT instance, id, true, up_observer, up_id, line_instance, up_to_instance,
           try_start_us + coalesce(try_connect_us, 0), try_start_us + try_response_us
      FROM cases WHERE outcome = 'slow' AND up_id IS NOT NULL AND try_response_us IS NOT NULL
), meanwhile AS (
    SELECT asked.*, data_sent.asks, data_sent.first_us, data_sent.time_us
      FROM asked
           JOIN data_sent ON data_sent.observer = asked.observer AND data_sent.flow = asked.flow
                         AND data_sent.time_us BETWEEN asked.sent_us - $slack_us AND asked.end_us + $slack_us
), spans AS (
    SELECT instance, id, up, true AS asks, sent_us AS from_us, min(time_us) AS until_us
      FROM meanwhile WHERE asks AND first_us IS NULL AND list_contains($again::VARCHAR[], sender)
     GROUP BY ALL
    HAVING until_us - from_us >= $timeout_us
     UNION ALL
    SELECT instance, id, up, asks, first_us, time_us
      FROM meanwhile WHERE first_us >= sent_us - $slack_us AND observer = if(asks, sender, server)
), apart AS (
    SELECT * REPLACE (greatest(from_us, coalesce(max(until_us) OVER (
               PARTITION BY instance, id, up ORDER BY from_us, until_us
               ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), from_us)) AS from_us)
      FROM spans
)
SELECT * FROM apart WHERE until_us > from_us ORDER BY ALL;
