-- How many connections to an instance that began in the window its kernel told to have been accepted when the samples
-- of the queue say that they were not.
SELECT count(*) FILTER (told_us NOT BETWEEN sampled_after_us - $slack_us AND sampled_before_us + $slack_us) AS accepts
  FROM told_accepts JOIN connections USING (observer, id)
 WHERE in_window AND to_instance = $instance;
