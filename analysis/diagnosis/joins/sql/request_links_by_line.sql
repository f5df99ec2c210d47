-- The lines of a proxy's log that numbers no connection.
UPDATE request_links SET access_instance = line_links.access_instance, line = line_links.line
  FROM line_links SEMI JOIN access
       ON access.instance = line_links.access_instance AND access.line = line_links.line
 WHERE line_links.instance = request_links.instance AND line_links.id = request_links.id
   AND request_links.line IS NULL;
