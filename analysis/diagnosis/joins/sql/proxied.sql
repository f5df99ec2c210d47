-- What stands at the proxy, of each request that has a line in its access log. Where that leaves open what became of
-- the last try, the try's connection tells.
CREATE TABLE proxied AS
SELECT request_links.instance, request_links.id,
       lines.instance AS line_instance, lines.line AS line_line, lines.time_ms AS line_time_ms,
       lines.connection AS line_connection, lines.request_time AS line_request_time,
       lines.status AS line_status, lines.gave_up AS line_gave_up,
       lines.upstream_addr = '' AND NOT coalesce(lines.guessed, false) AS line_tried_none,
       lines.guessed AS line_guessed,
       last_tries.tries AS try_tries, last_tries.server AS try_server,
       coalesce(last_tries.status, if(last_tries.guessed AND ups.established, lines.status, NULL)) AS try_status,
       coalesce(last_tries.connect_us,
                if(last_tries.guessed AND ups.established AND ups.first_time_us >= last_tries.start_us - $slack_us,
                   greatest(ups.answered_us - last_tries.start_us, 0), NULL)) AS try_connect_us,
       last_tries.header_us AS try_header_us, last_tries.response_us AS try_response_us,
       last_tries.start_us AS try_start_us, last_tries.names_dial AS try_names_dial, last_tries.dial AS try_dial,
       last_tries.reused AS try_reused, last_tries.unsent_bytes AS try_unsent_bytes,
       last_tries.connect_us IS NULL AND NOT last_tries.guessed AND coalesce(ups.established, last_tries.securing)
           AS try_securing,
       dials_in_doubt.possible AS doubt_possible, dials_in_doubt.silent AS doubt_silent,
       connects.possible AS connect_possible, connects.first_syn_us AS connect_first_syn_us,
       breaches.possible AS breach_possible, breaches.answered AS breach_answered,
       try_dials.error_kind AS try_dial_error_kind, try_dials.time_us AS try_dial_time_us,
       first_tries.server AS first_server, first_tries.status AS first_status, first_tries.start_us AS first_start_us,
       try_links.how AS up_how,
       COLUMNS(ups.*) AS 'up_\0'
  FROM request_links
       JOIN access AS lines
            ON lines.instance = request_links.access_instance AND lines.line = request_links.line
       LEFT JOIN tries AS last_tries
            ON last_tries.instance = lines.instance AND last_tries.line = lines.line
           AND last_tries.try = last_tries.tries
       LEFT JOIN tries AS first_tries
            ON first_tries.instance = lines.instance AND first_tries.line = lines.line AND first_tries.try = 1
       LEFT JOIN dials AS try_dials
            ON try_dials.instance = last_tries.instance AND try_dials.id = last_tries.dial
       LEFT JOIN try_links
            ON try_links.instance = lines.instance AND try_links.line = lines.line
           AND try_links.try = last_tries.try
       LEFT JOIN dials_in_doubt
            ON dials_in_doubt.instance = lines.instance AND dials_in_doubt.line = lines.line
           AND dials_in_doubt.try = last_tries.try
       LEFT JOIN (SELECT instance, line, try, count(*) AS possible, min(first_time_us) AS first_syn_us
                    FROM connects_in_doubt GROUP BY ALL) AS connects
            ON connects.instance = lines.instance AND connects.line = lines.line
           AND connects.try = last_tries.try
       LEFT JOIN (SELECT instance, line, try, count(*) AS possible, count(*) FILTER (answered) AS answered
                    FROM breaches_in_doubt GROUP BY ALL) AS breaches
            ON breaches.instance = lines.instance AND breaches.line = lines.line
           AND breaches.try = last_tries.try
       LEFT JOIN flows_with_proof AS ups ON ups.observer = try_links.observer AND ups.id = try_links.flow;
