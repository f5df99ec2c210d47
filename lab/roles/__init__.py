"""What the lab knows of single programs on the path.

In: what a program left or says of its settings. Out: those settings by the names of their knobs.
It must not know an engine or a run.
"""
