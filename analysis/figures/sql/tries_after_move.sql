-- The tries of proxies at the two servers of a name, from its move on until it moved again.
SELECT tries.start_us, addresses.instance = $former AS went_to_old
  FROM tries JOIN addresses ON addresses.address = tries.server_address
 WHERE tries.start_us >= $start AND ($until IS NULL OR tries.start_us < $until)
   AND list_contains($proxies::VARCHAR[], tries.instance) AND addresses.instance IN ($former, $latter)
 ORDER BY ALL;
