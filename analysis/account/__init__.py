"""The ledger: every observer's counts against the others', and a proven cause for each request that failed or was slow.

In: evidence and its health. Out: joined tables, causes, and what must be equal on each hop.
It must not know figures by name, predictions, or how anything is shown.
"""
