"""From scenario.yaml, a preset, arms and the user's `knob=value` to an Effective: what will be run.

In: a scenario's file and overrides. Out: an Effective, checked as a whole, or every problem with file and line.
It must not know how anything is run: it starts nothing and writes nothing.
"""
