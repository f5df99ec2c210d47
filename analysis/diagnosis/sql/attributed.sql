-- Each request's cause, with the evidence for it, or what is missing for one, by the causes' own SQL.
CREATE TABLE attributed AS
SELECT instance, id, cause, $evidence || coalesce(acted_says, '') AS evidence
  FROM known JOIN decided USING (instance, id)
 ORDER BY instance, id;
