"""Takes services over from a Compose file: what the lab can carry out, and everything else named key by key."""

import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from lab import paths
from lab.errors import BadInput, Problem
from lab.reading import document as documents
from lab.reading.document import Document, Location
from lab.reading.validation_messages import describe_error, did_you_mean, locate, name_place
from lab.scenarios.services import Capability, Service, is_service_name, is_variable, split_volume, spoken

_KEY = "services"
# Each is read by the method of its name, or is text as it stands.
_TAKEN = frozenset({
    "build", "cap_add", "command", "depends_on", "environment", "healthcheck", "image", "networks", "tmpfs", "user",
    "volumes",
})  # fmt: skip
_TEXTS = ("image", "user")
# What says nothing about a run of the lab, or what the lab does anyway.
_PASSED_OVER = frozenset({
    "cap_drop", "container_name", "expose", "hostname", "init", "labels", "logging", "platform",
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
# As Compose reads a text: a doubled sign is one, a name may stand in braces, and then with a default.
_VARIABLE = re.compile(r"\$(?:(?P<one>\$)|(?P<bare>[A-Za-z_]\w*)|\{(?P<braces>[^}]*)\}|)", re.ASCII)
_BRACES = re.compile(r"(?P<name>[A-Za-z_]\w*)(?::?-(?P<default>[^$]*))?", re.ASCII)


def expand(services: Mapping[str, Service], document: Document, home: Path) -> tuple[dict[str, Service], list[Problem]]:
    """Put in the place of each service of a Compose file what the file says of it, with the services that it needs.

    What the scenario says of the service goes over what the file says.
    """
    expanded, problems = dict(services), list[Problem]()
    for name, service in services.items():
        if service.compose is None or service.service is None:
            continue
        where = document.where((_KEY, name, "compose"))
        try:
            taken = _Taking(_file(service.compose, home, where), home, service)
            found = taken.over(service.service, where)
        except BadInput as error:
            problems += error.problems
            continue
        if taken.problems:
            problems += taken.problems
            continue
        own = service.model_dump(exclude_unset=True, exclude={"compose", "service", "ignore"})
        first, *needed = found
        if environment := {**found[first].get("environment", {}), **service.environment}:
            own["environment"] = environment
        try:
            expanded[name] = Service.model_validate({**found[first], **own})
            for other in needed:
                # What the scenario declares itself stands in the place of the file's.
                if other not in expanded:
                    first, own = other, {}
                    expanded[other] = Service.model_validate(found[other])
        except ValidationError as error:
            problems += [taken.refused(first, finding, document, name, own) for finding in error.errors()]
    return expanded, problems


def _file(named: str, home: Path, where: str) -> Path:
    file = paths.real(home / named)
    if not file.is_file():
        raise BadInput(Problem(f"there is no Compose file {named}", where, "its path begins at the scenario's folder"))
    if file.parent != paths.real((home / named).parent):
        raise BadInput(Problem(f"{named} is a link to another folder", where, "name the file itself"))
    return file


@dataclass
class _Taking:
    """Takes one service, and what it depends on, over from a Compose file.

    Attributes:
        asked: what the scenario says of the service.
    """

    file: Path
    home: Path
    asked: Service
    problems: list[Problem] = field(default_factory=list)
    # Where the file says what a service has, by the service's name and the key of the lab's form.
    places: dict[tuple[str, str], Location] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.document = documents.read(self.file)
        content = self.document.content
        self.content: Mapping[str, Any] = content if isinstance(content, Mapping) else {}
        found = self.content.get(_KEY)
        self.services: Mapping[str, Any] = found if isinstance(found, Mapping) else {}

    @property
    def name(self) -> str:
        """Return what messages call the file."""
        return self.document.file

    def over(self, service: str, where: str) -> dict[str, dict[str, Any]]:
        """Return the service as the lab's form has it, and those that it depends on, all of them, by their names.

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
            if name not in found and name in self.services:
                found[name] = self._service(name, self.services[name], first=not found)
                waiting += found[name].get("depends_on", [])
        return found

    def refused(
        self, service: str, finding: ErrorDetails, scenario: Document, name: str, own: Mapping[str, Any]
    ) -> Problem:
        """Return what the lab's form refuses of a service as a problem at its place, here or in the scenario."""
        location = locate(finding)
        what, hint = describe_error(finding, [], name_place((service, *location)))
        key = str(location[0]) if location else ""
        if key in own or not location:
            return Problem(what, scenario.where((_KEY, name, *location)), hint)
        return Problem(what, self.document.where(self.places.get((service, key), (_KEY, service))), hint)

    def _service(self, name: str, content: object, *, first: bool) -> dict[str, Any]:
        if not isinstance(content, Mapping):
            self._wrong(content, (_KEY, name), "a mapping of keys to values")
            return {}
        if not first and not is_service_name(name):
            what = f"the service's name '{name}' cannot be taken over: it is to be a host's"
            hint = "small letters, digits and hyphens, a letter first; or declare it in the scenario's services"
            self.problems.append(Problem(what, self.document.where((_KEY, name)), hint))
        taken: dict[str, Any] = {}
        # What the scenario gives a value needs none in the file.
        self._given = frozenset(self.asked.environment) if first else frozenset[str]()
        for key, value in content.items():
            at: Location = (_KEY, name, key)
            if key in self.asked.ignore or key in _PASSED_OVER or key.startswith("x-"):
                continue
            if key not in _TAKEN:
                self._refuse(f"{name}: '{key}' cannot be taken over", at, _REFUSED.get(key), key)
                continue
            if value is None:
                continue  # it says nothing, to Compose as well
            taken_of_key = {key: self._text(value, at)} if key in _TEXTS else getattr(self, f"_{key}")(value, at)
            for new, found in taken_of_key.items():
                taken[new] = [*taken.get(new, []), *found] if new == "writable" else found
                self.places[name, new] = at
        return taken

    def _refuse(self, what: str, at: Location, why: str | None, key: str) -> None:
        because = f": {why}" if why else ""
        hint = f"write ignore: [{key}] beside 'compose' to leave it out"
        self.problems.append(Problem(f"{what}{because}", self.document.where(at), hint))

    def _wrong(self, value: object, at: Location, takes: str) -> None:
        """Note that a value is of another kind than Compose takes there."""
        kinds = {dict: "a mapping", list: "a list", type(None): "nothing"}
        shown = kinds.get(type(value)) or f"'{spoken(value)}'"  # type: ignore[arg-type] # what is left is a scalar
        named = ".".join(str(one + 1) if isinstance(one, int) else one for one in at[1:])
        self.problems.append(
            Problem(f"{named} takes {takes}, not {shown}", self.document.where(at), "correct the file")
        )

    def _text(self, value: object, at: Location, takes: str = "text") -> str:
        """Return a text with the defaults of its variables: a run must not depend on a shell's environment."""

        def replaced(match: re.Match[str]) -> str:
            if match["one"]:
                return "$"
            name, default = match["bare"], None
            if braces := _BRACES.fullmatch(match["braces"] or ""):
                name, default = braces["name"], braces["default"]
            if name is None:
                what, hint = (
                    f"the lab cannot read '{match[0]}'",
                    "write $$ for a dollar sign, ${NAME:-default} for more",
                )
                self.problems.append(Problem(what, self.document.where(at), hint))
            elif default is None:
                self._unknown(name, at)
            return default or ""

        if isinstance(value, bool | int | float | str):
            return _VARIABLE.sub(replaced, spoken(value))
        self._wrong(value, at, takes)
        return ""

    def _unknown(self, variable: str, at: Location) -> None:
        hint = "give it a default in the file, or set the key in the scenario"
        self.problems.append(Problem(f"the lab does not know the value of ${variable}", self.document.where(at), hint))

    def _texts(self, value: object, at: Location, takes: str = "a list of texts") -> list[str]:
        if isinstance(value, list):
            return [self._text(one, (*at, index), takes) for index, one in enumerate(value)]
        self._wrong(value, at, takes)
        return []

    def _words(self, value: object, at: Location) -> list[str]:
        if isinstance(value, list):
            return self._texts(value, at)
        try:
            return shlex.split(self._text(value, at, "text, or a list of texts"))
        except ValueError:
            self._wrong(value, at, "text whose quotes are closed")
            return []

    def _build(self, value: object, at: Location) -> dict[str, Any]:
        build: Mapping[str, object] = value if isinstance(value, Mapping) else {"context": value}
        unknown = set(build) - {"context", "dockerfile", "target", "args"}
        if unknown:
            key = min(unknown)
            why = "the lab takes context, dockerfile, target and args"
            self._refuse(f"'build.{key}' cannot be taken over", (*at, key), why, "build")
            return {}
        texts = {
            key: self._text(build[key], (*at, key), "the path of a folder" if key == "context" else "text")
            for key in ("context", "dockerfile", "target")
            if build.get(key) is not None
        }
        context = texts.get("context", ".")
        folder = paths.inside(self.file.parent, context)
        if folder is None or not paths.inside(self.file.parent, context, texts.get("dockerfile", ".")):
            why = "a Compose file's images are built from what lies in its folder"
            self._refuse("the build cannot be taken over", at, why, "build")
            return {}
        found: dict[str, Any] = {**texts, "context": os.path.relpath(folder, paths.real(self.home))}
        if build.get("args") is not None:
            found["args"] = self._pairs(build["args"], (*at, "args"))
        return {"build": found}

    def _command(self, value: object, at: Location) -> dict[str, Any]:
        return {"command": self._words(value, at)}

    def _environment(self, value: object, at: Location) -> dict[str, Any]:
        return {"environment": self._pairs(value, at, self._given)}

    def _pairs(self, value: object, at: Location, given: frozenset[str] = frozenset()) -> dict[str, str]:
        """Return names and values, which a Compose file has as a mapping or as a list of `name=value`.

        One without a value would be the shell's. Those that are `given` have one elsewhere.
        """
        pairs: dict[str, tuple[object, Location]] = {}
        if isinstance(value, Mapping):
            pairs = {key: (one, (*at, key)) for key, one in value.items()}
        elif isinstance(value, list):
            for index, one in enumerate(value):
                if not isinstance(one, str):
                    self._wrong(one, (*at, index), "name=value")
                    continue
                name, equals, text = one.partition("=")
                pairs[name] = (text if equals else None, (*at, index))
        else:
            self._wrong(value, at, "a mapping of names to values, or a list of name=value")
        found: dict[str, str] = {}
        for name, (one, place) in pairs.items():
            if name in given:
                continue
            if not is_variable(name):
                self._wrong(name, place, "names of variables")
            elif one is None:
                self._unknown(name, place)
            else:
                found[name] = self._text(one, place)
        return found

    def _healthcheck(self, value: object, at: Location) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            self._wrong(value, at, "a mapping")
            return {}
        test, place = value.get("test"), (*at, "test")
        if test is None or value.get("disable") is True:
            return {}
        if isinstance(test, str):
            test = ["CMD-SHELL", test]
        words = self._texts(test, place, "text, or a list that begins with CMD, CMD-SHELL or NONE")
        if not isinstance(test, list) or words == ["NONE"]:
            return {}
        kind, command = test[:1], words[1:]
        if kind == ["CMD"] and command:
            return {"ready": command}
        if kind == ["CMD-SHELL"] and len(command) == 1 and command[0]:
            return {"ready": ["/bin/sh", "-c", *command]}
        self._wrong(value["test"], place, "CMD and a command with its arguments, or CMD-SHELL and one text")
        return {}

    def _cap_add(self, value: object, at: Location) -> dict[str, Any]:
        found = self._texts(value, at)
        for one in found:
            if one not in get_args(Capability):
                self._refuse(f"the lab does not give the capability {one}", at, None, "cap_add")
        return {"capabilities": [one for one in found if one in get_args(Capability)]}

    def _tmpfs(self, value: object, at: Location) -> dict[str, Any]:
        found = self._texts(value if isinstance(value, list) else [value], at, "text, or a list of texts")
        return {"writable": [one.partition(":")[0] for one in found]}

    def _networks(self, value: object, at: Location) -> dict[str, Any]:
        """Pass over networks of the file's own, because a run has one; an external one leads to somebody else."""
        declared = self.content.get("networks")
        names = list(value) if isinstance(value, Mapping) else self._texts(value, at)
        for name in names:
            content = declared.get(name) if isinstance(declared, Mapping) else None
            if isinstance(content, Mapping) and content.get("external"):
                why = "a run has one network, with no way out"
                self._refuse(f"the external network '{name}' cannot be taken over", at, why, "networks")
        return {}

    def _depends_on(self, value: object, at: Location) -> dict[str, Any]:
        if isinstance(value, Mapping):
            for name, one in value.items():
                if not isinstance(one, Mapping):
                    self._wrong(one, (*at, name), "a mapping")
                elif one.get("condition") == "service_completed_successfully":
                    why = "the lab starts what runs on, and waits for nothing to end"
                    self._refuse(f"the condition of '{name}' cannot be taken over", (*at, name), why, "depends_on")
            return {"depends_on": list(value)}
        return {"depends_on": self._texts(value, at, "a list of services, or a mapping of them")}

    def _volumes(self, value: object, at: Location) -> dict[str, Any]:
        """Take files of the scenario's folder over; a named volume becomes a folder that is empty at first."""
        read: list[str] = []
        written: list[str] = []
        if not isinstance(value, list):
            self._wrong(value, at, "a list")
            return {}
        for index, one in enumerate(value):
            place = (*at, index)
            if not isinstance(one, str):
                self._refuse("a volume in the long form cannot be taken over", place, None, "volumes")
                continue
            text = self._text(one, place)
            if not text.startswith((".", "~")):
                source, colon, rest = text.partition(":")
                if not source.startswith("/") or not colon:
                    written.append(rest.partition(":")[0] if colon else source)
                    continue
            source, target, _ = split_volume(text)
            inside = paths.inside(self.home, str(self.file.parent / source))
            if source and inside:
                read.append(f"./{inside.relative_to(paths.real(self.home))}:{target}")
            else:
                why = "the lab mounts files of the scenario's folder alone"
                self._refuse(f"the volume {one} cannot be taken over", place, why, "volumes")
        return {"volumes": read, "writable": written}
