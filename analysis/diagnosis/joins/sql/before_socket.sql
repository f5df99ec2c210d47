-- Of each connection none of whose SYNs was answered: what the server's kernel counted from the tick before the first
-- of them to the first one after it would have sent its SYN-ACK again. Where it sent none again, and no cookie, the SYN
-- came to no socket, or a filter dropped the answer: what is dropped on its way out is not counted as sent.
-- tracked, tracked_max: its table of connections, where it follows connections.
CREATE TABLE before_socket AS
SELECT connections.observer, connections.id, later.syns_again - earlier.syns_again AS synacks_again,
       later.cookies_sent - earlier.cookies_sent AS cookies_sent,
       later.untracked - earlier.untracked AS untracked,
       greatest(earlier.tracked, later.tracked) AS tracked, later.tracked_max AS tracked_max
  FROM connections
       ASOF LEFT JOIN ticks AS earlier
            ON earlier.instance = connections.to_instance AND earlier.time_us <= connections.first_time_us - $slack_us
       ASOF LEFT JOIN ticks AS later
            ON later.instance = connections.to_instance
           AND later.time_us >= connections.first_time_us + $again_us + $slack_us
 WHERE NOT connections.answered AND connections.syns_lost > 0
   AND connections.observer = split_part(connections.to_instance, ':', 1)
 ORDER BY ALL;
