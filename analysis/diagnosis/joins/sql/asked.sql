-- What clients asked of the first server of the path: each request that had a connection, with its two ends. A file of
-- results may not tell of a request which connection that was.
CREATE TABLE asked AS
SELECT requests.instance, requests.id, addresses.instance AS to_instance,
       dials.local_address AS address, dials.local_port AS port, requests.time_us, requests.end_us, requests.status,
       requests.method, path_of(requests.url) AS path, NULL::VARCHAR AS request_id,
       false AS by_proxy
  FROM requests
       LEFT JOIN addressed_dials AS dials ON dials.instance = requests.instance AND dials.id = requests.dial
       JOIN addresses ON addresses.address = coalesce(dials.remote_address, host_of(requests.remote))
 WHERE requests.remote IS NOT NULL;
