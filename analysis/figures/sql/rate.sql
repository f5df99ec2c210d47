-- The successful requests, and the time from the beginning of the first request to the end of the last.
SELECT count(*) FILTER (succeeded(error_code, status)) AS ok, max(end_us) - min(time_us) AS lasted_us FROM requests;
