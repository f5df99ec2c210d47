-- The client's own connections that carried data in the window. A second capture of one is not asked.
SELECT observer, id, to_instance, client_address, client_port, server_address, server_port, first_time_us, last_time_us,
       client_packets + server_packets AS packets
  FROM connections
 WHERE hop = 1 AND in_window AND client_first_data_time_us IS NOT NULL
 ORDER BY observer, id;
