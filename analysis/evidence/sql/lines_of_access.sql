-- What each line of an access log is (records.LineKind), and what it says. The file has neither header nor end; a
-- program that speaks may write sentences of its own.
SELECT *, $instance AS instance,
       if($whole, 0, if($speaks AND time_ms IS NULL AND status IS NULL, 3, 4)) AS line_kind
  FROM lines;
