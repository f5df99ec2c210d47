-- The connections of a capture with data, those first that sent some again, then those that lasted longest: as many as
-- have so many packets, and at least one; of_all: how many there are.
WITH placed AS (
    SELECT *, count(*) OVER () AS of_all,
           row_number() OVER (ORDER BY client_retransmissions + server_retransmissions = 0,
                                       last_time_us - first_time_us DESC, id) AS place
      FROM ledger WHERE observer = $observer AND client_unique_bytes + server_unique_bytes > 0
)
SELECT id, client_address, client_port, server_address, server_port, first_time_us, last_time_us, of_all
  FROM placed
QUALIFY place = 1 OR sum(client_packets + server_packets) OVER (ORDER BY place) <= $packets
 ORDER BY place;
