-- The captures that have most packets twice, as of all interfaces of a host with a bridge: of most SYNs a copy follows
-- within 2 ms. No client sends one again so soon.
CREATE TABLE doubled AS
SELECT observer FROM captured WHERE syn_count > 0 GROUP BY observer
HAVING 2 * count(*) FILTER (syn_times_us[2] - syn_times_us[1] < 2000) > count(*) ORDER BY observer;
