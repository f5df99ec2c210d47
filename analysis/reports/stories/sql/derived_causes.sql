-- Why requests failed or were slow, from requests.parquet.
SELECT instance, id, cause, evidence FROM read_parquet($path, hive_partitioning = false) WHERE cause IS NOT NULL;
