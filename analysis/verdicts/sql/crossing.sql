-- What left a peer, and what of it came to a target, by the captures at both ends.
WITH there AS (
    SELECT * FROM flows WHERE observer = $target
), here AS (
    SELECT flows.* FROM flows SEMI JOIN own ON own.observer = $target AND own.address = server_address
     WHERE flows.observer = $peer AND NOT truncated_start
)
SELECT count(*) FILTER (there.id IS NOT NULL) AS "both", count(*) FILTER (there.id IS NULL) AS peer_only,
       coalesce(sum(greatest(here.syn_count - coalesce(there.syn_count, 0), 0)), 0)::BIGINT
           AS syns_lost_between
  FROM here LEFT JOIN there
       ON there.client_address = here.client_address AND there.client_port = here.client_port
      AND there.server_address = here.server_address AND there.server_port = here.server_port
      AND there.client_isn = here.client_isn;
