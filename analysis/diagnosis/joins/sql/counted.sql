-- What a server's kernel counted: overflows of the accept queue, SYN cookies, and ACKs that a socket which waits for
-- data did not take (TCP_DEFER_ACCEPT).
CREATE VIEW counted AS
SELECT instance, max(overflows) > min(overflows) AS overflowed, max(cookies) > min(cookies) AS sent_cookies,
       max(deferred) > min(deferred) AS deferred
  FROM ticks GROUP BY instance;
