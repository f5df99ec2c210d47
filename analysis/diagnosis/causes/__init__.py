"""The closed list of causes, each in one record: proof, words for people, place on the path, remedy, lesson.

In: nothing; a remedy reads a run's manifest and ledger. Out: `CAUSES` in the order in which they are tried,
`UNEXPLAINED`, and `cause_named()`.
It must not know how evidence is joined, nor how anything is shown.
"""

from __future__ import annotations

from dataclasses import replace

from analysis.diagnosis.causes import answering, connecting, securing, streams, waiting
from analysis.diagnosis.causes.cause import UNEXPLAINED, Cause
from analysis.diagnosis.causes.remedies import NO_KNOB

__all__ = ["CAUSES", "UNEXPLAINED", "Cause", "cause_named"]

# A request has the first of them that its evidence proves. docs/causes.md is made from this list.
CAUSES = (*connecting.CAUSES, *securing.CAUSES, *streams.CAUSES, *answering.CAUSES, *waiting.CAUSES)

_BY_NAME = {cause.name: cause for cause in (*CAUSES, UNEXPLAINED)}


def cause_named(name: str) -> Cause:
    """Return the cause of this name; of one that only another version knows, its name for all words."""
    plain = name.replace("-", " ")
    return _BY_NAME.get(name) or replace(
        UNEXPLAINED,
        name=name,
        label=plain,
        because=f"its cause is “{plain}”",
        where="See section 5.",
        explains="",
        remedy=NO_KNOB,
    )
