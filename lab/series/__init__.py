"""Series: cells times repetitions in an order fixed by a seed. Arms, matrices and searches are all run by it.

In: scenarios with arms or levels, and an engine. Out: results/<scenario>/<series>/series.json, and a run for each step.
It must not know how a run works inside, nor how its results are printed.
"""
