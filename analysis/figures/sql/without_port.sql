-- The dials of a role that found no free port, and those of them for which the capture shows the whole range in use.
SELECT count(*) AS failed, count(*) FILTER (held >= ports) AS short
  FROM port_shortages JOIN instances USING (instance) WHERE role = $role;
