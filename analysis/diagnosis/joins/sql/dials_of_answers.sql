-- A request of results of which the file told no dial, and whose connection packets told: it dialled.
INSERT INTO dials BY NAME
SELECT requests.instance, requests.id, vu, time_us, 0 AS duration_us, remote
  FROM requests
       SEMI JOIN dial_links ON dial_links.instance = requests.instance AND dial_links.dial = requests.id
 WHERE requests.instance = $instance AND requests.dial IS NULL;
