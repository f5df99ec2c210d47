"""The ledger: every observer's counts against the others', and a proven cause for each request that failed or was slow.

In: evidence, its health, and the list of causes. Out: joined tables, the cause of each request, and what must be
equal on each hop.
It must not know figures by name, predictions, or how anything is shown.
"""
