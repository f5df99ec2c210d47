"""The names of a run that may move: read back before the load, moved by the collector that is the name server."""

from collections.abc import Iterator, Mapping

from formats.manifest import ActionRecord
from lab import parallel
from lab.engines.protocol import ask_collector
from lab.errors import LabError
from lab.runs.run_context import RunContext


def read_back_names(context: RunContext) -> None:
    """Ask each name server where the names lead before the load.

    Raises:
        LabError: one leads elsewhere.
    """
    if lines := list(_elsewhere(context, context.topology.moving)):
        shown = "\n  ".join(lines)
        raise LabError(f"the run was stopped before its load, because names are not as asked:\n  {shown}")


def move_name(context: RunContext, record: ActionRecord) -> None:
    """Let a name lead to another instance, and read back where it then leads.

    Raises:
        LabError: it leads elsewhere.
    """
    moved = {str(record.name): record.instance}
    if lines := list(_elsewhere(context, moved, "--set", f"{record.name}={record.instance}")):
        raise LabError("names are not as asked:\n  " + "\n  ".join(lines))


def _elsewhere(context: RunContext, wanted: Mapping[str, str], *arguments: str) -> Iterator[str]:
    """Yield which names do not lead to the addresses of the instances that they are wanted to lead to."""
    topology, addresses = context.topology, context.manifest.addresses
    asking = [one for one in topology.all if not wanted.keys().isdisjoint(topology.names_asked(topology.role_of(one)))]
    told = parallel.each(lambda one: ask_collector(context.engine, one, "names", *arguments), asking)
    for asked, answer in told.items():
        found = {one["name"]: one["addresses"] for one in answer["names"]}
        for name, instance in wanted.items():
            leads_to = found.get(name, [])
            if name in topology.names_asked(topology.role_of(asked)) and not set(leads_to) & set(addresses[instance]):
                shown = ", ".join(leads_to) or "nowhere"
                yield f"{asked}: {name}: asked {instance} ({', '.join(addresses[instance])}), found {shown}"
