"""What every part of a scenario has: unknown names are refused, and no value silently becomes another type."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Part(BaseModel):
    """A mapping of a scenario, such as the knobs of one role."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
