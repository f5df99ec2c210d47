"""Examines whether k6 kept its users' connections while others still asked for one.

Go closes a connection that it would keep when it learns more than 50 ms late that its request was written
(net/http: maxWriteWaitBeforeConnReuse): a k6 that gets too little of the processors gives places away.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.database import literal, over_files, sql
from analysis.diagnosis.health.problems import Evidence, Report
from analysis.formatting import counted

if TYPE_CHECKING:
    from analysis.evidence.rawrun import RawRun
    from analysis.evidence.window import Window

# Users of this workload hold their connections until they leave, whatever answer they get.
_WORKLOAD = "long_polling"


def examine(raw: RawRun, window: Window | None) -> Report | None:
    """Report on the connections that k6 gave up; None where no capture tells, or users may close theirs."""
    workload = raw.manifest.knobs.get("load.workload")
    if window is None or workload is None or workload.value != _WORKLOAD:
        return None
    servers = [each for role in raw.manifest.path[1:2] for each in raw.manifest.of_role(role)]
    reductions = [raw.reductions[each] for each in servers if each in raw.reductions]
    paths = [literal(each.rows) for each in reductions if each.rows is not None]
    if not paths:
        return None
    clients = [address for each in raw.manifest.of_role("k6") for address in raw.manifest.addresses.get(each, [])]
    given_up = sum(_given_up(path, window.start_us, clients) for path in paths)
    report = Report("connections", {"given_up": given_up})
    if given_up:
        report.add(
            f"k6 closed {counted(given_up, 'connection')} that its users would have kept, while others asked for"
            " one: it got too little of the processors",
            Evidence.LOAD,
        )
    return report


def _given_up(path: str, start_us: int, clients: list[str]) -> int:
    with over_files() as database:
        parameters = {"path": path, "start_us": start_us, "clients": clients}
        (count,) = database.execute(sql(__name__, "given_up"), parameters).fetchall()[0]
    return int(count)
