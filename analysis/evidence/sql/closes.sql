-- The connections of an instance that its dials.jsonl says were closed, each once.
INSERT INTO closes BY NAME
SELECT instance, id, time_us, bytes_sent, bytes_received, error
  FROM dials WHERE instance = $instance AND line_kind = 5
QUALIFY row_number() OVER (PARTITION BY id ORDER BY dials.rowid) = 1
 ORDER BY dials.rowid;
