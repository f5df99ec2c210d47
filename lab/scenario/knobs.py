"""Every knob of the lab, by group: those that each role declares in its role.yaml, and those of the lab's own parts.

A knob's name is `<group>.<field>`; inside the lab a duration is a whole number of milliseconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema, create_model

from formats.predictions import Part
from formats.role import Role
from lab.roles.declared_roles import ROLES

if TYPE_CHECKING:
    RoleName = str
else:
    RoleName = Literal[tuple(ROLES)]

KnobValue = int | bool | str


class Declared(Part):
    """A group whose knobs a role.yaml declares."""

    if TYPE_CHECKING:

        def __getattr__(self, knob: str) -> Any: ...  # noqa: ANN401 # the knob's type is the declaration's to say


class Capture(Part):
    """Packet captures: each hop once, at its server's end (a proxy sees both of its hops)."""

    mode: Annotated[
        Literal["headers", "handshakes", "off"],
        Field(description="headers = 128 bytes of each packet; handshakes = SYN, FIN and RST only"),
    ] = "headers"
    client: Annotated[
        Literal["off", "headers", "handshakes"], Field(description="The same at the client's end, in addition")
    ] = "off"
    max_mb: Annotated[int, Field(ge=1, le=100_000, description="A capture ends at this size; MiB")] = 256


class Sampler(Part):
    """The collectors' samplers."""

    rate_hz: Annotated[int, Field(ge=1, le=100, description="Samples of the kernel's counters in each second")] = 10


def _read_sysctl(value: object) -> object:
    return str(value) if type(value) is int else value


SysctlValue = Annotated[str, BeforeValidator(_read_sysctl), WithJsonSchema({"type": ["integer", "string"]})]


def _declared(role: Role) -> type[Declared]:
    fields: dict[str, Any] = {
        field: (
            Annotated[
                knob.annotation(),
                Field(description=f"{knob.doc}; {knob.unit}" if knob.unit else knob.doc),
            ],
            knob.initial,
        )
        for field, knob in role.knobs.items()
    }
    title = role.group.capitalize()
    return create_model(title, __base__=Declared, __doc__=role.says, **fields)


GROUPS: Mapping[str, type[Declared]] = {role.group: _declared(role) for role in reversed(list(ROLES.values()))}

if TYPE_CHECKING:

    class _OfRoles(Part):
        def __getattr__(self, group: str) -> Declared: ...

else:
    _OfRoles = create_model("_OfRoles", __base__=Part, **{group: (model, model()) for group, model in GROUPS.items()})


_OF_KERNEL = "Sysctls of a role's network namespace: role, then the sysctl's name (net.…)"


def _of_any_service(schema: dict[str, Any]) -> None:
    """Let editors take the groups of a scenario's own services, which they cannot know."""
    schema["additionalProperties"] = {"type": "object"}


class Knobs(_OfRoles):
    """All knobs, by group."""

    model_config = ConfigDict(json_schema_extra=_of_any_service)

    capture: Capture = Capture()
    sampler: Sampler = Sampler()
    kernel: Annotated[
        dict[RoleName, dict[str, SysctlValue]],
        Field(description=_OF_KERNEL),
        WithJsonSchema({"type": "object", "additionalProperties": {"type": "object"}}),
    ] = Field(default_factory=dict)


def knobs_with(services: Mapping[str, Role], names: Any) -> type[Knobs]:  # noqa: ANN401 # a Literal
    """Give the knobs of a scenario that brings services.

    Args:
        services: the roles that they play.
        names: the type of a role's name there.
    """
    groups: dict[str, Any] = {role.group: (model := _declared(role), model()) for role in services.values()}
    kernel: Any = (Annotated[dict[names, dict[str, SysctlValue]], Field(description=_OF_KERNEL)], Field(default={}))
    return create_model("Knobs", __base__=Knobs, kernel=kernel, **groups)
