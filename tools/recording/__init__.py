"""The recorded runs of the catalogue: docs/experiments.jsonl, docs/recorded, and the documents made from them.

`python -m tools.recording record|experiments|mutate`
"""
