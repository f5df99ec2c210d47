"""The files that one part of connlab writes and another reads: one model for each, below `lab` and `analysis`.

A file of a run may come from anybody. `field_types` bounds what its fields may hold, and `safe_open` opens it.
"""
