-- What the gateway says of its connections to the backends in the window, by the figures' names.
-- It writes its access log, which has the tries, in milliseconds, rounded down.
WITH dialled AS (
    SELECT count(*) AS dials_total, count(error_kind) AS dials_failed,
           count(*) FILTER (error_kind IS NULL) AS connections_opened, coalesce(histogram(error_kind), map()) AS kinds
      FROM dials JOIN instances USING (instance)
     WHERE role = $role AND time_us BETWEEN $start_us AND $end_us
), closed AS (
    SELECT count(*) AS connections_closed, count(error) AS connections_closed_by_peer
      FROM closes JOIN instances USING (instance)
     WHERE role = $role AND time_us BETWEEN $start_us AND $end_us
), tried AS (
    SELECT count(*) FILTER (reused) AS connections_reused
      FROM tries JOIN instances USING (instance)
     WHERE role = $role AND start_us BETWEEN $start_us // 1000 * 1000 AND $end_us
)
SELECT * FROM dialled, closed, tried;
