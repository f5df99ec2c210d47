-- What stands in the way of telling requests apart, and how many there are.
SELECT count(*) AS total,
       count(*) FILTER (end_us IS NULL) AS unanswered,
       count(*) FILTER (turn = 0) AS spoken_first,
       count(*) FILTER (pieces > 1) AS in_pieces,
       (SELECT count(*) FROM connections
         WHERE hop = 1 AND in_window AND list_contains($servers, to_instance)
           AND (truncated_start OR handshakes_only OR NOT sequence_exact
                OR client_missing_bytes + server_missing_bytes > 0)) AS torn,
       (SELECT min(why) FROM unread_exchanges) AS unread
  FROM exchanges WHERE list_contains($servers, to_instance);
