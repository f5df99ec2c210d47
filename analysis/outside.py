"""What a run or a series that may come from anybody can name: inside its folder, and one word to a shell."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

_WORD = "[A-Za-z0-9][A-Za-z0-9_.-]*"

Named = Annotated[str, Field(pattern=f"^{_WORD}$", max_length=255)]
# An instance's name is the name of its folder below raw/.
Instance = Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=255)]
# As `backend.accept_count`, or a sysctl of a role with its own dots and slashes.
KnobName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_./*-]*$", max_length=255)]
SeriesId = Annotated[str, Field(pattern=r"^[0-9TZ]+-(arms|matrix|search)-[a-z0-9-]+$", max_length=255)]
# A run's folder below results/, which a series names.
PlaceOfRun = Annotated[str, Field(pattern=f"^{_WORD}/{_WORD}$", max_length=512)]
