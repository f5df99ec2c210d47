-- Copies of SYNs and SYN-ACKs in a capture that has packets twice are taken out.
UPDATE captured SET
       syn_times_us = list_filter(syn_times_us, lambda time, n: n = 1 OR time - syn_times_us[n - 1] >= 2000),
       synack_times_us = list_filter(synack_times_us, lambda time, n: n = 1 OR time - synack_times_us[n - 1] >= 2000),
       syn_count = len(list_filter(syn_times_us, lambda time, n: n = 1 OR time - syn_times_us[n - 1] >= 2000)),
       synack_count = len(list_filter(synack_times_us, lambda time, n: n = 1 OR time - synack_times_us[n - 1] >= 2000))
 WHERE observer IN (SELECT observer FROM doubled);
