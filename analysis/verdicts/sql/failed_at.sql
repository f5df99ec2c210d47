-- What became of the connections that a full accept queue may have cost a server's clients. Some of those that left
-- had a SYN-ACK and no place in the queue: for their server they never were.
SELECT count(*) FILTER (cause IN ('accept-queue-drop', 'accept-queue-reset')) AS failed,
       count(*) FILTER (outcome = 'never-answered' AND cause = 'accept-queue-drop') AS never_answered,
       count(*) FILTER (outcome = 'never-accepted' OR outcome = 'given-up' AND cause = 'accept-queue-drop')
           AS never_accepted,
       count(*) FILTER (outcome = 'given-up' AND cause IS DISTINCT FROM 'accept-queue-drop') AS given_up,
       count(*) FILTER (outcome = 'recovered') AS recovered,
       min(syn_count) FILTER (outcome = 'never-answered') AS syns_min,
       max(syn_count) FILTER (outcome = 'never-answered') AS syns_max
  FROM ledger WHERE to_instance = $server;
