"""Containers that the lab did not start, and a collector beside one: lab.engines.protocol.Sidecars, by Docker."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.engines.compose.docker import DockerFailed, docker, mount_option, run_options
from lab.engines.protocol import CAPABILITIES, Container, event_capabilities, why_apart
from lab.errors import BadInput, Problem

# Not the label of a run: one that begins removes what an earlier run left over, and this is none.
LABEL = "connlab.observe"
_IMAGE = "connlab/collector"
# Where a namespace file is seen within a collector.
_NAMESPACE = "/run/observed-netns"
_PROJECT = "com.docker.compose.project"
_SERVICE = "com.docker.compose.service"
_STOP_GRACE_S = 20
_NAMESPACE_OF = "container:"


def find_container(name: str) -> Container:
    """Find a container that runs.

    Raises:
        BadInput: there is none of this name, or it does not run.
        LabError: no engine answers.
    """
    found = _inspect(name)
    if found is None:
        near = ", ".join(sorted(docker("ps", "--format", "{{.Names}}").split())[:8])
        raise BadInput(
            Problem(f"there is no container '{name}'", hint=f"those that run: {near}" if near else "none runs here")
        )
    if not found["State"]["Running"]:
        raise BadInput(Problem(f"the container '{name}' does not run ({found['State']['Status']})", hint="start it"))
    return _container(found)


def find_project_containers(project: str, service: str | None) -> list[Container]:
    """Find the running containers of a Compose project, or of one of its services.

    One that shares both namespaces of another, as a collector of the stack does, is seen with that.

    Raises:
        BadInput: there is none.
        LabError: no engine answers.
    """
    of_project = ("--filter", f"label={_PROJECT}={project}")
    of_service = ("--filter", f"label={_SERVICE}={service}") if service else ()
    ids = docker("ps", "--quiet", "--no-trunc", *of_project, *of_service).split()
    if not ids:
        what = f"the Compose project '{project}' has no running container"
        if service and (known := _labels(_SERVICE, *of_project)):
            raise BadInput(Problem(f"{what} of the service '{service}'", hint=f"its services: {', '.join(known)}"))
        projects = ", ".join(_labels(_PROJECT))
        raise BadInput(Problem(what, hint=f"those that run: {projects}" if projects else "no project runs here"))
    found = {one["Id"]: one for one in map(_inspect, ids) if one is not None}
    return [_container(one) for one in found.values() if not _is_within(one, found)]


def find_process_container(pid: int) -> Container | None:
    """Return the container that a process of the host belongs to, by its control group; None if Docker knows none."""
    try:
        groups = Path(f"/proc/{pid}/cgroup").read_text()
    except OSError:
        return None
    match = re.search(r"([0-9a-f]{64})", groups)
    found = _inspect(match[1]) if match else None
    return _container(found) if found is not None and found["State"]["Running"] else None


def is_running(container_id: str) -> bool:
    """Return whether a container runs."""
    found = _inspect(container_id)
    return found is not None and bool(found["State"]["Running"])


def _labels(label: str, *filters: str) -> list[str]:
    """Return the values of a label of the containers that run."""
    return sorted(set(docker("ps", *filters, "--format", f'{{{{.Label "{label}"}}}}').split()))


def _inspect(name: str) -> dict[str, Any] | None:
    try:
        (found,) = json.loads(docker("container", "inspect", "--", name))
    except DockerFailed as error:
        if "No such container" in error.stderr:
            return None
        raise
    return dict(found)


def _container(found: Mapping[str, Any]) -> Container:
    config, apart = found["Config"], _apart(found)
    words = [config["Image"], *(config.get("Entrypoint") or []), *(config.get("Cmd") or []), *_commands(found["Id"])]
    return Container(
        id=found["Id"],
        name=found["Name"].removeprefix("/"),
        image=config["Image"],
        pid=found["State"]["Pid"],
        on_host=_sharing(found, "NetworkMode")[-1]["HostConfig"]["NetworkMode"] == "host",
        words="\n".join(words),
        processes=apart is None,
        apart=apart,
    )


def _commands(name: str) -> Iterator[str]:
    """Yield the command lines of what runs in it; they tell a program better than an image's name."""
    try:
        lines = docker("top", name, "-eo", "pid,args").splitlines()[1:]
    except DockerFailed:
        return
    yield from (line.strip().partition(" ")[2] for line in lines)


def _sharing(found: Mapping[str, Any], mode: str) -> list[Mapping[str, Any]]:
    """Return a container, the one whose namespace it shares, and so on; `mode` is NetworkMode or PidMode."""
    chain = [found]
    while (of := str(chain[-1]["HostConfig"].get(mode, ""))).startswith(_NAMESPACE_OF):
        other = _inspect(of.removeprefix(_NAMESPACE_OF))
        if other is None or any(other["Id"] == each["Id"] for each in chain):
            break
        chain.append(other)
    return chain


def _is_within(found: Mapping[str, Any], others: Iterable[str]) -> bool:
    """Return whether a container has both namespaces of another."""
    holders = {_sharing(found, mode)[-1]["Id"] for mode in ("NetworkMode", "PidMode")}
    return len(holders) == 1 and holders != {found["Id"]} and holders <= set(others)


def _apart(found: Mapping[str, Any]) -> str | None:
    """Return why a collector stays out of its process namespace; None if it need not."""
    configured = [each["HostConfig"] for each in _sharing(found, "PidMode")]
    if configured[-1].get("PidMode") == "host":
        return "its process namespace is the host's"
    added = [name for one in configured for name in one.get("CapAdd") or ()]
    return why_apart(added, privileged=any(one.get("Privileged") for one in configured))


@dataclass(frozen=True)
class DockerSidecar:
    """A collector beside a target.

    Attributes:
        name: of its container.
        enter: what each command in it has to begin with, to be in the target's network namespace.
    """

    name: str
    enter: tuple[str, ...] = ()

    def ask(self, *arguments: str) -> str:
        """Run a command in it; raises DockerFailed."""
        return docker("exec", self.name, *self.enter, *arguments)

    def image(self) -> str:
        """Return the id of its image; raises DockerFailed."""
        return docker("container", "inspect", "--format", "{{.Image}}", "--", self.name).strip()

    def ended(self) -> str | None:
        """Return what it said, once it has ended; None while it runs."""
        found = _inspect(self.name)
        if found is None:
            return "it was removed"
        if found["State"]["Running"]:
            return None
        said = docker("logs", "--tail", "5", self.name)
        return said.strip() or f"exit code {found['State']['ExitCode']}"

    def stop(self) -> None:
        """Let it write what it has and end, then remove it."""
        docker("stop", "--time", str(_STOP_GRACE_S), self.name, timeout_s=_STOP_GRACE_S + 30)
        self.remove()

    def remove(self) -> None:
        """Remove it, whatever it does."""
        docker("rm", "--force", self.name)


def start(
    name: str, environment: Mapping[str, str], folder: Path, *, target: str | int, processes: bool
) -> DockerSidecar:
    """Put a collector beside a target.

    Args:
        name: for its container.
        environment: its settings.
        folder: where it writes.
        target: the id of a container, or a process of the host.
        processes: whether it joins the container's process namespace too.

    Raises:
        DockerFailed: it does not start.
    """
    joins, enter = _joins(target, processes=processes)
    settings = [part for key, value in environment.items() for part in ("--env", f"{key}={value}")]
    entry, command = (("--entrypoint", enter[0]), (*enter[1:], "collector", "run")) if enter else ((), ("run",))
    rights = run_options(*CAPABILITIES, *event_capabilities(environment))
    docker(
        *("run", "--detach", "--name", name, "--label", f"{LABEL}={name}", *rights),
        *(*joins, *settings, "--mount", mount_option(folder, "/raw"), *entry, _IMAGE, *command),
    )
    return DockerSidecar(name, enter)


def _joins(target: str | int, *, processes: bool) -> tuple[Sequence[str], tuple[str, ...]]:
    if isinstance(target, str):
        namespace = f"{_NAMESPACE_OF}{target}"
        return ["--network", namespace, *(["--pid", namespace] if processes else [])], ()
    # Docker joins containers alone. A namespace's file can be mounted, and the program enters it by itself.
    mount = mount_option(Path(f"/proc/{target}/ns/net"), _NAMESPACE, "readonly")
    rights = ["--cap-add", "SYS_ADMIN", "--security-opt", "apparmor=unconfined", "--security-opt", "seccomp=unconfined"]
    return ["--network", "none", "--mount", mount, *rights], ("nsenter", f"--net={_NAMESPACE}", "--")
