"""Prints docs/causes.md: `python -m analysis.account > docs/causes.md`."""

from __future__ import annotations

import sys

from analysis.account.causes import CAUSES, UNEXPLAINED

_INTRODUCTION = f"""\
# Causes

<!-- Made by `python -m analysis.account > docs/causes.md`; change the list in analysis/account/causes.py instead. -->

The ledger names a cause for each request that failed or was slower than the scenario's bound: the first cause in this
list that the evidence proves. A request without a proven cause is `{UNEXPLAINED}`. The ledger prints these requests
first and counts them against the scenario's tolerance. derived/requests.parquet has each request's `cause` and the
`evidence` for it, or what is missing.

Most proofs include something that did not come, such as an answer or a FIN. A capture that is cut or unreadable cannot
prove that. If it may lack a request's packets, the request is `{UNEXPLAINED}`, unless the capture shows everything that
proves its cause.

The cause of a request that waited is its longest proven wait, if all proven waits together make up at least half of its
time. For a slow request it is also enough if the rest of its time is within the bound for slow requests. Times in the
evidence count from the start of the measurement.

| cause | what happened | what proves it |
|---|---|---|
"""


def markdown() -> str:
    """The content of docs/causes.md."""
    return _INTRODUCTION + "".join(f"| `{cause.name}` | {cause.meaning} | {cause.proof} |\n" for cause in CAUSES)


if __name__ == "__main__":
    sys.stdout.write(markdown())
