"""Every knob of the lab, by group: those that each role declares in its role.yaml, and those of the lab's own parts.

A knob's name is `<group>.<field>`; inside the lab a duration is a whole number of milliseconds.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema, create_model

from formats.field_types import Scalar
from formats.knob_types import DURATION_SCHEMA, KnobValue, Unit, format_knob_value, spoken
from formats.manifest import CaptureMode, EventSource
from formats.predictions import Part
from formats.role import Role, Workload
from lab.roles.declared_roles import ROLES

if TYPE_CHECKING:
    RoleName = str
else:
    RoleName = Literal[tuple(ROLES)]


class RoleKnobs(Part):
    """A group whose knobs a role.yaml declares."""

    if TYPE_CHECKING:

        def __getattr__(self, knob: str) -> Any: ...  # noqa: ANN401 # the knob's type is the declaration's to say


class Capture(Part):
    """Packet captures: each hop once, at its server's end (a proxy sees both of its hops)."""

    mode: Annotated[
        CaptureMode,
        Field(description="headers = 128 bytes of each packet; handshakes = SYN, FIN and RST only"),
    ] = "headers"
    client: Annotated[
        Literal["off", "headers", "handshakes"], Field(description="The same at the client's end, in addition")
    ] = "off"
    max_mb: Annotated[int, Field(ge=1, le=100_000, description="A capture ends at this size; MiB")] = 256
    events: Annotated[
        EventSource,
        Field(description="kernel = the kernel itself tells waits in accept queues, retransmissions, resets and drops"),
    ] = "off"


class Sampler(Part):
    """The collectors' samplers."""

    rate_hz: Annotated[int, Field(ge=1, le=100, description="Samples of the kernel's counters in each second")] = 10


def _read_sysctl(value: object) -> object:
    return str(value) if type(value) is int else value


SysctlValue = Annotated[str, BeforeValidator(_read_sysctl), WithJsonSchema({"type": ["integer", "string"]})]


def _declared(role: Role) -> type[RoleKnobs]:
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
    return create_model(title, __base__=RoleKnobs, __doc__=role.description, **fields)


GROUPS: Mapping[str, type[RoleKnobs]] = {role.group: _declared(role) for role in reversed(list(ROLES.values()))}

if TYPE_CHECKING:

    class _OfRoles(Part):
        def __getattr__(self, group: str) -> RoleKnobs: ...

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
    """Return the knobs of a scenario whose services play these roles; `names` is the type of a role's name there."""
    groups: dict[str, Any] = {role.group: (model := _declared(role), model()) for role in services.values()}
    kernel: Any = (Annotated[dict[names, dict[str, SysctlValue]], Field(description=_OF_KERNEL)], Field(default={}))
    return create_model("Knobs", __base__=Knobs, kernel=kernel, **groups)


@dataclass(frozen=True)
class KnownKnob:
    """What is known about one knob.

    Attributes:
        default: in milliseconds for a duration.
        unit: of its values in files; None for a count, a choice or a text.
        workloads: those that read it; None = all.
        env: the environment variable that carries it; None = no program that runs in the topology reads it.
    """

    group: str
    field: str
    default: KnobValue
    description: str
    unit: Unit | None = None
    workloads: tuple[Workload, ...] | None = None
    env: str | None = None

    @property
    def name(self) -> str:
        """Return the full name, as scenarios and overrides write it."""
        return f"{self.group}.{self.field}"

    @property
    def is_duration(self) -> bool:
        """Return whether its values are durations."""
        return self.unit == "ms"


def build_catalogue(knobs: type[Knobs], roles: Mapping[str, Role]) -> dict[str, KnownKnob]:
    """Return the knobs of a model, which these roles declare, by their full names."""
    declared = {role.knob(name): knob for role in roles.values() for name, knob in role.knobs.items()}
    # The lab makes the certificate; the program only has it.
    of_lab = {role.knob(role.listener.key) for role in roles.values() if role.listener.key}
    found: dict[str, KnownKnob] = {}
    for group, outer in knobs.model_fields.items():
        if not (isinstance(outer.annotation, type) and issubclass(outer.annotation, Part)):
            continue  # kernel: its names are the kernel's, not ours
        for field, info in outer.annotation.model_fields.items():
            default: KnobValue = info.default
            knob = KnownKnob(
                group, field, default, info.description or "", unit="ms" if DURATION_SCHEMA in info.metadata else None
            )
            if of_role := declared.get(knob.name):
                of_lab_alone = of_role.counts or of_role.fixed or knob.name in of_lab
                env = None if of_lab_alone else of_role.env or f"CONNLAB_{field.upper()}"
                knob = replace(knob, workloads=of_role.workloads, env=env)
            found[knob.name] = knob
    return found


CATALOGUE: dict[str, KnownKnob] = build_catalogue(Knobs, ROLES)


def flat_values(knobs: Knobs) -> dict[str, KnobValue]:
    """Return every knob's value under its full name; sysctls as `kernel.<role>.<name>`."""
    groups = {name: group for name, group in knobs if isinstance(group, Part)}
    values: dict[str, KnobValue] = {
        f"{name}.{field}": value for name, group in groups.items() for field, value in group
    }
    return values | {
        f"kernel.{role}.{name}": value for role, names in knobs.kernel.items() for name, value in names.items()
    }


def format_knob(name: str, value: Scalar, knobs: Mapping[str, KnownKnob]) -> str:
    """Return the value of the knob `name` as a scenario may write it: `20s`, `true`, `auto`; a sysctl has no unit."""
    return format_knob_value(value, knobs[name].unit if name in knobs else None)


def environment(knobs: Knobs, group: str, catalogue: Mapping[str, KnownKnob] = CATALOGUE) -> dict[str, str]:
    """Return a group's knobs as a container's environment, durations as `<n>ms`.

    Those of the lab stay out: how many instances there are, say, is not an instance's business.
    """
    values = flat_values(knobs)
    return {
        knob.env: f"{values[knob.name]}ms" if knob.is_duration else spoken(values[knob.name])
        for knob in catalogue.values()
        if knob.group == group and knob.env is not None
    }
