"""What a cause is, in one record: proof, words for people, place on the path, remedy and lesson."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from analysis.diagnosis.causes.remedies import Recorded, Remedy

# Places on the path.
BEFORE_CONNECTION = "Between {client} and {server}, before there was a connection."

# Which hop: the first, the last, or the last unless the client's own dial failed.
FIRST_HOP, LAST_HOP = "false", "true"
HOP_OF_DIAL = "dial_error_kind IS NULL AND access_line IS NOT NULL"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Why requests failed or were slow.

    In texts for people, `{client}` and `{server}` are the two roles of the hop.

    Attributes:
        name: as the ledger has it.
        meaning: what happened, in a sentence.
        proof: what must be on record, in sentences.
        when: the same as SQL, over the table `known` (analysis.diagnosis.attribution).
        says: SQL over the same table: the text that leads a reader to the records of one request.
        apart: SQL over the same table, where the proof compares times of two instances: how far these may be off
            against each other, in µs, and leave it a proof; NULL: by whatever.
        seen: whether what the proof names was seen. Else packets that did not come are a part of it, and a capture
            that lost some proves nothing.
        label: two or three words for people.
        symptom: what clients see of it, before anybody has looked.
        look: where to look first, as a command or a file that any machine has.
        because: continues a sentence after "because".
        where: where on the path it happened.
        hop: whether a request met it on the last hop, not on the first: SQL over derived/requests.parquet. Most of a
            run's requests decide.
        explains: how it comes about, one paragraph each.
        knobs: what may be turned, the most telling first, and what each does: a knob of the load or the kernel, or
            `{client}` or `{server}` and a limit that the role declares, whatever its program calls that. A report shows
            those of the hop's roles.
        remedy: computes the knob that helps and its value, None if it cannot help this run; or says why no knob helps.
        accept_queue: whether the server's accept queue was `full` or `held` the connection; None: it has no part in it.
        lesson: the scenario whose lesson is about it; None if there is no such scenario.
    """

    name: str
    meaning: str
    proof: str
    when: str
    says: str
    apart: str | None = None
    seen: bool = False
    label: str
    symptom: str
    look: str
    because: str
    where: str
    hop: str
    explains: tuple[str, ...]
    knobs: Mapping[str, str]
    remedy: Callable[[Recorded], Remedy | None] | str
    accept_queue: Literal["full", "held"] | None = None
    lesson: str | None

    @property
    def figure(self) -> str:
        """The name as part of a figure's name."""
        return self.name.replace("-", "_")
