"""A configuration of the user's own, in place of the lab's: where it lies, and what it is refused for before a run."""

import base64
import gzip
import io
import re
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from formats.role import ConfigurationFormat
from lab import paths
from lab.errors import Problem
from lab.reading.validation_messages import did_you_mean
from lab.roles.configurations import adapt, parse_configuration
from lab.roles.configurations.parsed import Adaptation, ClientSide, Fault, ParsedConfiguration, Surroundings
from lab.roles.configurations.sources import Sources
from lab.scenarios import generators
from lab.scenarios.configuration_files import find_sources
from lab.scenarios.knobs import CATALOGUE, RoleName
from lab.scenarios.model import ConfigurationFile
from lab.scenarios.resolved import HAS_IPV6, ResolvedScenario
from lab.scenarios.topology import Topology, topology_of

# Where the program finds the folder that the configuration lies in.
MOUNTED = Path("/config")
# The page that the lab's workloads ask for.
_PAGE = "load.path"
# What Linux takes as one string of an environment.
_COPY_MAX = 128 * 1024 - 64


@dataclass(frozen=True)
class OwnImage:
    """An image of the user's own that has a proxy.

    Attributes:
        name: as the scenario has it.
        made: what it is called with what the lab brings.
        where: the line of the scenario.
    """

    name: str
    made: str
    where: str


@dataclass(frozen=True)
class OwnConfiguration:
    """A configuration in its folder.

    Attributes:
        file: the configuration, or the folder of its fragments; the program sees the folder and what lies below it.
        hosts: the names by which the role reaches the next one.
        sources: its files as the program finds them.
        adaptation: how it becomes the copy that runs.
        image: the user's image that has the program; None for the lab's own.
    """

    role: RoleName
    file: Path
    declared: ConfigurationFormat
    hosts: tuple[str, ...]
    sources: Sources
    adaptation: Adaptation
    image: "OwnImage | None" = None

    @property
    def folder(self) -> Path:
        """Return the folder that the program sees."""
        return self.sources.folder

    def settings(self) -> dict[str, str]:
        """Return the environment of the role, in place of its knobs."""
        found = {"CONNLAB_CONFIG": self.sources.main}
        if self.sources.below:
            found["CONNLAB_FOLDER"] = self.sources.below
        if self.copy:
            found["CONNLAB_COPY"] = self.copy
        if self.adaptation.entry is not None and self.declared.format == "sections":
            # Without requests there is no line to log.
            found["CONNLAB_PORT"] = str(self.adaptation.entry.port) if self.adaptation.entry.requests else "none"
        return found

    @cached_property
    def copy(self) -> str:
        """Return the files that differ from the user's folder, packed; empty if none does."""
        home = f"{self.sources.home}/"
        files = {f"{home}{name}": text for name, text in self.sources.written.items()}
        files |= self.adaptation.files
        if self.adaptation.added:
            files[f"{home}connlab-added.conf"] = self.adaptation.added + "\n"
        packed = {name.removeprefix(home): text.encode() for name, text in files.items()}
        return pack_files(packed) if packed else ""

    def shown(self, place: object) -> str:
        """Return a place in the configuration as the user would type it."""
        below = f"{self.sources.below}/"
        return f"{paths.shown(self.folder)}/{str(place).removeprefix(below)}"


def pack_files(files: Mapping[str, bytes]) -> str:
    """Return files by their paths below a folder, as a container's environment carries them: a compressed archive."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in sorted(files.items()):
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), 0o644
            archive.addfile(member, io.BytesIO(content))
    return base64.b64encode(gzip.compress(packed.getvalue(), mtime=0)).decode()


def find_configuration(resolved: ResolvedScenario, topology: Topology, role: RoleName) -> OwnConfiguration | None:
    """Return a role's own configuration; None if it has none."""
    written, declared = resolved.scenario.configurations.get(role), resolved.registry.roles[role]
    if written is None or declared.own is None:
        return None
    sources = find_sources(resolved.place.home, written, declared)
    if sources is None:
        return None
    behind = _behind(topology, role)
    mapped = {
        host: address for host, name in written.hosts.items() if (address := _address(resolved, topology, role, name))
    }
    hosts = dict.fromkeys(address.partition(":")[0] for address in [*behind, *mapped.values()])
    following = topology.following(role)
    around = Surroundings(
        behind=behind,
        tls=following is not None and topology.roles[following].tls,
        own_service=following in resolved.registry.services,
        hosts=mapped,
        beside=_beside(resolved),
        writable=declared.own.writable,
        wanted=resolved.wanted_entry(role),
        role=following,
        page=_page(resolved, topology),
        ipv6=HAS_IPV6,
        own_image=written.image is not None,
    )
    file = paths.real(paths.real(resolved.place.home) / written.config)
    made = adapt(declared, sources, around)
    return OwnConfiguration(role, file, declared.own, tuple(hosts), sources, made, image_of(resolved, role))


def find_all(resolved: ResolvedScenario) -> dict[RoleName, OwnConfiguration]:
    """Return the own configuration of each role that has one."""
    topology = topology_of(resolved)
    found = {role: find_configuration(resolved, topology, role) for role in topology.instances}
    return {role: own for role, own in found.items() if own is not None}


def image_of(resolved: ResolvedScenario, role: RoleName) -> OwnImage | None:
    """Return the image of the user's own that has a role's program; None if the lab's has it."""
    written = resolved.scenario.configurations.get(role)
    if written is None or written.image is None:
        return None
    made = f"connlab-own/{resolved.place.slug}-{role}"
    return OwnImage(written.image, made, resolved.where(role, "image"))


def _page(resolved: ResolvedScenario, topology: Topology) -> str | None:
    """Return a page of the role that answers; None for a service of the scenario's own, which has pages of its own."""
    last = topology.answering
    # The load may ask for another page, which perhaps only a proxy on the way has.
    return None if last in resolved.registry.services else topology.roles[last].page or str(CATALOGUE[_PAGE].default)


def _address(resolved: ResolvedScenario, topology: Topology, role: RoleName, name: str) -> str | None:
    """Return the address that a name stands for: the next role's, an instance's, or a service's beside the path."""
    reached = (*_behind(topology, role), *_beside(resolved))
    return next((one for one in reached if one.rpartition(":")[0] == name), None)


def _beside(resolved: ResolvedScenario) -> list[str]:
    """Return the addresses of the services beside the path, which are not observed."""
    generator = generators.name_of(resolved.scenario.own_load)
    return [
        f"{name}:{service.port}"
        for name, service in resolved.registry.services.items()
        if name not in resolved.scenario.path and name != generator and not service.completes
    ]


def _behind(topology: Topology, role: RoleName) -> list[str]:
    """Return the addresses of the next role: its own name stands for all of its instances."""
    following = topology.following(role)
    own = [] if following is None else [f"{following}:{topology.roles[following].port}"]
    return list(dict.fromkeys((*own, *topology.behind(role))))


def read_configuration(
    resolved: ResolvedScenario, topology: Topology, role: RoleName, text: str
) -> ParsedConfiguration:
    """Return what a role's configuration says, out of what the program read."""
    entry = resolved.entries.get(role)
    port = topology.roles[role].port
    ipv6 = role == resolved.first_server and resolved.ip_family == "ipv6"
    clients = ClientSide(port, entry.host if entry else None, ipv6)
    found = parse_configuration(resolved.registry.roles[role], text, clients)
    own = find_configuration(resolved, topology, role)
    return replace(found, changes=own.adaptation.changes) if own else found


def configuration_problems(resolved: ResolvedScenario) -> Iterator[Problem]:
    """Yield what is wrong as far as the scenario and its files tell."""
    for role, written in resolved.scenario.configurations.items():
        where = resolved.where(role, "config")
        if role not in resolved.scenario.path:
            what = f"{role} has a configuration, but is not on the path [{', '.join(resolved.scenario.path)}]"
            yield Problem(what, where, f"leave it out, or put {role} on the path")
        file = paths.real(resolved.place.home / written.config)
        if role in resolved.scenario.path:
            yield from _host_problems(resolved, role, written)
        if paths.inside(resolved.place.home, written.config) is None:
            what = f"the configuration {written.config} leads out of the scenario's folder"
            yield Problem(what, where, "copy it into the folder, with what it includes")
        elif file.is_dir() and find_sources(resolved.place.home, written, resolved.registry.roles[role]) is None:
            yield Problem(f"{paths.shown(file)} is a folder", where, f"name the file in it that {role} reads first")
        elif not file.exists():
            beside = [one.name for one in file.parent.iterdir()] if file.parent.is_dir() else []
            hint = did_you_mean(file.name, beside) or "its path begins at the scenario's folder"
            yield Problem(f"there is no configuration {paths.shown(file)}", where, hint)
    for knob in resolved.asked():
        file_says = resolved.in_file(knob)
        if file_says:
            what = f"{knob} is set, but the scenario's own configuration {file_says} decides it"
            yield Problem(what, resolved.where_knob(knob), "leave it out, and set it there")


def _host_problems(resolved: ResolvedScenario, role: RoleName, written: ConfigurationFile) -> Iterator[Problem]:
    topology = topology_of(resolved)
    names = [one.rpartition(":")[0] for one in (*_behind(topology, role), *_beside(resolved))]
    further = list(topology.instances)[list(topology.instances).index(role) + 2 :]
    for host, name in written.hosts.items():
        if name in names:
            continue
        what = f"{name} does not stand behind {role}"
        hint = f"name one of {', '.join(names)}" if names else f"the path ends at {role}"
        if name in further and name in resolved.registry.services:
            following = str(topology.following(role))
            path = [one for one in topology.instances if one != name]
            what = f"{name} stands further down the path, and the lab follows connections from each step to the next"
            hint = f"put it beside the path: path: [{', '.join(path)}]"
            hint += f", and services: {{{following}: {{depends_on: [{name}]}}}} if {following} needs it too"
        yield Problem(what, resolved.where(role, "hosts", host), hint)


def refusal(resolved: ResolvedScenario, own: OwnConfiguration, said: str) -> Problem:
    """Return a program's refusal of a configuration, in its own words, as one problem."""
    called = resolved.registry.roles[own.role].display_name
    # The entry point's own words come first.
    lines = [line.partition(" refuses the configuration: ")[2] or line for line in said.splitlines() if line.strip()]
    message = lines[-1] if lines else "it said nothing"
    match = re.search(own.declared.refusal + "$", message)
    what, where = message, paths.shown(own.file)
    if match:
        what = match["what"].rstrip(".")
        where = own.shown(f"{match['file']}:{match['line']}") if match["file"] else where
    hint = "correct it"
    if "host not found" in what or "could not resolve" in what:
        hint = f"{called} can reach {' and '.join(own.hosts)}" if own.hosts else f"the path ends at {called}"
    elif "Permission denied" in what:
        hint = "let every user read the configuration (chmod -R a+rX)"
    elif "mkdir()" in what or "Read-only" in what:
        hint = f"it can write only below {', '.join(('/tmp', *own.declared.writable))}"  # noqa: S108 # in the container
    elif "unknown directive" in what:
        inside = own.image.name if own.image else f"the lab's image of {called}"
        hint = f"correct it; if {inside} lacks its module or is older, name one that has it by image: …"
    elif unset := _unset_variable(own, match):
        hint = f"{unset} has no value: {own.role}: {{config: …, environment: {{{unset}: …}}}}"
    elif "No such file" in what:
        hint = f"{called} sees only {paths.shown(own.folder)} and what lies below it: put the file there"
        path = re.search(r"['\"](/[^'\"]+)['\"]", what)
        if path and not path[1].startswith((f"{own.sources.home}/", "/config/")):
            hint += f", and name it by a path below {own.sources.home}"
    return Problem(f"{called} refuses it: {what}", where, hint)


def _unset_variable(own: OwnConfiguration, match: re.Match[str] | None) -> str | None:
    """Return a variable of the environment without a value in the line that a program refuses."""
    if match is None or not match["file"]:
        return None
    lines = (own.sources.read(f"{own.sources.home}/{match['file']}") or "").splitlines()
    found = re.search(r"\$\{([A-Z][A-Z0-9_]*)\}", "".join(lines[int(match["line"]) - 1 : int(match["line"])]))
    return found[1] if found else None


def adaptation_faults(own: OwnConfiguration, topology: Topology) -> Iterator[Fault]:
    """Yield why no copy of a configuration can run here."""
    yield from own.adaptation.faults
    entry, ready = own.adaptation.entry, topology.roles[own.role].ready or ""
    if entry is not None and f":{entry.port}/" in ready:
        what = f"the load would come to port {entry.port}, where the lab's own management listens"
        yield Fault(what, entry.where, "let it listen on another port, or name another one by port: … in the scenario")
    if len(own.copy) > _COPY_MAX:
        yield Fault("the files to change are larger than the lab can carry", None, "leave out what plays no role")
    if own.role in topology.names and topology.second_names:
        what = f"clients ask for {topology.names[own.role]}, and one name has one address here"
        yield Fault(what, None, f"leave out {own.role}.addresses")


def fault_problems(own: OwnConfiguration, faults: Sequence[Fault]) -> Iterator[Problem]:
    """Yield why a configuration that the program takes cannot stand on the path."""
    for one in faults:
        yield Problem(one.what, own.shown(one.where) if one.where else paths.shown(own.file), one.hint)
