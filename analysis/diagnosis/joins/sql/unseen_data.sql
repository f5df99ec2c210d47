-- The senders whose connections are captured, and whose kernels sent data again that no capture has ($again).
CREATE TABLE unseen_data AS
SELECT DISTINCT from_instance AS instance FROM connections
 WHERE list_contains($again::VARCHAR[], from_instance)
 ORDER BY ALL;
