"""What a run or a series that may come from anybody can say.

A name stays inside its folder, and is one word to a shell. A number has room in 64 bits, also after it was converted
into a smaller unit.
"""

from collections.abc import Iterable
from typing import Annotated

from pydantic import AfterValidator, BaseModel, Field

_WORD = "[A-Za-z0-9][A-Za-z0-9_.-]*"

Named = Annotated[str, Field(pattern=f"^{_WORD}$", max_length=255)]
# An instance's name is the name of its folder below raw/.
Instance = Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=255)]
# The name of a host, such as api or api.shop.test.
HostName = Annotated[str, Field(pattern=r"^[a-z0-9]+(-+[a-z0-9]+)*(\.[a-z0-9]+(-+[a-z0-9]+)*)*$", max_length=63)]
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

# What a derived file may hold is of many units; each is a sum of numbers of 64 bits at the most.
DERIVED_MAX = 1 << 64


def check_numbers(value: object) -> None:
    """Raise ValueError for a number that a double does not hold well, also within lists and mappings."""
    if isinstance(value, dict):
        value = value.values()
    if isinstance(value, Iterable) and not isinstance(value, str | bytes | BaseModel):
        for each in value:
            check_numbers(each)
    elif isinstance(value, int | float) and not abs(value) <= DERIVED_MAX:
        raise ValueError("a number of more than 19 digits")
