-- How many connections may have stood before each one in the accept queue as it came in, and how many of these the
-- server surely took up in vain: their clients had left before. The queue is first in, first out. Of several queues of
-- one port nobody knows who stands in which.
CREATE TABLE ahead AS
WITH entries AS (
    SELECT observer, id, to_instance, queued_us, accepted_before_us,
           row_number() OVER (PARTITION BY to_instance ORDER BY queued_us, observer, id) AS place,
           coalesce(gave_up_us <= accepted_after_us, false) AS vain
      FROM arriving_flows JOIN accepted USING (observer, id)
     WHERE queued_us IS NOT NULL
       AND to_instance NOT IN (SELECT instance FROM ticks WHERE listeners > 1)
), counts AS (
    SELECT *, count(*) FILTER (vain) OVER (PARTITION BY to_instance ORDER BY place) AS vain_so_far FROM entries
), gone AS (
    SELECT to_instance, accepted_before_us AS gone_us, max(place) AS places, max(vain_so_far) AS vain
      FROM counts
     WHERE accepted_before_us IS NOT NULL
     GROUP BY ALL
)
SELECT counts.observer, counts.id, counts.place - 1 - coalesce(gone.places, 0) AS ahead,
       counts.vain_so_far - if(counts.vain, 1, 0) - coalesce(gone.vain, 0) AS ahead_in_vain
  FROM counts
       ASOF LEFT JOIN gone ON gone.to_instance = counts.to_instance AND gone.gone_us <= counts.queued_us
 ORDER BY counts.observer, counts.id;
