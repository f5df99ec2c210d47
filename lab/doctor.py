"""Checks the prerequisites of this machine, with a hint for each that is missing."""

import os
import platform
import shutil
from collections.abc import Iterator

from lab import paths
from lab.engines.protocol import Engine, Finding
from lab.runs import machine
from lab.scenarios import sysctls
from lab.scenarios.certificates import INSTALL_OPENSSL, OPENSSL

_CPUS_MIN = 2
_MEMORY_MIN_KB = 4 << 20
_DISK_MIN_BYTES = 10 << 30


def examine(engine: Engine) -> list[Finding]:
    """Return the findings of all checks."""
    here = (*_hardware(), *_kernel()) if engine.on_this_machine else ()
    return [*engine.examine(), _openssl(), *here]


def _openssl() -> Finding:
    """Return whether certificates can be made, which only a run with TLS needs."""
    if shutil.which(OPENSSL) is None:
        return Finding(OPENSSL, "warn", "not installed", f"runs with TLS need it; {INSTALL_OPENSSL}")
    return Finding(OPENSSL, "ok", "installed")


def _hardware() -> Iterator[Finding]:
    processors = os.cpu_count() or 1
    hint = "with one, load and servers distort each other's times"
    yield _measured("processors", str(processors), hint, short=processors < _CPUS_MIN)
    memory_kb = machine.memory_kb("MemTotal")
    hint = f"{_MEMORY_MIN_KB >> 10:,} MiB are needed to run every scenario"
    yield _measured("memory", f"{memory_kb >> 10:,} MiB", hint, short=memory_kb < _MEMORY_MIN_KB)
    free = machine.disk_free_bytes(paths.RESULTS)
    hint = f"images and results need {_DISK_MIN_BYTES >> 30} GiB"
    yield _measured("disk", f"{free >> 30} GiB free", hint, short=free < _DISK_MIN_BYTES)


def _measured(name: str, found: str, hint: str, *, short: bool) -> Finding:
    return Finding(name, "warn" if short else "ok", found, hint if short else None)


# What a scenario may set, and since which kernel it can.
_FEATURES = {
    "net.ipv4.tcp_syn_linear_timeouts": "6.5",
    "net.ipv4.tcp_tw_reuse_delay": "6.14",
}


def _kernel() -> Iterator[Finding]:
    yield Finding("kernel", "ok", platform.release())
    for name, since in _FEATURES.items():
        if sysctls.settable(name):
            yield Finding(name, "ok", "settable")
        else:
            as_before = f"this kernel behaves as {sysctls.AS_BEFORE_IT_CAME[name]} says"
            yield Finding(
                name, "warn", f"not in this kernel; {as_before}", f"scenarios that set another value need Linux {since}"
            )
