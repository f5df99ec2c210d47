"""The incident drill: a fault out of a catalogue, what an engineer on call sees of it, and a remedy that a run tests.

In: a seed and a level; a run's raw files. Out: evidence as text, a score. It must not know: causes by proof; those are
the ledger's, which is opened in the end.
"""
