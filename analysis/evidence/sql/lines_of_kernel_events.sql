-- Each line of a collector's events.jsonl, and whether it is a whole event; a line that is no JSON object has no kind.
SELECT *, coalesce(time_us BETWEEN 0 AND 9007199254740992
                   AND (kind IN ('queued', 'accepted', 'connect_ended', 'retransmitted', 'synack_retransmitted',
                                 'reset_sent', 'reset_received')
                        AND local IS NOT NULL AND peer IS NOT NULL
                        AND local_port BETWEEN 0 AND 65535 AND peer_port BETWEEN 0 AND 65535
                        AND coalesce(wait_us BETWEEN 0 AND 9007199254740992, true)
                        OR kind = 'dropped' AND "from" IS NOT NULL AND "to" IS NOT NULL), false) AS whole
  FROM read_json($path, format = 'newline_delimited', ignore_errors = true, columns = $fields);
