-- Why requests failed or were slow, from requests.parquet.
SELECT instance, id, cause, evidence FROM read_parquet($path) WHERE cause IS NOT NULL;
