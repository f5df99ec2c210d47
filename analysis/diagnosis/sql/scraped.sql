-- Running counts, so that what lies between two moments is a difference. saturated: every thread was busy. holes: times
-- without a reading, of which nobody knows how busy the threads were.
CREATE TABLE scraped AS
WITH spaced AS (
    SELECT *, time_us - lag(time_us) OVER (PARTITION BY instance ORDER BY time_us) AS since_us FROM scrapes
)
SELECT *, row_number() OVER readings AS scrapes, busy >= threads_max AS is_saturated,
       count(*) FILTER (busy >= threads_max) OVER readings AS saturated,
       count(*) FILTER (since_us > $gap_us) OVER readings AS holes
  FROM spaced
WINDOW readings AS (PARTITION BY instance ORDER BY time_us ROWS UNBOUNDED PRECEDING);
