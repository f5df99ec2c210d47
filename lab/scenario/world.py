"""What a scenario may name: the lab's roles and their knobs, and those of the services that it brings itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from pydantic import Field, TypeAdapter, create_model

from formats.role import Role
from lab.roles.declared_roles import ROLES
from lab.scenario import catalogue, services
from lab.scenario.catalogue import CATALOGUE, Knob
from lab.scenario.fields import Scenario
from lab.scenario.knobs import knobs_with
from lab.scenario.services import Service

_SERVICES = TypeAdapter(dict[str, Service])
_KEPT = 64


@dataclass(frozen=True)
class World:
    """What a scenario may name.

    Attributes:
        roles: by name, in the order of a path.
        scenario: the model of its file.
        catalogue: every knob by its full name.
        services: its own, by name.
    """

    roles: Mapping[str, Role]
    scenario: type[Scenario]
    catalogue: Mapping[str, Knob]
    services: Mapping[str, Service]


OWN = World(ROLES, Scenario, CATALOGUE, {})


def of(own: Mapping[str, Service]) -> World:
    """Give what a scenario with these services may name."""
    # Cells of a series have the same ones, and models are slow to make.
    return _of(_SERVICES.dump_json(dict(own), exclude_defaults=True)) if own else OWN


@lru_cache(maxsize=_KEPT)
def _of(text: bytes) -> World:
    own = _SERVICES.validate_json(text)
    roles = services.roles({name: one for name, one in own.items() if services.may_stand_on_path(name)})
    names: Any = Literal[(*ROLES, *roles)]
    knobs = knobs_with(roles, names)
    scenario = create_model(
        "Scenario", __base__=Scenario, path=(list[names], Field(min_length=2)), knobs=(knobs, knobs())
    )
    known = catalogue.of_knobs(knobs, {**ROLES, **roles})
    return World({**ROLES, **roles}, scenario, known, own)
