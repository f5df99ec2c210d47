-- The connections of each hop.
CREATE VIEW connections AS
SELECT * FROM arriving_flows WHERE from_instance IS NOT NULL;
