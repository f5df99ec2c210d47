"""Engines: what starts, stops and removes the parts of a run.

In: a ResolvedScenario and its topology. Out: containers that run, their exits, events, logs and files.
It must not know the phases of a run, nor what is measured.
"""
