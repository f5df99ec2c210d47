-- Connections of which a SYN got lost without a sample around it: the window may begin just after the first tick that
-- there is, and a SYN needs one before it.
SELECT count(*) AS count
  FROM syn_drop_proof JOIN connections USING (observer, id)
 WHERE in_window AND syns_unsampled > 0;
