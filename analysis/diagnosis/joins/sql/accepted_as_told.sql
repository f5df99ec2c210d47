-- When connections were accepted: where the kernel told it, both bounds are its word.
CREATE OR REPLACE TABLE accepted AS
SELECT observer, id, told_us AS accepted_after_us, told_us AS accepted_before_us FROM told_accepts
 UNION ALL
SELECT observer, id, accepted_after_us, accepted_before_us
  FROM accepted ANTI JOIN told_accepts USING (observer, id)
 ORDER BY observer, id;
