-- The servers that a proxy tried for a line of its access log, each with the connection that it went over.
SELECT tries.*, try_links.observer, try_links.flow, try_links.how
  FROM tries LEFT JOIN try_links USING (instance, line, try)
 WHERE instance = $instance AND line = $line ORDER BY try;
