"""What a run or a series that may come from anybody can say.

A name stays inside its folder, and is one word to a shell. A number has room in 64 bits, also after it was converted
into a smaller unit.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

_WORD = "[A-Za-z0-9][A-Za-z0-9_.-]*"

Named = Annotated[str, Field(pattern=f"^{_WORD}$", max_length=255)]
# An instance's name is the name of its folder below raw/.
Instance = Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=255)]
# As `backend.accept_count`, or a sysctl of a role with its own dots and slashes.
KnobName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_./*-]*$", max_length=255)]
SeriesId = Annotated[str, Field(pattern=r"^[0-9TZ]+-(arms|matrix|search)-[a-z0-9-]+$", max_length=255)]
# A run's folder below results/, which a series names.
PlaceOfRun = Annotated[str, Field(pattern=f"^{_WORD}/{_WORD}$", max_length=512)]

# A thousand years, either way.
MS_MAX = 10**3 * 366 * 86_400 * 1000


def _bounded(value: bool | float | str) -> bool | int | float | str:  # noqa: FBT001  a knob's value
    if isinstance(value, int | float) and not abs(value) <= MS_MAX:
        raise ValueError("a number of more than 14 digits")
    return value


Number = Annotated[int | float, AfterValidator(_bounded)]
Scalar = Annotated[bool | int | float | str, AfterValidator(_bounded)]
Ms = Annotated[int, Field(ge=0, le=MS_MAX)]
Us = Annotated[int, Field(ge=0, le=1000 * MS_MAX)]
Count = Annotated[int, Field(ge=0, le=1 << 40)]
Port = Annotated[int, Field(ge=0, le=65_535)]
ExitCode = Annotated[int, Field(ge=-(1 << 31), le=1 << 31)]
