-- An event at its sender's end came before the same one at the other end. Both ends have as many connections of these
-- addresses and ports, so the n-th of the one is the n-th of the other; captures tell them by their ISN, too.
SELECT sent.machine AS first, come.machine AS later, sent.time_us AS first_us, come.time_us AS later_us
  FROM events AS sent
       JOIN events AS come
            ON come.client = sent.client AND come.server = sent.server AND come.what = sent.what
           AND come.place = sent.place AND come.places = sent.places
           AND (come.isn IS NULL OR sent.isn IS NULL OR come.isn = sent.isn)
 WHERE sent.side = sent.sender AND come.side <> sent.sender AND sent.machine <> come.machine;
