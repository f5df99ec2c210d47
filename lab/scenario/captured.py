"""Where packets are captured."""

from __future__ import annotations

from analysis.evidence import captures
from lab.scenario.effective import Effective
from lab.scenario.knobs import RoleName


def capture_mode(effective: Effective, role: RoleName, *, apart: bool = False) -> str:
    """Give what the collectors beside a role capture.

    Args:
        effective: the scenario's settings.
        role: whose.
        apart: whether instances may be on several machines.
    """
    capture = effective.scenario.knobs.capture
    if role not in captures.expected(list(effective.scenario.path), capture.mode, capture.client, apart=apart):
        return "off"
    return capture.client if effective.roles[role].kind == "client" else capture.mode
