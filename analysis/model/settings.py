"""A run's settings as the model reads them: knobs and sysctls that must be there and be numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Knob(Protocol):
    """A knob's value; durations in ms."""

    @property
    def value(self) -> object:
        """A number, a truth value or a text; None if it has none."""


class Action(Protocol):
    """What the lab does to an instance during the load."""

    @property
    def instance(self) -> str:
        """Its name."""


class Listener(Protocol):
    """A listening socket, as the kernel described it before the load."""

    @property
    def port(self) -> int:
        """Its port."""

    @property
    def limit(self) -> int:
        """The limit of its queue."""


class Limits(Protocol):
    """Which knobs bound what a program holds, by their names within the role."""

    @property
    def backlog(self) -> str | None:
        """The backlog that it asks of listen(2)."""

    @property
    def connections(self) -> str | None:
        """The connections that it takes at once."""

    @property
    def connect_timeout(self) -> str | None:
        """How long it tries to connect."""


class Role(Protocol):
    """What the model needs of a role's declaration."""

    @property
    def kind(self) -> str:
        """Client, proxy or server."""

    @property
    def limits(self) -> Limits:
        """What bounds it."""

    @property
    def port(self) -> int:
        """Where it takes its traffic."""

    def knob(self, name: str) -> str:
        """The full name of one of its knobs."""


class Manifest(Protocol):
    """What the model needs of a run's manifest."""

    @property
    def path(self) -> Sequence[str]:
        """The roles, from the client to the last server."""

    @property
    def roles(self) -> Mapping[str, Role]:
        """The declarations of these roles."""

    @property
    def knobs(self) -> Mapping[str, Knob]:
        """By name."""

    @property
    def sysctls(self) -> Mapping[str, Mapping[str, str | None]]:
        """By instance and name; None where the kernel has no such setting."""

    @property
    def listeners(self) -> Mapping[str, Sequence[Listener]]:
        """By instance, as read back; empty before a run."""

    @property
    def actions(self) -> Sequence[Action]:
        """In the order of their beginnings."""

    def of_role(self, role: str) -> list[str]:
        """The instances of a role; empty if it takes no part."""


class UndefinedError(Exception):
    """The model does not hold for a run; the text says why."""


def require(condition: bool, otherwise: str) -> None:  # noqa: FBT001  reads as a sentence
    """Raise UndefinedError with a text unless a condition of the model holds."""
    if not condition:
        raise UndefinedError(otherwise)


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of one run; what is missing raises UndefinedError."""

    manifest: Manifest

    def integer(self, name: str) -> int:
        """A knob that is a whole number; durations in ms."""
        value = self.get(name)
        if isinstance(value, bool) or not isinstance(value, int):
            raise UndefinedError(f"the manifest has no whole number for {name}")
        return value

    def get(self, name: str) -> object:
        """A knob of any type, None if there is none."""
        knob = self.manifest.knobs.get(name)
        return None if knob is None else knob.value

    def sysctl(self, instance: str, name: str) -> int | None:
        """A sysctl that is a whole number; None if the kernel has no such setting."""
        found = self.manifest.sysctls.get(instance, {})
        if name not in found:
            raise UndefinedError(f"the manifest has no {name} of {instance}")
        text = found[name]
        try:
            return None if text is None else int(text)
        except ValueError:
            raise UndefinedError(f"{name} of {instance} is not a number: {text}") from None

    def instances(self, role: str) -> list[str]:
        """The instances of a role, at least one."""
        instances = self.manifest.of_role(role)
        require(bool(instances), f"the run has no {role}")
        return instances
