-- Tries that were connected late, with the only connection that may be theirs, if it may be no other such try's.
INSERT INTO try_links
SELECT instance, line, try, observer, flow, 'connect' FROM connects_in_doubt
QUALIFY count(*) OVER (PARTITION BY instance, line, try) = 1 AND count(*) OVER (PARTITION BY observer, flow) = 1
 ORDER BY ALL;
