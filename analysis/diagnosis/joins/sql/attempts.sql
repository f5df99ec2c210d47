-- What a file of results tells of connections: of each dial whether its connection stood, NULL where the file does not
-- say. A dial that connected took time to, or had an answer. An answered request without a dial may have opened one.
-- first_byte_us: when an answer began to come, which is its end where the file does not say.
SELECT request, time_us, end_us, first_byte_us, stood, answered, dial, remote_address, remote_port
  FROM (SELECT requests.id AS request, dials.time_us, requests.end_us, requests.status > 0 AS answered,
               dials.id AS dial,
               if(requests.status > 0, requests.end_us - requests.receiving_us, NULL) AS first_byte_us,
               remote_address, remote_port,
               CASE WHEN dials.error_kind IS NOT NULL THEN false
                    WHEN dials.duration_us > 0 OR requests.status > 0 OR requests.error_code = 0 THEN true END AS stood
          FROM addressed_dials AS dials
               JOIN requests ON requests.instance = dials.instance AND requests.dial = dials.id
         WHERE dials.instance = $instance
           AND coalesce(dials.error_kind, '') NOT IN ('address-not-available', 'unreachable')
        UNION ALL
        SELECT id, time_us, end_us, true, NULL, end_us - receiving_us, host_of(remote), port_of(remote), true
          FROM requests WHERE instance = $instance AND dial IS NULL AND remote IS NOT NULL)
 ORDER BY time_us, dial;
