"""Takes services over from a Compose project: what has a meaning in a run, and a line for what is left out."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from lab.errors import Problem
from lab.scenarios.compose_project import Project
from lab.scenarios.load_url import parse_address
from lab.scenarios.services import Capability

# What Docker gives each container; of the rest, a run gives nothing.
_DEFAULT_CAPABILITIES = tuple(one for one in get_args(Capability) if one != "IPC_LOCK")
_INSTANCES_MAX = 9
_MS = {"h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1, "us": 0.001, "ns": 0.000001}
_AS_THEY_ARE = frozenset({
    "entrypoint", "command", "working_dir", "read_only", "init", "tty", "stdin_open", "stop_signal", "shm_size",
    "ulimits", "sysctls",
})  # fmt: skip
# Read for something else, or said of the whole project in another line.
_READ_ELSEWHERE = frozenset({"expose"})
# Where the image's own word is not here to be asked.
_USUAL_PORTS = {"mongo": 27017, "postgres": 5432, "mysql": 3306, "mariadb": 3306, "redis": 6379, "redismod": 6379,
                "memcached": 11211, "rabbitmq": 5672}  # fmt: skip
# What would lead out of a run, with the reason.
_REASONS = {
    "privileged": "a run has nothing privileged",
    "network_mode": "it has a network namespace of its own",
    "pid": "it has processes of its own",
    "ipc": "it has an IPC namespace of its own",
    "uts": "it has a host name of its own",
    "userns_mode": "the engine's user namespace stays",
    "cgroup": "it has a cgroup of its own",
    "cgroup_parent": "it has a cgroup of its own",
    "devices": "a run has no devices of this machine",
    "device_cgroup_rules": "a run has no devices of this machine",
    "gpus": "a run has no devices of this machine",
    "volumes_from": "volumes of another service: name them in both",
    "dns": "a run's network has one name server",
    "runtime": "the engine's own runtime runs it",
    "group_add": "it has the groups of its user",
}
_GOES_ON = "it runs without"


@dataclass
class Taken:
    """A service of a project in the lab's form.

    Attributes:
        fields: of the lab's form; names are the project's.
        places: where the project says each of them.
        meaningless: keys that are left out, and whose lack nobody notices.
        notices: lines about what is left out.
        read_only: folders of this machine that the project would let it change.
    """

    fields: dict[str, Any] = field(default_factory=dict)
    places: dict[str, tuple[str, ...]] = field(default_factory=dict)
    meaningless: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    read_only: list[str] = field(default_factory=list)


def take_service(project: Project, name: str, ignore: frozenset[str] = frozenset()) -> Taken:
    """Return a service in the lab's form; `ignore` has keys that are as if they were not there."""
    return _Taking(project, name, ignore).taken


class _Taking:
    def __init__(self, project: Project, name: str, ignore: frozenset[str]) -> None:
        self._project = project
        self._name = name
        self.taken = Taken()
        content = {
            key: value
            for key, value in project.services[name].items()
            if key not in ignore and value not in (None, [], {}, "", False)
        }
        self._content = content
        fields = self.taken.fields
        # As the image and the file have it: Docker would give no less.
        fields |= {"user": "image", "read_only": False, "capabilities": list(_DEFAULT_CAPABILITIES)}
        for key, value in content.items():
            if key.startswith("x-") or key in _READ_ELSEWHERE:
                continue
            if key in _AS_THEY_ARE:
                self._set(key, key, value)
            elif (taking := getattr(self, f"_{key}", None)) is not None:
                taking(value)
            elif key in _REASONS:
                self._say(key, f"{key} is left out: {_REASONS[key]}")
            else:
                self.taken.meaningless.append(key)
        if not {"image", "build"} & set(fields) and not self.taken.problems:
            where = project.where("services", name)
            self.taken.problems.append(Problem(f"{name} has no image", where, "give it image or build"))

    def _set(self, key: str, said_by: str, value: Any) -> None:  # noqa: ANN401 # as Compose has it
        self.taken.fields[key] = value
        self.taken.places[key] = ("services", self._name, said_by)

    def _add(self, key: str, said_by: str, *values: Any) -> None:  # noqa: ANN401 # as Compose has it
        before = self.taken.fields.get(key, [])
        self._set(key, said_by, [*before, *(one for one in values if one not in before)])

    def _say(self, key: str, what: str, hint: str | None = None) -> None:
        where = self._project.where("services", self._name, key)
        self.taken.notices.append(str(Problem(f"{self._name}: {what}", where, hint)))

    def _image(self, value: str) -> None:
        if "build" not in self._content:
            self._set("image", "image", value)

    def _build(self, value: Mapping[str, Any]) -> None:
        known = {key: value[key] for key in ("dockerfile", "target", "args") if value.get(key)}
        inner = self._project.path_of(value["context"]) if value["context"].startswith("/") else None
        dockerfile = inner and self._project.path_of(str(Path(value["context"], value.get("dockerfile", "."))))
        why = None
        if inner is None or dockerfile is None:
            why = "its build leads out of the folder of the Compose file"
        elif value.get("dockerfile_inline"):
            why = "its build has its Dockerfile inline"
        elif value.get("additional_contexts") or value.get("secrets") or value.get("ssh"):
            why = "its build takes more than a folder, a Dockerfile, a target and arguments"
        if why is None:
            self._set("build", "build", {**known, "context": inner})
        elif image := self._content.get("image"):
            self._say("build", f"{why}; its image {image} is taken")
            self._set("image", "image", image)
        else:
            hint = "build it yourself, and say in the scenario: services: "
            hint += f"{{{self._name}: {{image: …}}}}"
            where = self._project.where("services", self._name, "build")
            self.taken.problems.append(Problem(f"{self._name}: {why}", where, hint))

    def _environment(self, value: Mapping[str, Any]) -> None:
        # One without a value would be the shell's.
        self._set("environment", "environment", dict(value))

    def _user(self, value: str) -> None:
        self._set("user", "user", value if value.strip(":") else "image")

    def _cap_drop(self, _: list[str]) -> None:
        if "cap_add" not in self._content:
            self._cap_add([])

    def _cap_add(self, value: list[str]) -> None:
        dropped = {one.upper().removeprefix("CAP_") for one in self._content.get("cap_drop", [])}
        added = [one.upper().removeprefix("CAP_") for one in value]
        found = [] if "ALL" in dropped else [one for one in _DEFAULT_CAPABILITIES if one not in dropped]
        known = get_args(Capability)
        found += [one for one in added if one in known and one not in found]
        if others := [one for one in added if one not in known]:
            self._say("cap_add", f"the capability {', '.join(others)} is left out: a run does not give it")
        self._set("capabilities", "cap_add", found)

    def _security_opt(self, value: list[str]) -> None:
        if others := [one for one in value if not one.startswith("no-new-privileges")]:
            self._say("security_opt", f"{', '.join(others)} is left out: a run sets no-new-privileges alone")

    def _tmpfs(self, value: list[str] | str) -> None:
        found = [value] if isinstance(value, str) else value
        self._add("writable", "tmpfs", *(one.partition(":")[0].rstrip("/") for one in found))

    def _networks(self, value: Mapping[str, Any]) -> None:
        declared = self._project.content.get("networks") or {}
        for name, one in value.items():
            self._add("aliases", "networks", *((one or {}).get("aliases") or ()))
            if (declared.get(name) or {}).get("external"):
                self._say(
                    "networks", f"the external network {name} is left out: a run has one network, with no way out"
                )
            if (one or {}).get("ipv4_address"):
                self._say("networks", f"the address {one['ipv4_address']} is left out: a run has a subnet of its own")

    def _container_name(self, value: str) -> None:
        self._add("aliases", "container_name", *([value] if value != self._name else []))

    def _extra_hosts(self, value: list[str] | Mapping[str, Any]) -> None:
        pairs = value.items() if isinstance(value, Mapping) else (re.split("[=:]", one, maxsplit=1) for one in value)
        found = {}
        for host, address in pairs:
            text = str(address[0] if isinstance(address, list) else address).strip("[]")
            if parsed := parse_address(text):
                found[host] = str(parsed)
            else:
                self._say("extra_hosts", f"{host} is left out: a run has no way to {text}")
        self._set("extra_hosts", "extra_hosts", found)

    def _depends_on(self, value: Mapping[str, Mapping[str, Any]]) -> None:
        # Compose has seen to it that those are there which are required.
        self._add("depends_on", "depends_on", *(one for one in value if one in self._project.services))

    def _links(self, value: list[str]) -> None:
        self._add("depends_on", "links", *(one.partition(":")[0] for one in value))

    def _healthcheck(self, value: Mapping[str, Any]) -> None:
        test = value.get("test") or ["NONE"]
        if value.get("disable") or test[0] == "NONE" or len(test) == 1:
            return
        command = ["/bin/sh", "-c", *test[1:]] if test[0] == "CMD-SHELL" else test[1:]
        self._set("ready", "healthcheck", command)
        asked_ms = milliseconds(value.get("interval") or "30s") * value.get("retries", 3)
        start_ms = milliseconds(value.get("start_period") or "0s") + asked_ms
        self._set("ready_within", "healthcheck", f"{int(min(max(start_ms, 120_000), 600_000))}ms")

    def _scale(self, value: int) -> None:
        self._set("instances", "scale", min(int(value), _INSTANCES_MAX))

    def _deploy(self, value: Mapping[str, Any]) -> None:
        if (value.get("replicas") or 1) > 1:
            self._set("instances", "deploy", min(int(value["replicas"]), _INSTANCES_MAX))
        if {key for key, one in value.items() if one} - {"replicas"}:
            self.taken.meaningless.append("deploy")

    def _volumes(self, value: list[Mapping[str, Any]]) -> None:
        for one in value:
            if one["type"] == "tmpfs":
                self._add("writable", "volumes", one["target"].rstrip("/"))
            elif one["type"] == "volume":
                self._volume(one)
            elif one["type"] == "bind":
                self._bind("volumes", one["source"], one["target"], writes=not one.get("read_only"))
            else:
                self._say("volumes", f"the {one['type']} at {one['target']} is left out: a run has no such mounts")

    def _volume(self, one: Mapping[str, Any]) -> None:
        source = one.get("source")
        declared = (self._project.content.get("volumes") or {}).get(source) or {}
        if declared.get("external") or (declared.get("driver_opts") or {}):
            self._say(
                "volumes", f"the volume {source} begins with what the image has: a run takes none of this machine"
            )
        self._add("volumes", "volumes", f"{source}:{one['target']}" if source else one["target"])

    def _bind(self, key: str, source: str, target: str, *, writes: bool = False) -> None:
        inner = self._project.path_of(source)
        if source.endswith("docker.sock"):
            self._say(key, f"the engine's socket is left out: a run gives it to nobody; {_GOES_ON}")
        elif inner is None:
            hint = f"copy it into {self._project.folder.name}/, and name the copy"
            self._say(key, f"{source} is left out: it lies outside of the Compose file's folder; {_GOES_ON}", hint)
        elif not Path(source).exists():
            self._say(key, f"there is no {source}, so {target} is empty")
            self._add("volumes", key, target)
        else:
            named = inner if inner.startswith(".") else f"./{inner}"
            self._add("volumes", key, f"{named}:{target}")
            if writes and Path(source).is_dir():
                self.taken.read_only.append(target)

    def _secrets(self, value: list[Mapping[str, Any]]) -> None:
        self._files("secrets", value, "/run/secrets/")

    def _configs(self, value: list[Mapping[str, Any]]) -> None:
        self._files("configs", value, "/")

    def _files(self, key: str, value: list[Mapping[str, Any]], home: str) -> None:
        for one in value:
            target = str(Path(home, one.get("target") or one["source"]))
            declared = (self._project.content.get(key) or {}).get(one["source"]) or {}
            if "file" in declared:
                self._bind(key, declared["file"], target)
            elif "content" in declared:
                files = {**self.taken.fields.get("files", {}), target: declared["content"]}
                self._set("files", key, files)
            else:
                hint = "give it a file in the Compose file"
                self._say(key, f"{one['source']} is left out: its content comes from outside of the file", hint)


def milliseconds(text: str) -> float:
    """Return a time of Compose's, such as 1m30s, in milliseconds."""
    return sum(float(one[1]) * _MS[one[2]] for one in re.finditer(r"([\d.]+)(h|ms|us|ns|m|s)", str(text)))


def passed_through(taken: Taken, given: Mapping[str, Any]) -> list[str]:
    """Take out the variables that only a shell gives a value, but for those given here, and return their names."""
    environment = taken.fields.get("environment", {})
    found = [one for one, value in environment.items() if value is None]
    taken.fields["environment"] = {one: value for one, value in environment.items() if value is not None}
    return [one for one in found if one not in given]


def completing(project: Project) -> frozenset[str]:
    """Return the services whose end others wait for."""
    waits = (one for service in project.services.values() for one in (service.get("depends_on") or {}).items())
    return frozenset(name for name, one in waits if one.get("condition") == "service_completed_successfully")


def find_port(
    project: Project, name: str, before: str | None = None, more: str = "", ignore: Collection[str] = ()
) -> int | None:
    """Return the port that a service listens on; None if the project does not tell.

    Args:
        project: of the service.
        name: of the service.
        before: the service that asks it, and knows the port best.
        more: what the configuration of a proxy before it says.
        ignore: keys of the service that are as if they were not there.
    """
    return next(_ports(project, name, before, more, ignore), None)


def _ports(project: Project, name: str, before: str | None, more: str, ignore: Collection[str]) -> Iterator[int]:
    content = {key: value for key, value in project.services[name].items() if key not in ignore}
    named = re.compile(rf"(?<![\w.-]){re.escape(name)}:(\d{{2,5}})\b")
    yield from _found(named, more)
    if before is not None:
        yield from _found(named, _words(project.services[before]))
    yield from (one["target"] for one in content.get("ports") or () if one.get("protocol", "tcp") == "tcp")
    yield from (int(found[0]) for one in content.get("expose") or () if (found := re.findall(r"\d+", str(one))))
    for other, one in project.services.items():
        if other != name:
            yield from _found(named, _words(one))
    labels = content.get("labels") or {}
    yield from (int(value) for key, value in labels.items() if key.endswith("server.port") and str(value).isdecimal())
    test = " ".join(map(str, (content.get("healthcheck") or {}).get("test") or ()))
    yield from _found(re.compile(r"(?:localhost|127\.0\.0\.1):(\d{2,5})\b"), test)
    environment = content.get("environment") or {}
    for key in ("PORT", "SERVER_PORT", "HTTP_PORT", "VIRTUAL_PORT"):
        if str(environment.get(key) or "").isdecimal():
            yield int(environment[key])
    yield from _found(re.compile(r"(?im)^\s*EXPOSE\s+(\d+)"), dockerfile_of(content))
    program = re.sub(r"[:@].*", "", str(content.get("image", "")).rpartition("/")[2])
    if program in _USUAL_PORTS:
        yield _USUAL_PORTS[program]


def _found(pattern: re.Pattern[str], text: str) -> Iterator[int]:
    yield from (int(one) for one in pattern.findall(text))


def _words(content: Mapping[str, Any]) -> str:
    environment = content.get("environment") or {}
    lists = [content.get("command") or [], content.get("entrypoint") or []]
    return "\n".join([*(str(one) for one in environment.values()), *(str(one) for each in lists for one in each)])


def dockerfile_of(content: Mapping[str, Any]) -> str:
    """Return the text of the Dockerfile that a service is built by; empty if there is none."""
    build = content.get("build") or {}
    if "context" not in build:
        return str(build.get("dockerfile_inline", ""))
    try:
        return Path(build["context"], build.get("dockerfile", "Dockerfile")).read_text(errors="replace")
    except (OSError, ValueError):
        return ""
