"""The users that the containers run as, and how they come to write to folders of the host."""

from __future__ import annotations

import os

ROOT = 0
# The user `connlab` of the roles' images.
ROLE_UID = 10001


def supplementary_groups() -> list[str]:
    """Give the groups that the containers have to be in to write to their folders."""
    return [] if os.geteuid() == ROOT else [str(os.getegid())]
