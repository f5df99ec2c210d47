-- The servers that closed connections as they came, and what they had run out of.
SELECT role, instance, count(*) AS connections, min(held) AS held, any_value(taken) AS taken,
       arg_max(comm, files) AS process, max(files) AS files
  FROM turned_away JOIN instances USING (instance)
 GROUP BY ALL
 ORDER BY instance;
