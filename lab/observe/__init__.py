"""Watches a system that already runs: finds its targets, puts collectors beside them, and leaves without a trace.

In: what the user names, and an engine's containers. Out: a run's folder, analysed.
It must not know a scenario: nothing is started, loaded or predicted.
"""
