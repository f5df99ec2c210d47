"""What stands in a cause's place where no cause is proven."""

from __future__ import annotations

from analysis.diagnosis.causes.cause import FIRST_HOP, Cause

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
         WHEN NOT captured OR torn THEN 'there is no sound capture of its connection'
         WHEN flow_id IS NULL THEN 'its connection is not in the capture'
         WHEN remote IS NULL AND flow_syns_unsampled > 0 THEN 'no samples of its server around its SYNs'
         WHEN remote IS NULL THEN format('of its {} SYNs that got lost, {} met as many overflows as came there',
                                         flow_syns_lost, coalesce(flow_syns_overflowed, 0))
         WHEN flow_perhaps_unknown
              THEN 'its SYN may have been answered with a cookie, and whether the server ever had it cannot be told'
         WHEN proxied AND line_line IS NULL THEN 'no line of the access log belongs to it'
         WHEN proxied AND try_server IS NOT NULL AND up_id IS NULL
              THEN 'which connection to ' || try_server || ' was its own cannot be told'
         WHEN parts_us > 0 THEN format('what is proven takes {} of its {}', took(parts_us), took(total_us))
         ELSE 'no evidence says where its time went' END""",
    seen=True,
    label="unexplained",
    symptom="anything",
    look="the report: what is missing",
    because="of a reason that nothing on record proves",
    where="Not known.",
    hop=FIRST_HOP,
    explains=("The ledger gives a cause only where records prove one; section 5 says what is missing.",),
    knobs={},
    remedy="no evidence proves a cause; derived/ledger.json says what is missing for each request",
    lesson=None,
)
