"""The last section: under which conditions the run was made, what took CPU and time, and how to make it again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from analysis import command_hints, formatting
from analysis.expressions.values import is_number
from analysis.formatting import format_ms
from analysis.reports.advice import rerun_command
from analysis.reports.run_record import Record

STATISTICS = ("min", "mean", "p50", "p90", "p95", "p99", "max")


def load_rows(record: Record) -> list[tuple[str, str]]:
    """Return what was asked of the servers, and what came of it, as names and values."""
    figures = (("users at all", "client.users.total"), ("iterations dropped", "client.iterations.dropped"))
    phases = [phase for phase in record.phases if phase.get("end_us") is not None]
    return [
        ("workload", str(record.knob("load.workload"))),
        *((name, formatting.format_knob(record.knobs[name])) for name in _load_knobs(record)),
        *((name, formatting.format_value(record.figures.get(figure))) for name, figure in figures),
        *((f"{phase['name']} lasted", format_ms((phase["end_us"] - phase["start_us"]) / 1000)) for phase in phases),
    ]


_PACING = {
    "users": ("users", "arrival_gap", "calls", "think_time"),
    "spike": ("rate_per_second", "duration", "max_users"),
    "long_polling": ("users", "ramp_half", "ramp_full", "ramp_hold", "ramp_down", "rejoin"),
    "sequential": ("requests",),
    "tcp": ("users", "arrival_gap", "calls", "think_time", "closes_first"),
    "slow_clients": ("users", "arrival_gap", "calls", "think_time", "slow_users", "header_interval", "header_duration"),
    "half_open": ("users", "arrival_gap", "calls", "think_time", "half_open", "half_open_duration"),
}
_OF_THE_MACHINE = ("kernel", "distribution", "cpus", "memory_kb")
_ALWAYS = ("instances", "handler_delay", "keep_alive", "connect_timeout", "request_timeout")


def _load_knobs(record: Record) -> list[str]:
    names = [f"load.{each}" for each in (*_PACING.get(str(record.knob("load.workload")), ()), *_ALWAYS)]
    return [name for name in names if name in record.knobs and not record.idle(name)]


def latency_rows(record: Record) -> list[dict[str, Any]]:
    """Return the distributions of what users felt, in ms; a value is `unknown` with its reason."""
    found = []
    for title, figure in (
        ("answer, connecting included (requests that were answered well)", "client.latency_ms"),
        ("connecting, where that came about", "client.dial_ms"),
        ("connecting, where it did not", "client.dial_ms.failed"),
    ):
        values = [record.figures.get(f"{figure}.{name}") for name in STATISTICS]
        if any(value is not None for value in values):
            found.append({"title": title, "values": [_ms(value) for value in values]})
    return found


def _ms(value: object) -> str:
    return f"{value:,.1f}" if isinstance(value, int | float) else "unknown"


def knob_rows(record: Record) -> list[dict[str, Any]]:
    """Return every knob: what was asked, what the running program says, and whether it differs from the default."""
    return [
        {
            "name": name,
            "value": formatting.format_knob(knob),
            "default": "kernel's own" if knob.get("default") is None else formatting.format_knob(knob, "default"),
            "source": knob.get("source", "unknown"),
            "read_back": "—" if knob.get("read_back") is None else formatting.format_knob(knob, "read_back"),
            "differs": knob["value"] != knob.get("default"),
        }
        for name, knob in record.knobs.items()
    ]


def sysctl_table(record: Record) -> dict[str, Any]:
    """Return the kernel's settings as read in each instance's namespace: instances, and a row for each name."""
    found = record.manifest.get("sysctls", {})
    names = sorted({name for of_instance in found.values() for name in of_instance})
    return {
        "instances": list(found),
        "rows": [(name, [found[instance].get(name) for instance in found]) for name in names],
    }


def version_rows(record: Record) -> list[tuple[str, str]]:
    """Return the program, the images and the machine."""
    manifest = record.manifest
    git, lab, host = manifest.get("git", {}), manifest.get("lab", {}), manifest.get("host", {})
    commit = git.get("commit")
    dirty = " with uncommitted changes" if git.get("dirty") else ""
    memory_kb = host.get("memory_kb")
    return [
        ("lab", f"{lab.get('version', 'unknown')}, Python {lab.get('python', 'unknown')}"),
        ("commit", f"{commit}{dirty}" if commit else "unknown"),
        ("kernel", str(host.get("kernel", "unknown"))),
        ("distribution", str(host.get("distribution", "unknown"))),
        ("processors", formatting.format_value(host.get("cpus"))),
        ("memory", f"{memory_kb / (1 << 20):.1f} GB" if isinstance(memory_kb, int) else "unknown"),
        *((name, str(version)) for name, version in host.items() if name not in _OF_THE_MACHINE),
        *((f"image {role}", str(image)) for role, image in manifest.get("images", {}).items()),
    ]


def commands(record: Record) -> dict[str, str]:
    """Return the commands that make the run again, and those that ask it for more, by what they do."""
    run = {"RUN": f"{record.manifest['scenario']}/{record.manifest['run']}"}
    command = rerun_command(record.manifest).command
    return {
        **({"run it again": command} if command else {}),
        "the worst requests, as each observer saw them": command_hints.make_command("explain", run | {"TOP": "5"}),
        "its tables with SQL and charts, in the browser": command_hints.make_command("notebook", run),
        "derive and draw everything again": command_hints.make_command("report", run),
    }


_OTHER = "other: the kernel, the engine, the lab itself, services beside the path, other programs"


@dataclass(frozen=True)
class Shares:
    """The CPU usage under the load.

    Attributes:
        rows: who, and the share of all processors of the machine in percent, None if unknown; together they are 100.
        missing: why there are no rows; None where there are.
    """

    rows: list[tuple[str, float | None]] = field(default_factory=list)
    missing: str | None = None


def cpu_shares(record: Record) -> Shares:
    """Divide the processors among the programs of the path, their collectors, what was idle, and the rest."""
    if record.manifest.get("nodes"):
        return Shares(missing="the run was on a cluster, and how many processors its nodes have is not on record")
    cpus = record.manifest.get("host", {}).get("cpus")
    idle = record.verdict["health"].get("host", {}).get("figures", {}).get("cpu_idle_percent")
    if cpus is None or not is_number(idle):
        return Shares(missing="nothing says how busy the processors were under the load")

    def share(*figures: str) -> float | None:
        values = [record.figures.get(figure) for figure in figures]
        known = [value for value in values if is_number(value)]
        return sum(known) / cpus if known and len(known) == len(values) else None

    instruments = {"the collectors": "collector.", "tcpdump": "tcpdump."}
    rows = [
        *((_program(record, role), share(f"process.{role}.cpu_percent.mean")) for role in record.path),
        *(
            (name, share(*(f"process.{role}.{part}cpu_percent.mean" for role in record.path)))
            for name, part in instruments.items()
        ),
    ]
    # Each reading is of a moment of its own, so that all of them may come to a little more than there is.
    other = max(100 - idle - sum(value or 0 for _, value in rows), 0)
    return Shares([*rows, (_OTHER, other), ("idle", idle)])


def _program(record: Record, role: str) -> str:
    """Return a role, with the names of its processes where these are others."""
    declared = record.roles.get(role)
    names = [name for name in declared.processes if name != role] if declared else []
    return f"{role} ({', '.join(names)})" if names else role


def step_rows(record: Record) -> list[dict[str, Any]]:
    """Return each step of the run, how deep it lies within others, and its milliseconds; none where none were timed."""
    return [
        {"depth": name.count("/"), "name": name.rpartition("/")[2], "ms": ms}
        for name, ms in (record.manifest.get("profile") or {}).items()
    ]
