"""From scenario.yaml, a preset, arms and the user's `knob=value` to a ResolvedScenario: what will be run.

In: a scenario's file and overrides. Out: a ResolvedScenario, checked as a whole, or every problem with file and line.
It must not know how anything is run: it starts nothing and writes nothing.
"""
