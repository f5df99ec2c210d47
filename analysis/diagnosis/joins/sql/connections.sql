-- The connections of each hop.
CREATE VIEW connections AS
SELECT * FROM comers WHERE from_instance IS NOT NULL;
