-- The error numbers of the system that the proxies' error logs name first in a line.
SELECT DISTINCT try_cast(regexp_extract(text, '\(([0-9]+): ', 1) AS BIGINT) AS number
  FROM errors WHERE number IS NOT NULL ORDER BY number;
