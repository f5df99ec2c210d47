"""The table `attributed`: each request's cause, with the evidence for it, or what is missing for one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.account import waits
from analysis.account.slack import CLOCK_SLACK_US, NGINX_TURN_US
from analysis.causes import CAUSES, UNEXPLAINED
from analysis.database import create, has_rows
from analysis.health import limits

if TYPE_CHECKING:
    from analysis.account.joins import Joined
    from analysis.causes import Cause
    from analysis.evidence.manifest import Manifest

TABLES = ("waits", "attributed")

_ANY = (*CAUSES, UNEXPLAINED)


def build(
    joined: Joined,
    manifest: Manifest,
    start_us: int,
    *,
    captured: bool,
    whole_until_us: int | None,
) -> None:
    """Make the tables `waits`, `known`, `decided` and `attributed`.

    Args:
        joined: the run.
        manifest: the run's.
        start_us: when the measurement began; evidence tells times from there.
        captured: whether there is a sound capture of the client's connections, so that what is not in it was not there.
        whole_until_us: until when the captures hold all packets; None: to their end. What came of a request after that
            may be missing.
    """
    joined.need("cases")
    database = joined.database
    proxied = len(manifest.path) > 2  # noqa: PLR2004  client and server
    database.execute(_MACROS.format(start_us=int(start_us)))
    waits.build(database, proxied=proxied)
    constants = {
        "bound_us": None if manifest.slow_ms is None else 1000 * manifest.slow_ms,
        "idle_percent_min": limits.HOST_IDLE_PERCENT_MIN,
        "captured": captured,
        "whole_until_us": whole_until_us,
        "proxied": proxied,
        "keep_alive_us": _keep_alive_us(manifest),
    }
    if any(has_rows(database, table) for table in ("errors", "port_shortages", "acted")):
        database.execute(_BESIDE, {"turn_us": NGINX_TURN_US})
    else:
        create(database, "beside", BESIDE)
    database.execute(_KNOWN, constants)
    database.execute(_DECIDED)
    found = {cause for (cause,) in database.execute("SELECT DISTINCT cause FROM decided").fetchall()}
    database.execute(_attributed([cause for cause in _ANY if cause.name in found]))


def _keep_alive_us(manifest: Manifest) -> int | None:
    """How long the backend keeps an idle connection, less what its clock, of milliseconds, and ours may differ by."""
    knob = manifest.knobs.get("backend.keep_alive_timeout")
    # Tomcat reads its clock at each end of an idle time, a little before or after the packets leave.
    return 1000 * knob.value - CLOCK_SLACK_US if knob is not None and isinstance(knob.value, int) else None


# A moment, told from the start of the measurement; a duration.
_MACROS = """
    CREATE MACRO moment(time_us) AS format('{{:.3f}} s', (time_us - {start_us}) / 1000000);
    CREATE MACRO took(span_us) AS
        if(span_us < 1000000, format('{{:.1f}} ms', span_us / 1000), format('{{:.3f}} s', span_us / 1000000));
"""

# If nginx logged several errors about one connection, the last within the request's time counts; its log has seconds.
# If they name no connection, one in the second in which the proxy closed the connection counts. nginx reads its clock
# once in each turn of its event loop, so it may still write the second before.
_FLOW_CLOSE = "least(flow_server_fin_time_us, if(flow_first_rst_by = 'server', flow_first_rst_time_us, NULL))"
_BESIDE = f"""
    CREATE TABLE beside AS
    WITH broken AS (
        SELECT instance, id, dial, time_us, end_us, line_instance, line_connection, try_dial, flow_to_instance,
               {_FLOW_CLOSE} AS flow_close_us
          FROM cases WHERE outcome <> 'ok'
    ), complaints AS (
        SELECT broken.instance, broken.id, max_by(errors.line, errors.line) AS error_line,
               max_by(errors.text, errors.line) AS error_text
          FROM broken
               JOIN errors ON errors.instance = broken.line_instance AND errors.connection = broken.line_connection
                          AND errors.time_us BETWEEN (broken.time_us - $turn_us) // 1000000 * 1000000
                                                 AND broken.end_us
         GROUP BY ALL
    ), exhausted AS (
        SELECT instance, time_us AS second_us, min(line) AS line
          FROM errors WHERE connection IS NULL AND text LIKE '%worker_connections are not enough%' GROUP BY ALL
    )
    SELECT broken.instance, broken.id, complaints.error_line, complaints.error_text, acted.says AS acted_says,
           if(flow_close_us - exhausted.second_us < 1000000 + $turn_us, exhausted.line, NULL) AS exhausted_line,
           coalesce(port_shortages.held, up_shortages.held) AS shortage_held,
           coalesce(port_shortages.waiting, up_shortages.waiting) AS shortage_waiting,
           coalesce(port_shortages.ports, up_shortages.ports) AS shortage_ports
      FROM broken
           LEFT JOIN acted USING (instance, id)
           LEFT JOIN complaints USING (instance, id)
           ASOF LEFT JOIN exhausted
                ON exhausted.instance = broken.flow_to_instance AND exhausted.second_us <= broken.flow_close_us
           LEFT JOIN port_shortages
                ON port_shortages.instance = broken.instance AND port_shortages.dial = broken.dial
           LEFT JOIN port_shortages AS up_shortages
                ON up_shortages.instance = broken.line_instance AND up_shortages.dial = broken.try_dial
"""  # noqa: S608  an expression of our own

# What a run has none of without complaints of a proxy, dials that found no port, and actions of the lab.
BESIDE = {
    "instance": "VARCHAR", "id": "BIGINT", "error_line": "BIGINT", "error_text": "VARCHAR", "acted_says": "VARCHAR",
    "exhausted_line": "BIGINT", "shortage_held": "HUGEINT", "shortage_waiting": "HUGEINT", "shortage_ports": "BIGINT",
}  # fmt: skip

_KNOWN = f"""
    CREATE TABLE known AS
    WITH broken AS (
        SELECT *, {_FLOW_CLOSE} AS flow_close_us,
               least(up_server_fin_time_us, if(up_first_rst_by = 'server', up_first_rst_time_us, NULL))
                      AS up_close_us
          FROM cases WHERE outcome <> 'ok'
    )
    SELECT broken.*, waits.* EXCLUDE (instance, id),
           greatest(pool_us, up_pool_us, syn_us, up_syn_us, ack_us, up_ack_us, queue_us, up_queue_us, thread_us,
                    handler_us, lag_us, retry_us, pause_us)
               AS part_max_us,
           pool_us + up_pool_us + syn_us + up_syn_us + ack_us + up_ack_us + queue_us + up_queue_us + thread_us
               + handler_us + lag_us + retry_us + pause_us
               AS parts_us,
           beside.* EXCLUDE (instance, id),
           $bound_us::BIGINT AS bound_us, $idle_percent_min AS idle_percent_min, $captured AS captured,
           $proxied AS proxied, $keep_alive_us::BIGINT AS keep_alive_us,
           coalesce(end_us > $whole_until_us, false) AS torn
      FROM broken
           LEFT JOIN waits USING (instance, id)
           LEFT JOIN beside USING (instance, id)
     ORDER BY broken.instance, broken.id
"""  # noqa: S608  an expression of our own


def _when(cause: Cause) -> str:
    return cause.when if cause.seen else f"NOT torn AND ({cause.when})"


_DECIDED = f"""
    CREATE TABLE decided AS
    SELECT instance, id, CASE {" ".join(f"WHEN {_when(cause)} THEN '{cause.name}'" for cause in _ANY)} END AS cause
      FROM known
"""  # noqa: S608  names of our own


def _attributed(causes: list[Cause]) -> str:
    """Tell the evidence for the causes that occur: DuckDB takes longer to read how to tell it for all."""
    says = " ".join(f"WHEN '{cause.name}' THEN {cause.says}" for cause in causes)
    evidence = f"CASE cause {says} END" if says else "NULL"
    return f"""
        CREATE TABLE attributed AS
        SELECT instance, id, cause, {evidence} || coalesce(acted_says, '') AS evidence
          FROM known JOIN decided USING (instance, id)
         ORDER BY instance, id
    """  # noqa: S608  names of our own
