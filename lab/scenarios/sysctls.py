"""Sysctls that a scenario may set in a role's network namespace, and what can be known of them before a run."""

import os
import re
from pathlib import Path

from lab.reading.validation_messages import nearest

PROC_SYS = Path("/proc/sys")

# Read back and recorded in every run: what the model of the kernel's behaviour computes with.
RECORDED = (
    "net.core.somaxconn",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_abort_on_overflow",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_max_tw_buckets",
    "net.ipv4.tcp_rto_max_ms",
    "net.ipv4.tcp_syn_linear_timeouts",
    "net.ipv4.tcp_syn_retries",
    "net.ipv4.tcp_synack_retries",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_tw_reuse",
    "net.ipv4.tcp_tw_reuse_delay",
)

# What an older kernel does in the same way as this value says needs no sysctl there.
AS_BEFORE_IT_CAME = {
    "net.ipv4.tcp_rto_max_ms": "120000",  # came in 6.15; before, a constant
    "net.ipv4.tcp_syn_linear_timeouts": "0",  # came in 6.5; before, every SYN retransmission backs off
    "net.ipv4.tcp_tw_reuse_delay": "1000",  # came in 6.14; before, the delay was one second, fixed
}

# What a new network namespace begins with, whatever the host's own value is (tcp_sk_init(), net/ipv4/tcp_ipv4.c;
# inet_init_net(), net/ipv4/af_inet.c).
IN_A_NEW_NAMESPACE = {
    "net.core.somaxconn": "4096",
    "net.ipv4.ip_local_port_range": "32768\t60999",
    "net.ipv4.tcp_rto_max_ms": "120000",
    "net.ipv4.tcp_syn_linear_timeouts": "4",
    "net.ipv4.tcp_syn_retries": "6",
}

# Documentation/networking/ip-sysctl.rst and the kernel's tables (net/ipv4/sysctl_net_ipv4.c).
_RANGES = {
    "net.core.somaxconn": (0, 2**31 - 1),
    "net.ipv4.tcp_abort_on_overflow": (0, 1),
    "net.ipv4.tcp_fin_timeout": (0, 2**31 // 1000),
    "net.ipv4.tcp_max_syn_backlog": (0, 2**31 - 1),
    "net.ipv4.tcp_max_tw_buckets": (0, 2**31 - 1),
    "net.ipv4.tcp_rto_max_ms": (1000, 120_000),
    "net.ipv4.tcp_syn_linear_timeouts": (0, 127),
    "net.ipv4.tcp_syn_retries": (1, 127),
    "net.ipv4.tcp_synack_retries": (0, 255),
    "net.ipv4.tcp_syncookies": (0, 2),
    "net.ipv4.tcp_tw_reuse": (0, 2),
    "net.ipv4.tcp_tw_reuse_delay": (1, 60_000),
}

# Why, and what to do instead.
_GONE = {
    "net.ipv4.tcp_tw_recycle": (
        (
            "Linux has none since 4.12, because it kept one time stamp for each address and so dropped SYNs of clients"
            " that share one behind NAT"
        ),
        "set net.ipv4.tcp_tw_reuse=1 where the connections are made; the scenario tw-recycle-gone shows it",
    ),
    "net.ipv4.tcp_low_latency": ("it has had no effect since 4.14", "leave it out"),
}

_HOST_WIDE = (
    "net.core.busy_poll",
    "net.core.busy_read",
    "net.core.default_qdisc",
    "net.core.dev_weight",
    "net.core.netdev_budget",
    "net.core.netdev_budget_usecs",
    "net.core.netdev_max_backlog",
    "net.ipv4.tcp_max_orphans",
    "net.ipv4.tcp_mem",
    "net.ipv4.udp_mem",
    "net.nf_conntrack_max",
)

_NAME = re.compile(r"net(\.[a-z0-9_-]+){2,}")
_VALUE = re.compile(r"[A-Za-z0-9_.:,+-]+([ \t][A-Za-z0-9_.:,+-]+)*")


def find_fault(name: str, value: str) -> tuple[str, str | None] | None:
    """Return what is wrong with setting the sysctl `name` to `value`, on any kernel, and a hint."""
    if not _NAME.fullmatch(name):
        return (
            f"'{name}' is not a sysctl of a network namespace",
            "their names begin with 'net.', as in net.ipv4.tcp_tw_reuse",
        )
    if name in _GONE:
        why, instead = _GONE[name]
        return f"the sysctl '{name}' cannot be set: {why}", instead
    if name in _HOST_WIDE:
        return f"the sysctl '{name}' has one value for the whole machine, not one for each role", "leave it out"
    if not _VALUE.fullmatch(value):
        return f"'{value}' is not a value for the sysctl '{name}'", None
    if name in _RANGES:
        low, high = _RANGES[name]
        if not re.fullmatch(r"0|[1-9][0-9]{0,9}", value) or not low <= int(value) <= high:
            return f"{name} must be a whole number from {low} to {high}, not '{value}'", None
    if name == "net.ipv4.ip_local_port_range":
        return _port_range_fault(value)
    return None


def _port_range_fault(value: str) -> tuple[str, str | None] | None:
    match = re.fullmatch(r"([0-9]{1,5})\s+([0-9]{1,5})", value)
    if match and 1 <= int(match[1]) <= int(match[2]) <= 65_535:  # noqa: PLR2004 # the last port
        return None
    return f"net.ipv4.ip_local_port_range takes two ports, the lower one first, not '{value}'", 'such as "32768 60999"'


def missing_sysctl(name: str, value: str) -> tuple[str, str | None] | None:
    """Return what to say if this machine's kernel has no such sysctl, and does not behave as `value` asks anyway.

    Where there is no /proc/sys/net, as on a machine that only steers an engine elsewhere, nothing is known to lack.
    """
    if not (PROC_SYS / "net").is_dir():
        return None
    if _path(name).exists() or AS_BEFORE_IT_CAME.get(name) == value:
        return None
    near = nearest(name, _names())
    return f"this kernel has no sysctl '{name}'", f"did you mean '{near}'?" if near else None


def settable(name: str) -> bool:
    """Return whether this machine's kernel has the sysctl."""
    return _path(name).exists()


def _path(name: str) -> Path:
    # A role's interfaces are not the host's; the kernel keeps `default` for those to come.
    common = re.sub(r"^(net\.ipv[46]\.(?:conf|neigh))\.[^.]+\.", r"\1.default.", name)
    return PROC_SYS.joinpath(*common.split("."))


def _names() -> list[str]:
    # Interfaces come and go with containers: unlike Path.rglob, os.walk passes over a folder that has just gone.
    found = ((Path(folder), files) for folder, _, files in os.walk(PROC_SYS / "net"))
    return [".".join((folder / file).relative_to(PROC_SYS).parts) for folder, files in found for file in files]
