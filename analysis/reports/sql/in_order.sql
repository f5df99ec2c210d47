-- The requests in the order in which they began; `place` is in it. Of a kept connection, nobody waited for the dial.
SELECT outcome, time_us, end_us, total_us, row_number() OVER (ORDER BY time_us, instance, id) AS place,
       if(reused, NULL, dial_time_us) AS dial_us, if(reused, NULL, dial_duration_us) AS dial_took_us
  FROM requests ORDER BY place;
