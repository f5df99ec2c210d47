-- The names that a script gave its requests, or the groups that it made them in; '' is outside of all groups.
SELECT if($parameter = 'group', "group", name) AS given, count(*) AS total,
       count(*) FILTER (NOT succeeded(error_code, status)) AS failed
  FROM requests WHERE given IS NOT NULL GROUP BY given ORDER BY given;
