-- What a proxy asked of a server for a client's request, by its last try: with the connection's ends where they are
-- known. The status of a failure that the log leaves open may be the proxy's own, so it is none of the server's.
INSERT INTO asked
SELECT request_links.instance, request_links.id, addresses.instance AS to_instance,
       connections.client_address AS address, connections.client_port AS port,
       tries.start_us AS time_us, coalesce(tries.start_us + tries.response_us, 1000 * access.time_ms) AS end_us,
       coalesce(tries.status, if(access.status < 500, access.status, 0)) AS status,
       access.request_method AS method, path_of(access.request_uri) AS path, access.request_id,
       true AS by_proxy
  FROM request_links
       JOIN access ON access.instance = request_links.access_instance AND access.line = request_links.line
       JOIN tries ON tries.instance = access.instance AND tries.line = access.line AND tries.try = tries.tries
       JOIN addresses ON addresses.address = tries.server_address
       LEFT JOIN try_links
            ON try_links.instance = tries.instance AND try_links.line = tries.line AND try_links.try = tries.try
       LEFT JOIN connections ON connections.observer = try_links.observer AND connections.id = try_links.flow;
