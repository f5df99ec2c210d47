"""Predictions judged, the verdict, and the files of derived/: the models that write them.

In: a run's figures and its account. Out: derived/verdict.json, ledger.json, figures.json and the tables beside them.
It must not know how anything is shown: no page, no comparison.
"""
