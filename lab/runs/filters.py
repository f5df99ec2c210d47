"""A packet filter in a server's namespace, for a while: its collector lets nobody connect, and reads the rule back."""

from formats.manifest import ActionRecord
from lab.engines.protocol import ask_collector
from lab.errors import LabError
from lab.runs.run_context import RunContext


def set_filter(context: RunContext, record: ActionRecord, *, back: bool = False) -> None:
    """Put the rule of an action into the filter of its server's namespace, or take it away.

    Raises:
        LabError: it does not stand then, or stands still.
    """
    port = context.topology.port_of(record.instance)
    rule = ["--port", str(port), "--answer", str(record.answer), *(["--remove"] if back else [])]
    if ask_collector(context.engine, record.instance, "filter", *rule)["stands"] is back:
        raise LabError(f"the rule for port {port} {'still stands' if back else 'does not stand'}")
