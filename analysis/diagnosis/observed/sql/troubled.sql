-- The connections of a capture with data, those first that sent some again, then those that lasted longest.
SELECT id, client_address, client_port, server_address, server_port, first_time_us, last_time_us, client_packets,
       server_packets
  FROM ledger WHERE observer = $observer AND client_unique_bytes + server_unique_bytes > 0
 ORDER BY client_retransmissions + server_retransmissions = 0, last_time_us - first_time_us DESC, id;
