-- When the TLS handshakes in the capture of one instance went on, as the program `flows` wrote it.
INSERT INTO tls_handshakes BY NAME
SELECT $observer AS observer, id, client_hello_time_us, server_hello_time_us, client_reply_time_us, tls_end_time_us
  FROM read_parquet($path, hive_partitioning = false)
 WHERE client_hello_time_us IS NOT NULL
 ORDER BY id;
