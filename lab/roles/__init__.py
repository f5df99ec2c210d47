"""What the lab knows of the programs on the path: each role is a folder, and its role.yaml declares it.

In: the role.yaml files. Out: declarations, types of knobs, and settings read back by the names of their knobs.
It must not know a scenario, an engine or a run.
"""
