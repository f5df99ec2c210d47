-- Who held the connections of each proxy when it first had none left for a request: its clients, by what their
-- connections carried then, and the proxy itself, towards servers. It holds one until its own FIN, or a RST.
-- out_of_files: whether it was for want of open files, by its log.
WITH refused AS (
    SELECT flow_to_instance AS proxy, min(end_us) AS refused_us,
           coalesce(bool_or(evidence LIKE '%Too many open files%'), false) AS out_of_files
      FROM attributed JOIN cases USING (instance, id)
     WHERE cause = $cause AND flow_to_instance IS NOT NULL
     GROUP BY flow_to_instance
), held AS (
    SELECT proxy, refused_us, out_of_files, observer, connections.id, to_instance = proxy AS of_client
      FROM refused JOIN connections ON proxy IN (from_instance, to_instance)
     WHERE established AND first_time_us <= refused_us
       AND coalesce(least(if(to_instance = proxy, server_fin_time_us, client_fin_time_us), first_rst_time_us)
                    > refused_us, true)
), carried AS (
    SELECT proxy, refused_us, out_of_files, of_client, held.observer, held.id, count(requests.id) > 0 AS asked,
           coalesce(bool_or(protocol = 'websocket' AND status = 101), false) AS session
      FROM held
           LEFT JOIN dial_links ON dial_links.observer = held.observer AND dial_links.flow = held.id
           LEFT JOIN requests ON requests.instance = dial_links.instance AND requests.dial = dial_links.dial
                AND refused_us BETWEEN requests.time_us AND requests.end_us
     GROUP BY ALL
)
SELECT proxy AS instance, refused_us AS time_us, out_of_files,
       count(*) FILTER (of_client AND session) AS sessions,
       count(*) FILTER (of_client AND asked AND NOT session) AS requests,
       count(*) FILTER (of_client AND NOT asked) AS idle,
       count(*) FILTER (NOT of_client) AS servers
  FROM carried
 GROUP BY proxy, refused_us, out_of_files
 ORDER BY proxy;
