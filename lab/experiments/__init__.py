"""Recorded runs of the scenarios: docs/experiments.jsonl, and the documents that are made from it."""
