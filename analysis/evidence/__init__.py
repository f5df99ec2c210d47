"""Raw files as typed records and tables: one reader for each format, with what was missing or damaged beside it.

In: a run's manifest.json and raw/. Out: records, tables, and the window that the run is about.
It must not know what they mean: no health, no cause, no figure.
"""
