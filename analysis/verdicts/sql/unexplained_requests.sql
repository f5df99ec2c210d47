-- The first requests whose cause nothing proves, with what is missing.
SELECT outcome, evidence AS why, instance || '/' || id AS request
  FROM attributed JOIN cases USING (instance, id)
 WHERE cause = $cause ORDER BY instance, id LIMIT $most;
