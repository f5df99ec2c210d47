-- Each request with everything that the joins found to belong to it, in one row. When data passed on a connection by
-- TLS (`opaque`) says nothing of a request: handshakes are data too, and over HTTP/2, as by gRPC, requests share a
-- connection. A WebSocket takes as long as its handshake; how long it then stays open is its two sides' own wish.
CREATE TABLE cases AS
WITH requests AS (
    SELECT *, if(protocol = 'websocket' AND status = 101, blocked_us + tls_us + duration_us, end_us - time_us)
                  AS total_us
      FROM requests
)
SELECT requests.*,
       CASE WHEN NOT succeeded(requests.error_code, requests.status) THEN 'failed'
            WHEN requests.total_us > $slow_us THEN 'slow'
            ELSE 'ok' END AS outcome,
       dials.time_us AS dial_time_us, dials.duration_us AS dial_duration_us, dials.local AS dial_local,
       dials.remote AS dial_remote, dials.error AS dial_error, dials.error_kind AS dial_error_kind,
       secured.dial IS NOT NULL AS opaque, dial_links.how AS flow_how,
       COLUMNS(flows.* EXCLUDE (client_first_data_time_us, client_last_data_time_us, server_first_data_time_us,
                                server_last_data_time_us)) AS 'flow_\0',
       if(opaque, NULL, flows.client_first_data_time_us) AS flow_client_first_data_time_us,
       if(opaque, NULL, flows.client_last_data_time_us) AS flow_client_last_data_time_us,
       if(opaque, NULL, flows.server_first_data_time_us) AS flow_server_first_data_time_us,
       if(opaque, NULL, flows.server_last_data_time_us) AS flow_server_last_data_time_us,
       served.instance AS own_instance, served.line AS own_line, served.status AS own_status,
       round(1000000 * served.request_time)::BIGINT AS own_took_us,
       1000 * served.time_ms AS own_time_us, served.resolution_us AS own_resolution_us,
       served.gave_up AS own_gave_up, string_split(served.upstream_addr, ', ')[-1] AS own_server,
       try_cast(string_split(served.upstream_status, ', ')[-1] AS BIGINT) AS own_try_status,
       round(1000000 * seconds_of(served.upstream_connect_time)[-1])::BIGINT AS own_try_connect_us,
       round(1000000 * seconds_of(served.upstream_header_time)[-1])::BIGINT AS own_try_header_us,
       try_cast(string_split(served.upstream_local_port, ', ')[-1] AS BIGINT) AS own_try_port,
       proxied.* EXCLUDE (instance, id)
  FROM requests
       LEFT JOIN dials ON dials.instance = requests.instance AND dials.id = requests.dial
       LEFT JOIN (SELECT DISTINCT instance, dial
                    FROM requests WHERE tls_us > 0 OR protocol IN ('http2', 'grpc')) AS secured
            ON secured.instance = requests.instance AND secured.dial = requests.dial
       LEFT JOIN dial_links ON dial_links.instance = requests.instance AND dial_links.dial = requests.dial
       LEFT JOIN flows_with_proof AS flows ON flows.observer = dial_links.observer AND flows.id = dial_links.flow
       LEFT JOIN (SELECT line_links.instance AS of_instance, line_links.id AS of_id, served_lines.*
                    FROM line_links JOIN served_lines
                         ON served_lines.instance = line_links.access_instance AND served_lines.line = line_links.line
                 QUALIFY row_number() OVER (PARTITION BY of_instance, of_id ORDER BY served_lines.instance) = 1)
                 AS served
            ON served.of_instance = requests.instance AND served.of_id = requests.id
       LEFT JOIN proxied ON proxied.instance = requests.instance AND proxied.id = requests.id
 ORDER BY requests.instance, requests.id;
