-- Copies of SYNs and SYN-ACKs in a capture that has packets twice are taken out.
UPDATE captured SET
       syn_times_us = once.syns_us, syn_count = len(once.syns_us),
       synack_times_us = once.synacks_us, synack_count = len(once.synacks_us)
  FROM (SELECT observer, id,
               list_select(syn_times_us,
                           list_filter(range(1, len(syn_times_us) + 1),
                                       lambda n: n = 1 OR syn_times_us[n] - syn_times_us[n - 1] >= 2000)) AS syns_us,
               list_select(synack_times_us,
                           list_filter(range(1, len(synack_times_us) + 1),
                                       lambda n: n = 1 OR synack_times_us[n] - synack_times_us[n - 1] >= 2000))
                   AS synacks_us
          FROM captured SEMI JOIN doubled USING (observer)) AS once
 WHERE once.observer = captured.observer AND once.id = captured.id;
