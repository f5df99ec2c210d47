-- When the server that answers could begin with the request, when it was done with it, and when the answer left for the
-- client: `from_us`, `to_us`, `left_us`. In the capture, the server's last data is the answer to this request if it
-- left while the client waited for that; so is the last data of one of the connection's exchanges, as far as the client
-- was there to hear it. A request that was not sent has neither.
-- taken_us: when the server surely had the connection and the whole request, of one that it answered, or whose client
-- ended the connection before any answer.
CREATE TABLE served AS
WITH asked AS (
    SELECT *, time_us + blocked_us + sending_us AS sent_us FROM cases
     WHERE outcome = 'slow' OR (outcome = 'failed' AND status = 0)
), exchanged AS (
    SELECT asked.instance, asked.id, max(coalesce(heard_us, exchanges.end_us)) AS exchange_left_us,
           arg_max(exchanges.asked_us, coalesce(heard_us, exchanges.end_us)) AS exchange_asked_us
      FROM asked
           JOIN exchanges ON exchanges.observer = flow_observer AND exchanges.flow = flow_id
                         AND coalesce(heard_us, exchanges.end_us)
                             BETWEEN sent_us - $apart_us AND asked.end_us + $apart_us
     WHERE coalesce(protocol, '') NOT IN ('http2', 'grpc', 'websocket')
     GROUP BY ALL
), answered AS (
    SELECT asked.*, CASE WHEN flow_server_last_data_time_us BETWEEN sent_us - $apart_us AND end_us + $apart_us
                         THEN flow_server_last_data_time_us
                         ELSE exchange_left_us END AS left_us,
           CASE WHEN flow_client_last_data_time_us <= end_us THEN flow_client_last_data_time_us
                ELSE exchange_asked_us END AS came_us,
           if(flow_first_rst_by = 'client', least(flow_client_fin_time_us, flow_first_rst_time_us),
              flow_client_fin_time_us) AS client_end_us,
           coalesce(NOT opaque AND coalesce(flow_server_last_data_time_us < sent_us, true)
                    AND client_end_us BETWEEN sent_us - $apart_us AND asked.end_us + $gone_us + $apart_us
                    AND coalesce(flow_server_fin_time_us > client_end_us, true)
                    AND NOT coalesce(flow_first_rst_by = 'server' AND flow_first_rst_time_us < client_end_us, false),
                    false) AS has_left
      FROM asked LEFT JOIN exchanged USING (instance, id)
)
SELECT instance, id, flow_to_instance AS server, left_us,
       CASE WHEN remote IS NOT NULL THEN greatest(sent_us, coalesce(flow_accepted_after_us, 0)) END AS from_us,
       CASE WHEN remote IS NOT NULL THEN coalesce(left_us, end_us) END AS to_us,
       CASE WHEN remote IS NOT NULL AND (left_us IS NOT NULL OR has_left) AND flow_accepted_before_us IS NOT NULL
            THEN greatest(sent_us, flow_accepted_before_us, came_us)
       END AS taken_us,
       flow_accepted_after_us IS NOT NULL AS acceptance_known
  FROM answered;
