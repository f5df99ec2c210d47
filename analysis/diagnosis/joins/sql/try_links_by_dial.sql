-- The gateway's log names the dial of a try's connection, also of one that failed: its connection is that dial's, be it
-- made for this try or kept from before.
CREATE TABLE try_links AS
SELECT tries.instance, tries.line, tries.try, dial_links.observer, dial_links.flow, 'dial' AS how
  FROM tries JOIN dial_links ON dial_links.instance = tries.instance AND dial_links.dial = tries.dial
 ORDER BY ALL;
