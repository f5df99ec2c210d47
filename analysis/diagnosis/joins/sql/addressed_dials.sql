-- Dials with both ends in parts, by which connections are found.
CREATE VIEW addressed_dials AS
SELECT *, host_of(local) AS local_address, port_of(local) AS local_port,
       host_of(remote) AS remote_address, port_of(remote) AS remote_port
  FROM dials;
