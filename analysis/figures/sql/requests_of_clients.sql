-- What became of the clients' requests. `vu` 0 stands for what setup() and teardown() do, in no user's name.
SELECT count(*) AS total,
       count(*) FILTER (succeeded(error_code, status)) AS ok,
       count(DISTINCT row(instance, vu)) FILTER (vu <> 0) AS users,
       count(DISTINCT row(instance, vu)) FILTER (vu <> 0 AND NOT succeeded(error_code, status)) AS users_failed,
       count(*) FILTER (status = 0 AND receiving_us > 0) AS cut,
       count(*) FILTER (tls_us > 0 AND NOT reused) AS handshakes,
       count(*) FILTER (url LIKE 'https:%') AS over_tls,
       max(end_us) - min(time_us) AS lasted_us,
       coalesce(histogram(error_code), map()) AS codes,
       coalesce(histogram(status) FILTER (status > 0), map()) AS statuses
  FROM requests;
