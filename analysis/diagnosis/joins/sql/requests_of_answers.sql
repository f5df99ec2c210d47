-- The request of each of these dials; both have one number.
UPDATE requests SET dial = dials.id
  FROM dials
 WHERE requests.instance = $instance AND requests.dial IS NULL
   AND dials.instance = requests.instance AND dials.id = requests.id;
