"""What the logs of proxies mean. A role declares its log files, each with its format; a format has an adapter here.

In come the declared names of formats; out go one form of access records and one of error messages, whatever the
program. It knows no role, and nothing of a run but the file at hand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.evidence.logs import haproxy, nginx

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from analysis.evidence.logs.access_log import Format
    from analysis.evidence.logs.error_log import Message

# A line for each request.
ACCESS: Mapping[str, Format] = {"haproxy-access": haproxy.ACCESS, "nginx-access": nginx.ACCESS}
# A message on each line: what a line says, None if it says of no error.
ERRORS: Mapping[str, Callable[[bytes], Message | None]] = {
    "haproxy-errors": haproxy.error,
    "nginx-errors": nginx.error,
}
# A proxy's own dials to servers, as schemas/dials.schema.json has them.
DIALS = ("dials",)
