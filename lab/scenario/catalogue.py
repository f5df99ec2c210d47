"""The knobs by their full names: what is known about each, and how its value is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from formats.durations import format_duration
from formats.field_types import Scalar
from formats.knob_types import DURATION_SCHEMA
from formats.predictions import Part
from formats.role import Role, Workload
from lab.roles.declared_roles import ROLES
from lab.scenario.knobs import Knobs, KnobValue


@dataclass(frozen=True)
class Knob:
    """What is known about one knob.

    Attributes:
        default: in milliseconds for a duration.
        workloads: those that read it; None = all.
        env: the environment variable that carries it; None = no program that runs in the topology reads it.
    """

    group: str
    field: str
    default: KnobValue
    is_duration: bool
    description: str
    workloads: tuple[Workload, ...] | None = None
    env: str | None = None

    @property
    def name(self) -> str:
        """The full name, as scenarios and overrides write it."""
        return f"{self.group}.{self.field}"

    @property
    def unit(self) -> Literal["ms"] | None:
        """The unit of its values in files; None for what is no duration."""
        return "ms" if self.is_duration else None


def _of_knobs(knobs: type[Knobs], roles: Mapping[str, Role]) -> Iterator[Knob]:
    declared = {role.knob(name): knob for role in roles.values() for name, knob in role.knobs.items()}
    for group, outer in knobs.model_fields.items():
        if not (isinstance(outer.annotation, type) and issubclass(outer.annotation, Part)):
            continue  # kernel: its names are the kernel's, not ours
        for field, info in outer.annotation.model_fields.items():
            default: KnobValue = info.default
            knob = Knob(group, field, default, DURATION_SCHEMA in info.metadata, info.description or "")
            if knob.name in declared:
                of_role = declared[knob.name]
                env = None if of_role.counts or of_role.fixed else of_role.env or f"CONNLAB_{field.upper()}"
                knob = replace(knob, workloads=of_role.workloads, env=env)
            yield knob


def of_knobs(knobs: type[Knobs], roles: Mapping[str, Role]) -> dict[str, Knob]:
    """Give the knobs of a model, which these roles declare, by their full names."""
    return {knob.name: knob for knob in _of_knobs(knobs, roles)}


CATALOGUE: dict[str, Knob] = of_knobs(Knobs, ROLES)


def flat(knobs: Knobs) -> dict[str, KnobValue]:
    """Give every knob's value under its full name; sysctls as `kernel.<role>.<name>`."""
    groups = {name: group for name, group in knobs if isinstance(group, Part)}
    values: dict[str, KnobValue] = {
        f"{name}.{field}": value for name, group in groups.items() for field, value in group
    }
    return values | {
        f"kernel.{role}.{name}": value for role, names in knobs.kernel.items() for name, value in names.items()
    }


def show_value(name: str, value: Scalar) -> str:
    """Write the value of the knob `name` as a scenario would: `20s`, `true`, `auto`."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and name in CATALOGUE and CATALOGUE[name].is_duration:
        return format_duration(value)
    return str(value) if value != "" else '""'


def environment(knobs: Knobs, group: str, catalogue: Mapping[str, Knob] = CATALOGUE) -> dict[str, str]:
    """Give a group's knobs as a container's environment, durations as `<n>ms`.

    Those of the lab stay out: how many instances there are, say, is not an instance's business.
    """
    values = flat(knobs)
    return {
        knob.env: _environment_value(values[knob.name], knob)
        for knob in catalogue.values()
        if knob.group == group and knob.env is not None
    }


def _environment_value(value: KnobValue, knob: Knob) -> str:
    if knob.is_duration:
        return f"{value}ms"
    return ("true" if value else "false") if isinstance(value, bool) else str(value)
