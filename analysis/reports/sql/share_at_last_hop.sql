-- The share of a cause's requests that met it on the last hop; `$at_last_hop` is the cause's own SQL for it.
SELECT avg(($at_last_hop)::INTEGER) AS share FROM requests WHERE cause = $cause;
