-- What each line of an access log is (bulk.LineKind), and when its request began and ended. The file has neither header
-- nor end; a program that speaks may write sentences of its own.
SELECT time_ms, status,
       0 AS announced,
       if($whole, 0, if($speaks AND time_ms IS NULL AND status IS NULL, 3, 4)) AS line,
       time_ms - if(request_time BETWEEN 0 AND 1e9, (1000 * request_time)::BIGINT, 0) AS begin_ms
  FROM lines;
