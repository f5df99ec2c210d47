-- How many requests of clients went over TLS.
SELECT count(*) AS over_tls FROM requests WHERE url LIKE 'https:%';
