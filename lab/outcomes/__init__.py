"""Scenarios to their verdicts: one, or the whole catalogue.

In: resolved scenarios. Out: outcomes. It must not know how a run works: it calls run and series.
"""
