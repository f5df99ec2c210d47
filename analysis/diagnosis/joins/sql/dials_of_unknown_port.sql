-- Dials of which nobody knows their own port. A dial for which there was no port sent no SYN, and one without a way
-- may have sent none.
CREATE VIEW dials_of_unknown_port AS
SELECT * FROM addressed_dials
 WHERE local IS NULL AND remote IS NOT NULL AND error_kind NOT IN ('address-not-available', 'unreachable');
