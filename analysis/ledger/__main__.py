"""Prints docs/causes.md: `python -m analysis.ledger > docs/causes.md`."""

from __future__ import annotations

import sys

from analysis.ledger.causes import CAUSES, UNEXPLAINED

_INTRODUCTION = f"""\
# Causes

<!-- Made by `python -m analysis.ledger > docs/causes.md`; change the list in analysis/ledger/causes.py instead. -->

The ledger gives each request that failed, or was slower than the scenario's bound, one cause of this list: the first
whose proof is on record. What has none is `{UNEXPLAINED}`, printed first and counted against the scenario's tolerance.
derived/requests.parquet has each request's `cause` and the `evidence` for it; of an unexplained one, what is missing.

Most proofs are also of what did not come: an answer, a FIN. Where a capture is cut or unreadable, they prove nothing of
the requests that it may lack packets of; those are `{UNEXPLAINED}`, unless what proves their cause was seen.

Of a request that waited, the greatest part of its time that is proven is the cause, if the proven parts together are at
least half of its time, or leave no more of a slow request's time than the bound for slow ones. Times in the evidence
count from the beginning of the measurement.

| cause | what happened | what proves it |
|---|---|---|
"""


def markdown() -> str:
    """The content of docs/causes.md."""
    return _INTRODUCTION + "".join(f"| `{cause.name}` | {cause.meaning} | {cause.proof} |\n" for cause in CAUSES)


if __name__ == "__main__":
    sys.stdout.write(markdown())
