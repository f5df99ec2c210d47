"""Takes services over from a Compose file: what the lab can carry out, and everything else named key by key."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError

from lab import paths
from lab.errors import BadInput, Problem
from lab.reading import document as documents
from lab.reading.document import Document, Location
from lab.reading.nearest import did_you_mean
from lab.scenario.services import Capability, Service

_KEY = "services"
# What says nothing about a run of the lab, or what the lab does anyway.
_PASSED_OVER = frozenset({
    "cap_drop", "container_name", "depends_on", "expose", "hostname", "init", "labels", "logging", "platform",
    "profiles", "pull_policy", "read_only", "restart", "stop_grace_period", "stop_signal",
})  # fmt: skip
_REFUSED = {
    "ports": "the lab's network has no way in, and the load comes from inside",
    "privileged": "the lab runs nothing privileged",
    "network_mode": "a service runs in the lab's own network namespace",
    "pid": "a service has its own process namespace",
    "ipc": "a service has its own IPC namespace",
    "secrets": "the lab hands over no secrets",
    "configs": "the lab mounts files of the scenario's folder alone",
    "security_opt": "the lab sets no-new-privileges, and nothing else",
    "sysctls": "sysctls are knobs here: kernel.<service>",
    "env_file": "the lab reads no further files",
    "extends": "the lab reads no further files",
    "deploy": "instances are a knob of the service, and the lab takes no limits over",
}
_VARIABLE = re.compile(r"\$(?:\$|\{(?P<name>\w+)(?::?-(?P<default>[^}]*))?\}|(?P<bare>\w+))")


def expand(services: Mapping[str, Service], document: Document, home: Path) -> tuple[dict[str, Service], list[Problem]]:
    """Put in the place of each service of a Compose file what the file says of it, with the services that it needs.

    What the scenario says of the service goes over what the file says.

    Args:
        services: as the scenario has them.
        document: the scenario.
        home: its folder.
    """
    expanded, problems = dict(services), list[Problem]()
    for name, service in services.items():
        if service.compose is None or service.service is None:
            continue
        where = document.where((_KEY, name, "compose"))
        try:
            taken = _Taking(_file(service.compose, home, where), home, service.without)
            found = taken.over(service.service, where)
        except BadInput as error:
            problems += error.problems
            continue
        problems += taken.problems
        own = service.model_dump(exclude_unset=True, exclude={"compose", "service", "without"})
        first, *needed = found.items()
        if environment := {**first[1].get("environment", {}), **service.environment}:
            own["environment"] = environment
        try:
            expanded[name] = Service.model_validate({**first[1], **own})
            for other, content in needed:
                # What the scenario declares itself stands in the place of the file's.
                expanded.setdefault(other, Service.model_validate(content))
        except ValidationError as error:
            problems += [Problem(f"{taken.name}: {found['msg']}", where) for found in error.errors()]
    return expanded, problems


def _file(named: str, home: Path, where: str) -> Path:
    file = paths.real(home / named)
    if not file.is_file():
        raise BadInput(Problem(f"there is no Compose file {named}", where, "its path begins at the scenario's folder"))
    return file


@dataclass
class _Taking:
    """Takes one service, and what it depends on, over from a Compose file."""

    file: Path
    home: Path
    without: list[str]
    problems: list[Problem] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.document = documents.read(self.file)
        content = self.document.content
        found = content.get(_KEY) if isinstance(content, Mapping) else None
        self.services: Mapping[str, Any] = found if isinstance(found, Mapping) else {}

    @property
    def name(self) -> str:
        """What messages call the file."""
        return self.document.file

    def over(self, service: str, where: str) -> dict[str, dict[str, Any]]:
        """Give the service as the lab's form has it, and those that it depends on, all of them, by their names.

        Raises:
            BadInput: the file has no such service.
        """
        if service not in self.services:
            hint = did_you_mean(service, self.services) or f"it has {', '.join(self.services) or 'no services'}"
            raise BadInput(Problem(f"{self.name} has no service '{service}'", where, hint))
        found: dict[str, dict[str, Any]] = {}
        waiting = [service]
        while waiting:
            name = waiting.pop(0)
            if name not in found and isinstance(self.services.get(name), Mapping):
                found[name] = self._taken(name, self.services[name])
                waiting += found[name].get("needs", [])
        return found

    def _taken(self, name: str, content: Mapping[str, Any]) -> dict[str, Any]:
        taken: dict[str, Any] = {}
        for key, value in content.items():
            at: Location = (_KEY, name, key)
            if key in self.without or key in _PASSED_OVER:
                continue
            if key not in _TAKEN:
                self._refuse(f"{name}: '{key}' cannot be taken over", at, _REFUSED.get(key), key)
                continue
            taken |= _TAKEN[key](self, value, at)
        needs = content.get("depends_on", []) if "depends_on" not in self.without else []
        if needs:
            taken["needs"] = list(needs)
        return taken

    def _refuse(self, what: str, at: Location, why: str | None, key: str) -> None:
        because = f": {why}" if why else ""
        way_on = f"write without: [{key}] beside 'compose' to leave it out"
        self.problems.append(Problem(f"{what}{because}", self.document.where(at), way_on))

    def _text(self, value: object, at: Location) -> str:
        """Give a text with the defaults of its variables: a run must not depend on a shell's environment."""

        def replaced(match: re.Match[str]) -> str:
            if match[0] == "$$":
                return "$"
            if match["default"] is None:
                what = f"the lab does not know the value of ${match['name'] or match['bare']}"
                way_on = "give it a default in the file, or set the key in the scenario"
                self.problems.append(Problem(what, self.document.where(at), way_on))
            return match["default"] or ""

        return _VARIABLE.sub(replaced, str(value))

    def _words(self, value: object, at: Location) -> list[str]:
        if isinstance(value, list):
            return [self._text(one, at) for one in value]
        return shlex.split(self._text(value, at))

    def _image(self, value: object, at: Location) -> dict[str, Any]:
        return {"image": self._text(value, at)}

    def _build(self, value: object, at: Location) -> dict[str, Any]:
        build: Mapping[str, object] = value if isinstance(value, Mapping) else {"context": value}
        unknown = set(build) - {"context", "dockerfile", "target", "args"}
        if unknown:
            key = min(unknown)
            why = "the lab takes context, dockerfile, target and args"
            self._refuse(f"'build.{key}' cannot be taken over", (*at, key), why, "build")
            return {}
        context = self._text(build.get("context", "."), at)
        found: dict[str, Any] = {"context": os.path.relpath(paths.real(self.file.parent / context), self.home)}
        found |= {key: self._text(build[key], (*at, key)) for key in ("dockerfile", "target") if key in build}
        if "args" in build:
            found["args"] = self._pairs(build["args"], (*at, "args"))
        return {"build": found}

    def _command(self, value: object, at: Location) -> dict[str, Any]:
        return {"command": self._words(value, at)}

    def _environment(self, value: object, at: Location) -> dict[str, Any]:
        return {"environment": self._pairs(value, at)}

    def _pairs(self, value: object, at: Location) -> dict[str, str]:
        """Give names and values, which a Compose file has as a mapping or as a list of `name=value`."""
        if isinstance(value, Mapping):
            pairs: Iterable[tuple[str, object]] = value.items()
        else:
            pairs = [str(one).partition("=")[::2] for one in value] if isinstance(value, list) else []
        return {key: self._text("" if one is None else one, at) for key, one in pairs}

    def _healthcheck(self, value: object, at: Location) -> dict[str, Any]:
        test = value.get("test") if isinstance(value, Mapping) else None
        if isinstance(test, list) and test[:1] == ["CMD"]:
            return {"ready": self._words(test[1:], at)}
        if isinstance(test, list) and test[:1] == ["CMD-SHELL"]:
            return {"ready": ["/bin/sh", "-c", self._text(test[1], at)]}
        return {"ready": ["/bin/sh", "-c", self._text(test, at)]} if isinstance(test, str) else {}

    def _user(self, value: object, at: Location) -> dict[str, Any]:
        return {"user": self._text(value, at)}

    def _cap_add(self, value: object, at: Location) -> dict[str, Any]:
        found = self._words(value, at)
        for one in found:
            if one not in get_args(Capability):
                self._refuse(f"the lab does not give the capability {one}", at, None, "cap_add")
        return {"capabilities": [one for one in found if one in get_args(Capability)]}

    def _tmpfs(self, value: object, at: Location) -> dict[str, Any]:
        found = value if isinstance(value, list) else [value]
        return {"writable": [self._text(one, at).split(":")[0] for one in found]}

    def _networks(self, value: object, at: Location) -> dict[str, Any]:
        """Pass over networks of the file's own, because a run has one; an external one leads to somebody else."""
        declared = self.document.content.get("networks") if isinstance(self.document.content, Mapping) else None
        for name in value if isinstance(value, list | Mapping) else ():
            content = declared.get(name) if isinstance(declared, Mapping) else None
            if isinstance(content, Mapping) and content.get("external"):
                why = "a run has one network, with no way out"
                self._refuse(f"the external network '{name}' cannot be taken over", at, why, "networks")
        return {}

    def _volumes(self, value: object, at: Location) -> dict[str, Any]:
        """Take files of the scenario's folder over; a named volume becomes a folder that is empty at first."""
        read: list[str] = []
        written: list[str] = []
        for index, one in enumerate(value if isinstance(value, list) else []):
            if not isinstance(one, str):
                self._refuse("a volume in the long form cannot be taken over", (*at, index), None, "volumes")
                continue
            source, _, rest = self._text(one, (*at, index)).partition(":")
            target = rest.partition(":")[0]
            if not source.startswith((".", "/", "~")):
                written.append(target or source)
                continue
            inside = os.path.relpath(paths.real(self.file.parent / source), self.home)
            if source.startswith(".") and not inside.startswith(".."):
                read.append(f"./{inside}:{target}")
            else:
                why = "the lab mounts files of the scenario's folder alone"
                self._refuse(f"the volume {one} cannot be taken over", (*at, index), why, "volumes")
        return {**({"volumes": read} if read else {}), **({"writable": written} if written else {})}


_TAKEN: Mapping[str, Callable[[_Taking, Any, Location], dict[str, Any]]] = {
    "image": _Taking._image,  # noqa: SLF001 # its own table
    "build": _Taking._build,  # noqa: SLF001
    "command": _Taking._command,  # noqa: SLF001
    "environment": _Taking._environment,  # noqa: SLF001
    "healthcheck": _Taking._healthcheck,  # noqa: SLF001
    "user": _Taking._user,  # noqa: SLF001
    "cap_add": _Taking._cap_add,  # noqa: SLF001
    "tmpfs": _Taking._tmpfs,  # noqa: SLF001
    "networks": _Taking._networks,  # noqa: SLF001
    "volumes": _Taking._volumes,  # noqa: SLF001
}
