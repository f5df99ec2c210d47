-- What a capture at one end of a connection has of it, of those that it has from their first SYN on. A sender's last
-- packet may have been lost, but what a client sent with its last request had come when it was answered.
INSERT INTO events BY NAME
WITH known AS (
    SELECT *, client_address || ' ' || client_port AS client, server_address || ' ' || server_port AS server
      FROM read_parquet($path, hive_partitioning = false)
     WHERE NOT truncated_start AND syn_count > 0 AND client_address <> server_address
       AND hash(client) % $one_of = 0
), placed AS (
    SELECT *, row_number() OVER (PARTITION BY client, server ORDER BY first_packet) AS place,
           count(*) OVER (PARTITION BY client, server) AS places
      FROM known
), ends AS (
    SELECT placed.*, machine, if(address = client_address, 'client', 'server') AS side
      FROM placed JOIN instances ON instance = $instance AND address IN (client_address, server_address)
), told AS (
    SELECT machine, side, client, server, client_isn, place, places,
           unnest(['answer', 'ack', 'client data', 'server data', 'last client data',
                   'client fin', 'server fin', 'client rst', 'server rst']) AS what,
           unnest(['server', 'client', 'client', 'server', 'client',
                   'client', 'server', 'client', 'server']) AS sender,
           unnest([synack_times_us[1], handshake_ack_time_us, client_first_data_time_us, server_first_data_time_us,
                   client_last_data_time_us, client_fin_time_us, server_fin_time_us,
                   if(first_rst_by = 'client', first_rst_time_us, NULL),
                   if(first_rst_by = 'server', first_rst_time_us, NULL)]) AS time_us
      FROM ends
    UNION ALL
    SELECT machine, side, client, server, client_isn, place, places,
           unnest(list_transform(range(1, len(syn_times_us) + 1),
                                 lambda n: if(n = 1, 'syn', 'syn ' || n || ' of ' || syn_count))) AS what,
           'client' AS sender, unnest(syn_times_us) AS time_us
      FROM ends
)
SELECT machine, side, client, server, client_isn AS isn, place, places, what, sender, time_us
  FROM told WHERE time_us IS NOT NULL AND (what <> 'last client data' OR side = 'server');
