"""The lesson's mode: what somebody expects is asked before a run, and shown beside what was measured after it."""
