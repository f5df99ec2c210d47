-- What clients asked of the first server of the path: each request that had a connection, with its two ends.
CREATE TABLE asked AS
SELECT requests.instance, requests.id, addresses.instance AS to_instance,
       dials.local_address AS address, dials.local_port AS port, requests.time_us, requests.end_us, requests.status,
       requests.method, path_of(requests.url) AS path, NULL::VARCHAR AS request_id,
       false AS by_proxy
  FROM requests
       JOIN addressed_dials AS dials ON dials.instance = requests.instance AND dials.id = requests.dial
       JOIN addresses ON addresses.address = dials.remote_address
 WHERE requests.remote IS NOT NULL;
