"""The last section: under which conditions the run was made, what took the processors, and how to make it again."""

from typing import Any

from analysis import command_hints, formatting
from analysis.expressions.values import is_number
from analysis.formatting import format_ms
from analysis.reports.advice import rerun_command
from analysis.reports.run_record import Record
from formats.knob_types import format_knob_value

STATISTICS = ("min", "mean", "p50", "p90", "p95", "p99", "max")


def load_rows(record: Record) -> list[tuple[str, str]]:
    """Return what came of the load, as names and values."""
    figures = (("users", "client.users.total"), ("iterations dropped", "client.iterations.dropped"))
    return [
        *((name, formatting.format_value(record.figures.get(figure))) for name, figure in figures),
        *(
            (f"phase {phase.name}", format_ms((phase.end_us - phase.start_us) / 1000))
            for phase in record.phases
            if phase.end_us is not None
        ),
    ]


def latency_rows(record: Record) -> list[dict[str, Any]]:
    """Return the distributions of what users felt, in ms; a value is `unknown` with its reason."""
    found = []
    for title, figure in (
        ("successful requests, connecting included", "client.latency_ms"),
        ("connecting, successful", "client.dial_ms"),
        ("connecting, failed", "client.dial_ms.failed"),
    ):
        values = [record.figures.get(f"{figure}.{name}") for name in STATISTICS]
        if any(value is not None for value in values):
            found.append({"title": title, "values": [_ms(value) for value in values]})
    return found


def _ms(value: object) -> str:
    return f"{value:,.1f}" if isinstance(value, int | float) else "unknown"


def knob_rows(record: Record) -> list[dict[str, Any]]:
    """Return every knob that the load can use: as set, as the running program says, and whether it is the default."""
    return [
        {
            "name": name,
            "value": formatting.format_knob(knob),
            "default": "kernel's own" if knob.default is None else format_knob_value(knob.default, knob.unit),
            "source": knob.source or "unknown",
            "read_back": "—" if knob.read_back is None else format_knob_value(knob.read_back, knob.unit),
            "differs": knob.value != knob.default,
            "set": knob.value != knob.default or knob.source != "default",
        }
        for name, knob in record.usable_knobs.items()
    ]


def sysctl_table(record: Record) -> dict[str, Any]:
    """Return the kernel's settings as read in each instance's namespace: instances, and a row for each name."""
    found = record.manifest.sysctls
    names = sorted({name for of_instance in found.values() for name in of_instance})
    return {
        "instances": list(found),
        "rows": [(name, [found[instance].get(name) for instance in found]) for name in names],
    }


def version_rows(record: Record) -> list[tuple[str, str]]:
    """Return the program, the images and the machine."""
    manifest = record.manifest
    git, lab, host = manifest.git, manifest.lab, manifest.host
    dirty = " with uncommitted changes" if git.dirty else ""
    return [
        ("lab", f"{lab.version or 'unknown'}, Python {lab.python or 'unknown'}"),
        ("commit", f"{git.commit}{dirty}" if git.commit else "unknown"),
        ("kernel", host.kernel or "unknown"),
        ("distribution", host.distribution or "unknown"),
        ("processors", formatting.format_value(host.cpus)),
        ("memory", f"{host.memory_kb / (1 << 20):.1f} GiB" if host.memory_kb is not None else "unknown"),
        *((name, str(version)) for name, version in host.__pydantic_extra__.items()),
        *((f"image {role}", image) for role, image in manifest.images.items()),
    ]


def commands(record: Record) -> dict[str, str]:
    """Return the commands that make the run again, and those that ask it for more, by what they do."""
    run = {"RUN": f"{record.manifest.scenario}/{record.manifest.run}"}
    command = rerun_command(record.manifest).command
    return {
        **({"run it again": command} if command else {}),
        "explain the five worst requests": command_hints.make_command("explain", run | {"TOP": "5"}),
        "query its tables with SQL": command_hints.make_command("notebook", run),
        "write this report again": command_hints.make_command("report", run),
    }


_OTHER = "everything else: kernel, engine, the lab itself, services beside the path, other programs"


def cpu_shares(record: Record) -> list[tuple[str, float | None]] | str:
    """Return each program's share of the machine's processors under load, in percent; or why it is unknown.

    The shares of the path's programs, their collectors, what was idle, and the rest come to 100; one may be None.
    """
    if record.manifest.nodes:
        return "the run was on a cluster, and the number of its processors was not recorded"
    cpus = record.manifest.host.cpus
    idle = record.verdict["health"].get("host", {}).get("figures", {}).get("cpu_idle_percent")
    if cpus is None or not is_number(idle):
        return "the processor usage under load was not recorded"

    def share(*figures: str) -> float | None:
        values = [record.figures.get(figure) for figure in figures]
        known = [value for value in values if is_number(value)]
        return sum(known) / cpus if known and len(known) == len(values) else None

    rows = []
    for role in record.manifest.path:
        processes = record.manifest.roles[role].processes if role in record.manifest.roles else ()
        others = ", ".join(name for name in processes if name != role)
        rows.append((f"{role} ({others})" if others else role, share(f"process.{role}.cpu_percent.mean")))
    for name, part in (("the collectors", "collector"), ("tcpdump", "tcpdump")):
        rows.append((name, share(*(f"process.{role}.{part}.cpu_percent.mean" for role in record.manifest.path))))
    # Each reading is of a moment of its own, so that all of them may come to a little more than there is.
    other = max(100 - idle - sum(value or 0 for _, value in rows), 0)
    return [*rows, (_OTHER, other), ("idle", idle)]


def step_rows(record: Record) -> list[dict[str, Any]]:
    """Return each timed step of the run, how deep it lies within others, and its milliseconds."""
    return [
        {"depth": name.count("/"), "name": name.rpartition("/")[2], "ms": ms}
        for name, ms in (record.manifest.profile or {}).items()
    ]
