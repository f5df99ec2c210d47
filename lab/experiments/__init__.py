"""Scenarios to their verdicts: one, the whole catalogue, and the recorded runs behind docs/experiments.md.

In: resolved scenarios. Out: outcomes, docs/experiments.jsonl, and the documents that are made from it.
It must not know how a run works: it calls run and series.
"""
