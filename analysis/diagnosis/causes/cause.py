"""What a cause is, in one record: proof, words for people, place on the path, remedy and lesson.

Also the SQL for evidence that several causes tell, and what stands in a cause's place where none is proven.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from analysis.diagnosis.causes.remedies import NO_KNOB, AdvisedRun, Remedy

# Places on the path.
BEFORE_CONNECTION = "Between {client} and {server}, while connecting."

# Which hop: the first, the last, or the last unless the client's own dial failed.
FIRST_HOP, LAST_HOP = "false", "true"
HOP_OF_DIAL = "dial_error_kind IS NULL AND access_line IS NOT NULL"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Why requests failed or were slow.

    In texts for people, `{client}` and `{server}` are the two roles of the hop.

    Attributes:
        proof: what must be on record, in sentences.
        when: the same as SQL, over the table `known` (analysis.diagnosis.attribution).
        says: SQL over the same table: the text that leads a reader to the records of one request.
        apart: SQL over the same table, where the proof compares times of two instances: the largest error of their
            clocks, in µs, with which the proof still holds; NULL: any.
        seen: whether the proof rests on records that are there. Else it rests on packets that did not come, and a
            capture that lost some proves nothing.
        label: two or three words for people.
        symptom: what clients see of it, before anybody has looked.
        look: where to look first, as a command or a file that any machine has.
        because: continues a sentence after "because".
        where: where on the path it happened.
        hop: whether a request met it on the last hop, not on the first: SQL over derived/requests.parquet. Most of a
            run's requests decide.
        explains: how it comes about; an empty line is between two paragraphs.
        knobs: what may be turned, the most telling first, and what each does: a knob of the load or the kernel, or
            `{client}` or `{server}` and a limit that the role declares, whatever its program calls that. A report shows
            those of the hop's roles.
        remedy: computes the knob that helps and its value, or says what helps instead; None if nothing here does.
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
    hop: str = FIRST_HOP
    explains: str
    knobs: Mapping[str, str] = field(default_factory=dict)
    remedy: Callable[[AdvisedRun], Remedy | str | None] | str = NO_KNOB
    accept_queue: Literal["full", "held"] | None = None
    lesson: str | None

    @property
    def figure(self) -> str:
        """The name as part of a figure's name."""
        return self.name.replace("-", "_")

    @property
    def paragraphs(self) -> list[str]:
        """The paragraphs of the explanation; none of a cause that is not known here."""
        return self.explains.split("\n\n") if self.explains else []


_DIAL = """format('dial {}/{} from {} to {} began at {}', instance, dial, coalesce(dial_local, 'an unknown port'),
               coalesce(dial_remote, '?'), moment(dial_time_us))"""
DIAL_FAILED = f"{_DIAL} || format(' and failed after {{}} ({{}})', took(dial_duration_us), dial_error_kind)"
FLOW = "format('flow {}/{}', flow_observer, flow_id)"
UP = """format('the proxy tried {} at {}', try_server, moment(try_start_us))"""
UP_FLOW = "format('flow {}/{}', up_observer, up_id)"
# A service that answered with a server's error, for what it met on its way to the next server.
BEHIND = """format('{} answered with status {}', behind_from, status)"""
BEHIND_FLOW = f"""{BEHIND} || format('; its connection to {{}}, flow {{}}/{{}}', behind_to_instance, behind_observer,
               behind_id)"""
LINE = """format('{} line {}: status {} at {}', line_instance, line_line, line_status, moment(1000 * line_time_ms))
           || coalesce(format(', which it noted for its try {} of {}: {}', try_tries, try_server,
                              coalesce('status ' || try_status, 'nothing')), '')"""
# The same of a second proxy's log, whose line is that of a server of the first one.
OWN_LINE = """format('{} line {}: status {} at {}', own_instance, own_line, own_status, moment(own_time_us))
               || coalesce(format(', which it noted for its try {}: {}', nullif(own_server, ''),
                                  coalesce('status ' || own_try_status, 'nothing')), '')"""
ERROR = "coalesce('; error.log line ' || error_line::VARCHAR || ': ' || error_text, '')"


# Which timer of the proxy ended a try that was never connected.
CONNECT_TIMER = "coalesce('; the timer is ' || connect_timer, '')"


def syns(prefix: str) -> str:
    """Return SQL for a connection's SYNs and their times."""
    return f"""format('{{}} {{}} at {{}}', {prefix}_syn_count, if({prefix}_syn_count = 1, 'SYN', 'SYNs'),
        array_to_string(list_transform({prefix}_syn_times_us[1:12], lambda time: moment(time)), ', ')
        || if({prefix}_syn_count > 12, ', …', ''))"""


UNEXPLAINED = Cause(
    name="unexplained",
    meaning="It is not known.",
    proof="Nothing on record proves a cause.",
    when="true",
    # What is missing, as far as that can be told.
    says="""CASE WHEN doubted IS NOT NULL
              THEN format('{} is in doubt: its proof compares times of two machines, and {}', doubted,
                          if(apart_us < 1000000000000, 'their clocks are known within ' || took(apart_us) || ' only',
                             'nothing says how far their clocks differ'))
         WHEN remote IS NULL AND dial IS NULL THEN 'no dial is recorded for it'
         WHEN NOT captured OR torn THEN 'there is no complete capture of its connection'
         WHEN flow_id IS NULL THEN 'its connection is not in the capture'
         WHEN remote IS NULL AND flow_syns_unsampled > 0 THEN 'no samples of its server around its SYNs'
         WHEN remote IS NULL THEN format('of its {} lost SYNs, {} are proven to have met a full accept queue',
                                         flow_syns_lost, coalesce(flow_syns_overflowed, 0))
         WHEN flow_perhaps_unknown
              THEN 'its SYN may have been answered with a cookie, so it is unknown whether the server ever had it'
         WHEN proxied AND line_line IS NULL THEN 'no line of the access log belongs to it'
         WHEN proxied AND try_server IS NOT NULL AND up_id IS NULL
              THEN 'it is unknown which connection to ' || try_server || ' was its own'
         WHEN parts_us > 0 THEN format('the proven waits take {} of its {}', took(parts_us), took(total_us))
         ELSE 'no record shows where its time went' END""",
    seen=True,
    label="unexplained",
    symptom="anything",
    look="the report: what is missing",
    because="no record proves why",
    where="Unknown.",
    explains="A cause is given only where records prove it. Section 5 lists what is missing.",
    remedy="no record proves a cause; derived/ledger.json lists what is missing",
    lesson=None,
)
