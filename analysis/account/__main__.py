"""Prints docs/causes.md: `python -m analysis.account > docs/causes.md`."""

from __future__ import annotations

import sys

from analysis.account.causes import CAUSES, UNEXPLAINED

_INTRODUCTION = f"""\
# Causes

<!-- Made by `python -m analysis.account > docs/causes.md`; change the list in analysis/account/causes.py instead. -->

The ledger gives a cause to each request that failed, or was slower than the scenario's bound: the first of this list
whose proof is on record. A request without one is `{UNEXPLAINED}`; the ledger prints these first and counts them
against the scenario's tolerance. derived/requests.parquet has each request's `cause` and the `evidence` for it, or what
is missing.

Most proofs include what did not come: an answer, a FIN. A capture that is cut or unreadable cannot prove that. Requests
whose packets it may lack are `{UNEXPLAINED}`, unless the capture shows all that proves their cause.

The cause of a request that waited is its longest proven wait, if the proven waits together cover at least half of its
time. For a slow request it is also enough if the rest of its time is within the bound for slow ones. Times in the
evidence count from the beginning of the measurement.

| cause | what happened | what proves it |
|---|---|---|
"""


def markdown() -> str:
    """The content of docs/causes.md."""
    return _INTRODUCTION + "".join(f"| `{cause.name}` | {cause.meaning} | {cause.proof} |\n" for cause in CAUSES)


if __name__ == "__main__":
    sys.stdout.write(markdown())
