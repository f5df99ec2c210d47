"""What the container of an instance, or of a service beside the path, is made of: every engine makes it from this.

It says what a user's files ask for: whose image, which files of this machine, which rights, and what comes before it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from formats.knob_types import spoken
from lab import paths
from lab.engines.container_settings import NO_CERTIFICATES, ROLE_UID, is_net, role_environment
from lab.scenarios import generators, own_configuration, own_script
from lab.scenarios.knobs import environment
from lab.scenarios.places import Place
from lab.scenarios.resolved import ResolvedScenario
from lab.scenarios.services import Service, needed_by, split_volume
from lab.scenarios.topology import Topology

# Where a role of the lab's writes.
RAW = "/raw"


@dataclass(frozen=True)
class Mount:
    """A place in a container that is not of its image.

    Attributes:
        kind: `raw` for the instance's raw files; `host` for a file or folder of this machine, which it only reads;
            `volume` for a volume of the run.
        source: of this machine.
        volume: its name; empty for one that nobody else has.
        read_only: whether it can only read a volume.
    """

    target: str
    kind: Literal["raw", "host", "volume"]
    source: Path = Path()
    volume: str = ""
    read_only: bool = False


@dataclass(frozen=True)
class RoleContainer:
    """A container of a run that is no collector.

    Attributes:
        image: the user's own; None for the lab's own image of the role.
        made_here: whether the image is built on this machine, so that no registry has it under this name.
        files: what it reads besides, by its place: the content.
        writable: folders that are empty at first.
        sysctls: that its own container sets, because no collector does.
        arguments: in place of the image's; None for the image's own.
        working_dir: None for the image's own.
        service: what the scenario says of a service of its own.
        after: services and roles that have to be ready before it starts.
        after_listeners: roles whose servers have to listen before it starts.
    """

    image: str | None
    made_here: bool
    environment: Mapping[str, str]
    mounts: tuple[Mount, ...]
    files: Mapping[str, str] = field(default_factory=dict)
    writable: tuple[str, ...] = ()
    sysctls: Mapping[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] | None = None
    working_dir: str | None = None
    service: Service | None = None
    after: tuple[str, ...] = ()
    after_listeners: tuple[str, ...] = ()

    @property
    def user(self) -> str | None:
        """Return the user that a service runs as; None for the image's own."""
        if self.service is None or self.service.user == "image":
            return None
        return self.service.user or f"{ROLE_UID}:{ROLE_UID}"


def container_of_instance(
    resolved: ResolvedScenario, topology: Topology, instance: str, certificates: Mapping[str, str] = NO_CERTIFICATES
) -> RoleContainer:
    """Return an instance's container; `certificates` are those of a run."""
    role = topology.role_of(instance)
    if role in resolved.registry.services:
        return _of_service_on_path(resolved, topology, instance)
    variables = role_environment(resolved, topology, instance, certificates)
    mounts = [Mount(RAW, "raw")]
    if instance in topology.clients and (script := own_script.find_script(resolved, topology)):
        mounts += _of_this_machine(script.mounts())
        return RoleContainer(script.image, made_here=False, environment=variables, mounts=tuple(mounts))
    own = own_configuration.find_configuration(resolved, topology, role)
    if own is None:
        return RoleContainer(None, made_here=False, environment=variables, mounts=tuple(mounts))
    following = topology.following(role)
    # It asks for the addresses of all hosts that it names, once, at its start.
    led_to = [name for name in resolved.scenario.configurations[role].hosts.values() if name in topology.needed]
    return RoleContainer(
        own.image.made if own.image else None,
        made_here=own.image is not None,
        environment=variables,
        mounts=(*mounts, *_of_this_machine({own.folder: own_configuration.MOUNTED})),
        writable=tuple(own.declared.writable),
        after=tuple(led_to),
        # Its health checks may leave a server out for minutes that does not answer the first one.
        after_listeners=() if following is None else (following,),
    )


def _of_this_machine(mounts: Mapping[Path, Path]) -> list[Mount]:
    return [Mount(str(target), "host", source) for source, target in mounts.items()]


def _of_service_on_path(resolved: ResolvedScenario, topology: Topology, instance: str) -> RoleContainer:
    role = topology.role_of(instance)
    made = container_of_service(resolved, topology, role)
    variables, mounts, arguments = dict(made.environment), list(made.mounts), made.arguments
    if is_client := instance in topology.clients:
        home = paths.real(resolved.place.home)
        mounts = [Mount(RAW, "raw"), *_of_this_machine({home: Path(generators.FOLDER)})]
        arguments = tuple(topology.fill_in(word) for word in arguments or ())
        variables = {name: topology.fill_in(one) for name, one in variables.items()}
    variables |= environment(resolved.scenario.knobs, role, resolved.registry.knobs)
    if (log := resolved.registry.services[role].log) and not log.stdout:
        mounts.append(Mount(log.folder, "raw"))
    folder = generators.FOLDER if is_client else made.working_dir
    return replace(made, environment=variables, mounts=tuple(mounts), arguments=arguments, working_dir=folder)


def container_of_service(resolved: ResolvedScenario, topology: Topology, name: str) -> RoleContainer:
    """Return the container of a service of the scenario's own as it declares it: its image, and what it loosens."""
    service, on_path = resolved.registry.services[name], name in topology.instances
    return RoleContainer(
        image_of_service(service, name, resolved.place),
        made_here=service.image is None,
        environment={key: spoken(value) for key, value in service.environment.items()},
        mounts=tuple(_mount_of(volume, resolved.place) for volume in service.volumes),
        files=service.files,
        writable=tuple(service.writable),
        sysctls={key: spoken(value) for key, value in service.sysctls.items() if not (on_path and is_net(key))},
        arguments=None if service.command is None else tuple(service.command),
        working_dir=service.working_dir,
        service=service,
        after=(*service.depends_on, *_following(resolved, topology, name)),
    )


def _mount_of(volume: str, place: Place) -> Mount:
    source, target, mode = split_volume(volume)
    if source.startswith("."):
        return Mount(target, "host", paths.real(place.home / source))
    return Mount(target, "volume", volume=source, read_only=mode == "ro")


def image_of_service(service: Service, name: str, place: Place) -> str:
    """Return the image's name: the scenario's, or that under which its folder is built."""
    return service.image or f"connlab-own/{place.slug}-{name}"


def _following(resolved: ResolvedScenario, topology: Topology, name: str) -> Sequence[str]:
    """Return the role behind a service on the path, whose names many a program asks for once, at its start."""
    if name not in topology.instances or topology.roles[name].kind == "client":
        return []
    following = topology.following(name)
    return [] if following is None or name in needed_by(resolved.registry.services, [following]) else [following]
