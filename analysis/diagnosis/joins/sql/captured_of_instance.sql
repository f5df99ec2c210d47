-- The connections in the capture of one instance, as the program `flows` wrote them.
INSERT INTO captured BY NAME
SELECT $columns, $observer AS observer, $handshakes_only AS handshakes_only
  FROM read_parquet($path, hive_partitioning = false)
 ORDER BY id;
