"""Puts Compose projects into a scenario: services that it names, what these need, and a whole project as a path."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeGuard

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from lab import paths
from lab.errors import BadInput, Gathered, Problem
from lab.reading.document import Document, Location
from lab.reading.validation_messages import describe_error, did_you_mean, locate, name_place
from lab.roles.declared_roles import ROLES
from lab.scenarios import generators
from lab.scenarios.compose_file import Taken, completing, find_port, passed_through, take_service
from lab.scenarios.compose_project import Project, exposed_port, load_project
from lab.scenarios.compose_proxy import Proxy, find_proxy
from lab.scenarios.generator_programs import PROGRAMS
from lab.scenarios.services import Service, is_service_name, may_be_named, may_stand_on_path, needed_by

_KEY = "services"
_SOURCES = ("image", "build", "compose", "cluster_service")
Files = tuple[str, ...]


@dataclass(frozen=True)
class _Wanted:
    """A service of a project that takes part.

    Attributes:
        name: what it is called here.
        step: its name in the project.
        asked: what the scenario says of it.
    """

    name: str
    step: str
    files: Files
    asked: Service | None = None

    @property
    def own(self) -> dict[str, Any]:
        """Return what the scenario says of it."""
        left_out = {"compose", "service", "ignore"}
        return self.asked.model_dump(exclude_unset=True, exclude=left_out) if self.asked else {}


@dataclass
class Composed:
    """What a scenario takes from Compose projects.

    Attributes:
        document: the scenario, with the lines of what is put into it.
        notices: what was left out, a line each.
    """

    document: Document
    home: Path
    notices: list[str] = field(default_factory=list)
    _projects: dict[Files, Project] = field(default_factory=dict)
    # Of each project, what its services are here, by their names in its files; of a proxy, the lab's own role.
    _names: dict[Files, dict[str, str]] = field(default_factory=dict)
    # By a service on the path, what stands before it in its project.
    _before: dict[str, str | None] = field(default_factory=dict)
    _proxy: Proxy | None = None
    # How many services of one upstream a service on the path stands for.
    _alike: dict[str, int] = field(default_factory=dict)
    _stood_for: set[str] = field(default_factory=set)
    # Services that only a proxy's configuration leads to.
    _beside: list[_Wanted] = field(default_factory=list)

    def spread(self, content: Mapping[str, Any]) -> dict[str, Any]:
        """Return a scenario's content in which each service of its project that the path names is a service of its own.

        Raises:
            BadInput: the project cannot be read, or has no such service.
        """
        path, own, files = content.get("path"), content.get(_KEY, {}), _files(content.get("compose"))
        if not files or not _is_texts(path) or not isinstance(own, Mapping):
            return dict(content)  # the scenario's model says what is wrong
        project = self._load(files, ("compose",))
        names = self._names.setdefault(files, {})
        changed: dict[str, Any] = {**content, _KEY: dict(own), "path": list(path)}
        before = None
        for index, step in enumerate(path):
            if _has_source(own.get(step)) or _is_of_lab(project, step, index):
                continue
            self._refuse_missing(project, step, ("path", index))
            following = path[index + 1 :]
            proxy = self._find_proxy(project, step) if index == 1 and following else None
            if proxy and proxy.role not in following:
                changed["path"][index] = names[step] = proxy.role
                changed[proxy.role] = self._stand_in(files, step, proxy, following[0], content.get(proxy.role))
                self._put_line((proxy.role,), ("path", index))
                before = step
                continue
            name = self._take_name(names, step, own, on_path=True)
            changed["path"][index] = name
            if name != step:
                what = f"{project.shown}: the service {step} is called {name} here, also in figures and predictions"
                self.notices.append(f"{what}: {_why_renamed(step)}")
                self._name_host(changed, before, step, name)
            self._before[name], before = before, step
            changed[_KEY][name] = self._declare(changed[_KEY].pop(step, None), name, step, files, ("path", index))
        for step in own:
            if step not in project.services:
                continue
            if _has_source(own[step]):
                self.notices.append(
                    f"{project.shown}: nothing of the service {step} is taken, because the scenario says where"
                    " it comes from; say its port, command and all else there, too"
                )
            elif step not in names:
                name = self._take_name(names, step, own, on_path=False)
                changed[_KEY][name] = self._declare(changed[_KEY].pop(step), name, step, files, (_KEY, step))
        return changed

    def _find_proxy(self, project: Project, step: str) -> Proxy | None:
        """Return how one of the lab's proxies stands for a service; None if none does."""
        proxy = find_proxy(project, step, self.home)
        if proxy is None or proxy.inside:
            return proxy
        what = f"{project.shown}: {step} runs as it is, and the lab has no log of its requests: {proxy.config} lies"
        hint = f"put scenario.yaml beside the Compose file, and the lab's {proxy.role} stands for {step}"
        self.notices.append(f"{what} outside of the scenario's folder; {hint}")
        return None

    def _name_host(self, changed: Mapping[str, Any], before: str | None, step: str, name: str) -> None:
        """Let a proxy's hosts, where it has some, name the service behind it that has another name here."""
        hosts = changed.get(self._proxy.role, {}).get("hosts") if self._proxy and before not in self._before else None
        if hosts and step not in self._alike:
            hosts.setdefault(step, name)

    def expand(self, services: Mapping[str, Service]) -> dict[str, Service]:
        """Return services with what Compose projects say of them, and those that they need.

        What the scenario says of a service goes over what the project says.

        Raises:
            BadInput: a project has no such service, or one that cannot run here; all that was found is listed.
        """
        expanded = dict(services)
        gathered = Gathered()
        waiting: list[_Wanted] = []
        for name, service in services.items():
            if service.compose is not None and service.service is not None:
                wanted = _Wanted(name, service.service, _files(service.compose), service)
                with gathered:
                    self._find(wanted)
                    waiting.append(wanted)
        waiting += self._beside
        log: dict[Files, list[tuple[str, Taken, list[str]]]] = {}
        done: set[str] = set()
        while waiting:
            wanted = waiting.pop(0)
            if wanted.name in done:
                continue
            done.add(wanted.name)
            with gathered:
                expanded[wanted.name], taken, lost = self._expand_one(wanted, services)
                log.setdefault(wanted.files, []).append((wanted.step, taken, lost))
                waiting += self._needed(wanted, expanded[wanted.name], services)
        for name, after in pairwise(self._before):
            named, circle = expanded[name].depends_on, name in needed_by(expanded, [after])
            if after not in named and not circle:
                expanded[name] = expanded[name].model_copy(update={"depends_on": [*named, after]})
        for files, entries in log.items():
            known = {*self._names[files], *self._stood_for}
            self.notices += _summary(self._projects[files], entries, known)
        gathered.refuse()
        return expanded

    def where_build(self, name: str) -> str | None:
        """Return the line of a Compose file that builds a service; None if none does."""
        for files, names in self._names.items():
            for step in (step for step, called in names.items() if called == name):
                return self._projects[files].where("services", step, "build")
        return None

    def _load(self, files: Files, at: Location) -> Project:
        if files not in self._projects:
            self._projects[files] = load_project(files, self.home, self.document.where(at))
            self.notices += self._projects[files].notices
        return self._projects[files]

    def _find(self, wanted: _Wanted) -> None:
        """Refuse a service that its project does not have."""
        project = self._load(wanted.files, (_KEY, wanted.name, "compose"))
        self._refuse_missing(project, wanted.step, (_KEY, wanted.name, "service"))
        self._names.setdefault(wanted.files, {})[wanted.step] = wanted.name

    def _refuse_missing(self, project: Project, step: str, at: Location) -> None:
        if step not in project.services:
            what = f"{project.shown} has no service '{step}'"
            hint = did_you_mean(step, project.services) or f"it has {', '.join(project.services) or 'none'}"
            raise BadInput(Problem(what, self.document.where(at), hint))

    def _stand_in(self, files: Files, step: str, proxy: Proxy, following: str, said: object) -> dict[str, Any]:
        """Return the configuration of the lab's own proxy that stands for a service of a project."""
        project = self._projects[files]
        self._proxy = proxy
        what = f"{project.shown}: the lab's {ROLES[proxy.role].display_name} stands for {step}, with {proxy.config}"
        self.notices.append(
            f"{what}; figures call it {proxy.role}; to run the service itself: services: {{front: {{compose: …,"
            f" service: {step}}}}}, path: [k6, front, …]"
        )
        made: dict[str, Any] = {"config": proxy.config}
        if proxy.environment:
            made["environment"] = dict(proxy.environment)
        if hosts := self._hosts(files, proxy, following):
            made["hosts"] = hosts
        if not isinstance(said, Mapping):
            return made
        also = said.get("hosts")
        return {**made, **said, **({"hosts": {**made["hosts"], **also}} if hosts and isinstance(also, Mapping) else {})}

    def _hosts(self, files: Files, proxy: Proxy, following: str) -> dict[str, str]:
        """Return the services that a proxy's configuration leads to beside the next one.

        Those that are as the next one are more instances of it.
        """
        project, names = self._projects[files], self._names[files]
        if following not in project.services or not proxy.leads_to(following):
            return {}
        led_to = [one for one in project.services if one != following and proxy.leads_to(one)]
        others = [one for one in led_to if _source(project, one) != _source(project, following)]
        if alike := [one for one in led_to if one not in others]:
            self._alike[following] = 1 + len(alike)
            self._stood_for |= {*alike}
            what = f"{', '.join(alike)} of the same upstream and image: instances of {following}"
            self.notices.append(f"{project.shown}: {what}")
        for one in others:
            self._beside.append(_Wanted(self._take_name(names, one, (), on_path=False), one, files))
        return {one: names[one] for one in others}

    def _declare(self, said: object, name: str, step: str, files: Files, at: Location) -> dict[str, Any]:
        """Return a service of a project as the scenario could declare it, with what it says of it."""
        for place in [one for one in self.document.lines if one[:2] == (_KEY, step)]:
            self._put_line((_KEY, name, *place[2:]), place)
        if (_KEY, name) not in self.document.lines:
            self._put_line((_KEY, name), at)
        alike = {"instances": self._alike[step]} if step in self._alike else {}
        source = {"compose": files[0] if len(files) == 1 else list(files), "service": step}
        return {**alike, **source, **(said if isinstance(said, Mapping) else {})}

    def _put_line(self, location: Location, like: Location) -> None:
        line = self.document.lines.get(like) or self.document.lines.get(like[:1], 1)
        self.document = replace(self.document, lines={**self.document.lines, location: line})

    def _take_name(self, names: dict[str, str], step: str, own: Iterable[str], *, on_path: bool) -> str:
        """Return what a service of a project is called here, and keep it."""
        taken = {*names.values(), *(one for one in own if one != step)}
        fits = may_stand_on_path if on_path else is_service_name
        plain = re.sub(r"[^a-z0-9]+", "" if on_path else "-", step.lower()).strip("-")
        plain = plain if plain[:1].isalpha() else f"s{plain}"
        candidates = (step, plain, f"{plain}{'' if on_path else '-'}service", *(f"{plain}x{n}" for n in range(2, 99)))
        names[step] = next(one for one in candidates if fits(one) and may_be_named(one, taken) and one not in taken)
        return names[step]

    def _needed(self, wanted: _Wanted, service: Service, services: Mapping[str, Service]) -> Iterator[_Wanted]:
        """Yield the services of its project that a service needs; what the scenario declares itself is not."""
        for step, name in self._names[wanted.files].items():
            if name in service.depends_on and name not in services:
                yield _Wanted(name, step, wanted.files)

    def _expand_one(self, wanted: _Wanted, services: Mapping[str, Service]) -> tuple[Service, Taken, list[str]]:
        project, names, own = self._projects[wanted.files], self._names[wanted.files], wanted.own
        taken = take_service(project, wanted.step, frozenset(wanted.asked.ignore if wanted.asked else ()))
        if taken.problems:
            raise BadInput(taken.problems)
        fields = taken.fields
        lost = passed_through(taken, own.get("environment", {}))
        if environment := {**fields.get("environment", {}), **own.get("environment", {})}:
            own["environment"] = environment
        needed = own.get("depends_on", fields.get("depends_on", []))
        for one in needed:
            if one in project.services and one not in names:
                names[one] = one if one in services else self._take_name(names, one, services, on_path=False)
        own["depends_on"] = [name for one in dict.fromkeys(needed) if (name := names.get(one, one)) not in ROLES]
        aliases = [wanted.step, *fields.get("aliases", [])]
        fields["aliases"] = [one for one in dict.fromkeys(aliases) if one != wanted.name]
        fields["completes"] = wanted.step in completing(project)
        if "port" not in own and "port" not in fields and (port := self._port(project, wanted)):
            fields["port"] = port
        said = {key: value for key, value in fields.items() if value or key == "read_only"}
        try:
            return Service.model_validate({**said, **own}), taken, lost
        except ValidationError as error:
            problems = [self._refused(project, wanted, finding, own, taken) for finding in error.errors()]
            raise BadInput(problems) from None

    def _port(self, project: Project, wanted: _Wanted) -> int | None:
        """Return the port of a service; one on the path that the project does not tell is refused."""
        on_path = wanted.name in self._before
        ignore = wanted.asked.ignore if wanted.asked else ()
        text = self._proxy.text if self._proxy else ""
        found = find_port(project, wanted.step, self._before.get(wanted.name), text, ignore)
        if found is None and on_path:
            image = project.services[wanted.step].get("image")
            found = exposed_port(str(image)) if image else None
        if found is None and on_path:
            what = f"{project.shown} does not tell on which port {wanted.step} listens"
            hint = f"say it in the scenario: services: {{{wanted.step}: {{port: 8080}}}}"
            raise BadInput(Problem(what, project.where(_KEY, wanted.step), hint))
        return found

    def _refused(
        self, project: Project, wanted: _Wanted, finding: ErrorDetails, own: Mapping[str, Any], taken: Taken
    ) -> Problem:
        """Return what the lab's form refuses of a service as a problem at its place, there or in the scenario."""
        location = locate(finding)
        what, hint = describe_error(finding, [], name_place((wanted.step, *location)))
        key = str(location[0]) if location else ""
        if key in own or not location:
            return Problem(what, self.document.where((_KEY, wanted.name, *location)), hint)
        return Problem(what, project.where(*taken.places.get(key, (_KEY, wanted.step))), hint)


def _source(project: Project, name: str) -> object:
    content = project.services[name]
    return content.get("build") or content.get("image")


def _has_source(said: object) -> bool:
    """Return whether the scenario itself says where a service comes from."""
    return isinstance(said, Mapping) and any(key in said for key in _SOURCES)


def _files(named: object) -> Files:
    if isinstance(named, str):
        return (named,)
    return tuple(named) if _is_texts(named) else ()


def _is_texts(value: object) -> TypeGuard[Sequence[str]]:
    return isinstance(value, list | tuple) and all(isinstance(one, str) for one in value)


def _is_of_lab(project: Project, step: str, index: int) -> bool:
    """Return whether a step of the path is none of the project's: the load, or a role that has no namesake there."""
    if index == 0 and step in (*PROGRAMS, generators.ANY):
        return True
    return step in ROLES and (index == 0 or step not in project.services)


def _why_renamed(step: str) -> str:
    if not may_be_named(step, ()):
        return "the lab itself uses that name"
    return "a name on the path has small letters and digits alone"


def _summary(
    project: Project, entries: Sequence[tuple[str, Taken, list[str]]], names: Collection[str]
) -> Iterator[str]:
    """Yield what is left out of the services of a project, most of it in one line."""
    for _, taken, _ in entries:
        yield from taken.notices
    if meaningless := _by_key((key, step) for step, taken, _ in entries for key in taken.meaningless):
        yield f"{project.shown}: left out, because a run has no use for them: {meaningless}"
    if lost := _by_key((one, step) for step, _, variables in entries for one in variables):
        hint = f"give them a value in {paths.shown(project.folder / '.env')} or in the scenario's services"
        yield f"{project.shown}: variables of your shell are left out: {lost}; {hint}"
    if read_only := _by_key((one, step) for step, taken, _ in entries for one in taken.read_only):
        yield f"{project.shown}: folders of this machine, which services can read and not change: {read_only}"
    if others := [one for one in project.services if one not in names]:
        hint = "depends_on of a service, also in the scenario's services, brings one along"
        yield f"{project.shown}: not part of the run: {', '.join(others)}; {hint}"


def _by_key(pairs: Iterable[tuple[str, str]]) -> str:
    found: dict[str, list[str]] = {}
    for key, step in pairs:
        found.setdefault(key, []).append(step)
    return ", ".join(f"{key} ({', '.join(dict.fromkeys(steps))})" for key, steps in found.items())
