-- A dial, or a try of a proxy that logs no dials, looks for a port at some moment between its beginning and its end:
-- the most that were held in that time are what it met.
CREATE TABLE port_shortages AS
WITH seekers AS (
    SELECT instance, id AS dial, NULL::BIGINT AS line, remote_address, remote_port, time_us,
           time_us + duration_us AS end_us
      FROM addressed_dials WHERE error_kind = $error_kind
    UNION ALL
    -- A log of milliseconds, rounded down.
    SELECT access.instance, NULL, access.line, tries.server_address, tries.server_port, tries.start_us,
           1000 * access.time_ms + 1000
      FROM access JOIN tries ON tries.instance = access.instance AND tries.line = access.line
     WHERE access.gave_up = $gave_up AND tries.try = tries.tries
    UNION ALL
    -- A log of a declared format does not say why a try failed; this one has no connection.
    SELECT access.instance, NULL, access.line, tries.server_address, tries.server_port, tries.start_us,
           1000 * access.time_ms + greatest(access.resolution_us, 1000)
      FROM access
           JOIN tries ON tries.instance = access.instance AND tries.line = access.line
           ANTI JOIN try_links
                ON try_links.instance = tries.instance AND try_links.line = tries.line AND try_links.try = tries.try
     WHERE access.resolution_us IS NOT NULL AND access.status >= 500 AND tries.try = tries.tries
       AND tries.status IS NULL AND tries.local_port IS NULL
)
SELECT seekers.instance, seekers.dial, seekers.line, max(levels.held) AS held,
       arg_max(levels.waiting, levels.held) AS waiting, any_value(port_ranges.ports) AS ports
  FROM seekers
       LEFT JOIN port_ranges ON port_ranges.instance = seekers.instance
       LEFT JOIN port_levels AS levels
            ON levels.from_instance = seekers.instance AND levels.server_address = seekers.remote_address
           AND levels.server_port = seekers.remote_port AND levels.time_us <= seekers.end_us
           AND (levels.until_us > seekers.time_us OR levels.until_us IS NULL)
 GROUP BY ALL
 ORDER BY ALL;
