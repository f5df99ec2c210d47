"""A run's settings, and what they say of the accept queue by the rules of the kernel and of its server.

A setting that is missing or is no number raises ModelNotApplicable, with the reason.
"""

from __future__ import annotations

from dataclasses import dataclass

from formats.manifest import SOMAXCONN, Manifest, listeners_of_traffic
from formats.role import NO_LIMIT

BACKEND = "backend"


class ModelNotApplicable(Exception):
    """The model does not hold for a run; the text says why."""


def require(condition: bool, otherwise: str) -> None:  # noqa: FBT001  reads as a sentence
    """Raise ModelNotApplicable with a text unless a condition of the model holds."""
    if not condition:
        raise ModelNotApplicable(otherwise)


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of one run; what is missing raises ModelNotApplicable."""

    manifest: Manifest

    def integer(self, name: str) -> int:
        """Return a knob that is a whole number; durations in ms."""
        value = self.manifest.integer_of(name)
        if value is None:
            raise ModelNotApplicable(f"the manifest has no whole number for {name}")
        return value

    def get(self, name: str) -> object:
        """Return a knob of any type, None if there is none."""
        return self.manifest.value_of(name)

    def sysctl(self, instance: str, name: str) -> int | None:
        """Return a sysctl that is a whole number; None if the kernel has no such setting."""
        found = self.manifest.sysctls.get(instance, {})
        if name not in found:
            raise ModelNotApplicable(f"the manifest has no {name} of {instance}")
        text = found[name]
        try:
            return None if text is None else int(text)
        except ValueError:
            raise ModelNotApplicable(f"{name} of {instance} is not a number: {text}") from None

    def instances(self, role: str) -> list[str]:
        """Return the instances of a role, at least one."""
        instances = self.manifest.of_role(role)
        require(bool(instances), f"the run has no {role}")
        return instances


def answering_role(settings: Settings) -> str:
    """Return the server that answers; the backend where there is none, which the run then lacks."""
    roles = settings.manifest.roles
    return next((name for name in settings.manifest.path if roles[name].kind == "server"), BACKEND)


def listen_backlog(settings: Settings) -> int:
    """Return the limit of the accept queue of each server that answers."""
    server = answering_role(settings)
    backlogs = {_backlog_of(settings, server, instance) for instance in settings.instances(server)}
    require(len(backlogs) == 1, f"the {server}s have different sysctls")
    return backlogs.pop()


def _backlog_of(settings: Settings, server: str, instance: str) -> int:
    role = settings.manifest.roles[server]
    if role.limits.backlog is None:
        listeners = settings.manifest.listeners.get(instance, ())
        limits = {each.limit for each in listeners_of_traffic(listeners, role.port, ipv6=role.ipv6)}
        require(
            len(limits) == 1, f"no knob of {server} is its backlog, and the kernel's limit is known from the run on"
        )
        return limits.pop()
    somaxconn = settings.sysctl(instance, SOMAXCONN)
    if somaxconn is None:
        raise ModelNotApplicable(f"the kernel of {instance} has no {SOMAXCONN}")
    # What the program asks of listen(2), cut by net.core.somaxconn of its namespace.
    return min(settings.integer(role.knob(role.limits.backlog)), somaxconn)


def accept_capacity(settings: Settings) -> int:
    """Return the connections that all servers that answer take at once, together."""
    server = answering_role(settings)
    instances, limits = settings.instances(server), settings.manifest.roles[server].limits
    if limits.connections is None:
        raise ModelNotApplicable(f"no knob of {server} says how many connections it takes at once")
    knob = settings.manifest.roles[server].knob(limits.connections)
    require(settings.integer(knob) != NO_LIMIT, f"{knob} is {NO_LIMIT}: {server} takes all connections that come")
    # It accepts that many and no more. The kernel then completes handshakes until its queue is *longer* than the
    # backlog: sk_acceptq_is_full() in include/net/sock.h compares with >, so the queue holds one more than asked.
    return (settings.integer(knob) + listen_backlog(settings) + 1) * len(instances)
