"""Prints docs/causes.md: `python -m analysis.diagnosis.causes > docs/causes.md`."""

import sys

from analysis.diagnosis.causes import CAUSES, UNEXPLAINED

_NONE = UNEXPLAINED.name
_INTRODUCTION = f"""\
# Causes

<!-- Made by `python -m analysis.diagnosis.causes > docs/causes.md`;
change the records in analysis/diagnosis/causes/ instead. -->

The ledger names a cause for each request that failed or was slower than the scenario's bound: the first cause in this
list that the evidence proves. A request without a proven cause is `{_NONE}`. The ledger prints these requests first and
counts them against the scenario's tolerance. derived/requests.parquet has each request's `cause` and the `evidence` for
it, or what is missing. [The map](map.md) leads from each cause to the knobs that fix it, and `make advise` to a value.

Most proofs include something that did not come, such as an answer or a FIN. A capture that is cut or unreadable cannot
prove that. If it may lack a request's packets, the request is `{_NONE}`, unless the capture shows everything that
proves its cause.

The cause of a request that waited is its longest proven wait, if all proven waits together make up at least half of its
time. For a slow request it is also enough if the rest of its time is within the bound for slow requests. Times in the
evidence count from the start of the measurement.

A lesson is the scenario in which to meet the cause.

| cause | what happened | what proves it | lesson |
|---|---|---|---|
"""


def markdown() -> str:
    """Return the content of docs/causes.md."""
    return _INTRODUCTION + "".join(
        f"| `{cause.name}` | {cause.meaning} | {cause.proof} | {_link(cause.lesson)} |\n" for cause in CAUSES
    )


def _link(lesson: str | None) -> str:
    return f"[{lesson}](../scenarios/{lesson}/README.md)" if lesson else "none"


if __name__ == "__main__":
    sys.stdout.write(markdown())
