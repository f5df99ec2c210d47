-- Requests that clients sent again by themselves over HTTP/2, and the connections whose GOAWAY was the reason.
SELECT count(*) AS requests,
       count(DISTINCT row(instance, first_dial)) FILTER (why = 'goaway') AS goaways
  FROM resent;
