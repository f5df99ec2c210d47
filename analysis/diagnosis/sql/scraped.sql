-- Running counts, so that what lies between two moments is a difference. saturated: every thread was busy. A connection
-- has one event loop for all its requests; so of loops one that is blocked is enough to keep a request waiting. holes:
-- times without a reading, of which nobody knows how busy the threads were.
CREATE TABLE scraped AS
WITH spaced AS (
    SELECT *, time_us - lag(time_us) OVER (PARTITION BY instance ORDER BY time_us) AS since_us,
           if(list_contains($loops::VARCHAR[], instance), 1, threads_max) AS most
      FROM scrapes
)
SELECT *, row_number() OVER readings AS scrapes, busy >= most AS is_saturated,
       count(*) FILTER (busy >= most) OVER readings AS saturated,
       count(*) FILTER (since_us > $gap_us) OVER readings AS holes
  FROM spaced
WINDOW readings AS (PARTITION BY instance ORDER BY time_us ROWS UNBOUNDED PRECEDING);
