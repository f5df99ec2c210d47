-- When the last try of a connection was over, of the tries that are known to be its own: infinity if nobody knows when.
CREATE VIEW last_known_tries AS
SELECT observer, flow, max(coalesce(start_us + response_us, 'infinity'::DOUBLE)) AS over_us
  FROM try_links JOIN tries USING (instance, line, try)
 GROUP BY ALL;
