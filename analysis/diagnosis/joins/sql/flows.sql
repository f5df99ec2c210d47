-- `captured` with the instances at both ends, null where an address is not one of the run's.
CREATE TABLE flows AS
SELECT captured.observer, clients.instance AS from_instance, servers.instance AS to_instance,
       captured.* EXCLUDE (observer)
  FROM captured
       LEFT JOIN addresses AS clients ON clients.address = client_address
       LEFT JOIN addresses AS servers ON servers.address = server_address
 ORDER BY captured.observer, captured.id;
