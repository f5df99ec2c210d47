"""Evidence from production as files: captures, pasted dumps and logs become the folder of an observation.

In: files that somebody else recorded, told apart by their content. Out: a run's folder, analysed as one of `observe`.
It must not know what the evidence proves: analysis.diagnosis does.
"""
