"""SQL for evidence that several causes tell: the dial, the connections, the access line.

`moment` and `took` are macros of analysis.diagnosis.attribution: a time from the start of the measurement, and a
duration. Columns of the client's connection begin with `flow`, those of the proxy's with `up`.
"""

from __future__ import annotations

_DIAL = """format('dial {}/{} from {} to {} began at {}', instance, dial, coalesce(dial_local, 'an unknown port'),
               coalesce(dial_remote, '?'), moment(dial_time_us))"""
DIAL_FAILED = f"{_DIAL} || format(' and failed after {{}} ({{}})', took(dial_duration_us), dial_error_kind)"
FLOW = "format('flow {}/{}', flow_observer, flow_id)"
UP = """format('the proxy turned to {} at {}', try_server, moment(try_start_us))"""
UP_FLOW = "format('flow {}/{}', up_observer, up_id)"
LINE = """format('{} line {}: status {} at {}', line_instance, line_line, line_status, moment(1000 * line_time_ms))
           || coalesce(format(', which it noted for its try {} of {}: {}', try_tries, try_server,
                              coalesce('status ' || try_status, 'nothing')), '')"""
ERROR = "coalesce('; error.log line ' || error_line::VARCHAR || ': ' || error_text, '')"


def syns(prefix: str) -> str:
    """SQL for a connection's SYNs and their times."""
    return f"""format('{{}} {{}} at {{}}', {prefix}_syn_count, if({prefix}_syn_count = 1, 'SYN', 'SYNs'),
        array_to_string(list_transform({prefix}_syn_times_us[1:12], lambda time: moment(time)), ', ')
        || if({prefix}_syn_count > 12, ', …', ''))"""
