"""A service of one's own, as a scenario declares it: a role.yaml written shorter, from which the role is made."""

import re
from collections.abc import Collection, Iterator, Mapping
from ipaddress import ip_address
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationError,
    model_validator,
)

from formats import knob_types
from formats.knob_types import Duration, KnobValue, format_duration
from formats.log_format import WELL_KNOWN, LogFields, LogFormat
from formats.predictions import Part, Text
from formats.role import CONTAINER_LOG, TRAFFIC_PORT, KnobName, Role, VariableName
from lab.roles.declared_roles import ROLES

Limit = Literal["connections", "backlog", "threads", "pool"]
Capability = Literal[
    "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "IPC_LOCK", "KILL", "NET_BIND_SERVICE", "SETGID", "SETPCAP", "SETUID"
]
_INSTANCES_MAX = 9
_ANY_MAX = 2_147_483_647
# The lab's own services, and the hosts that they reach one another by.
_TAKEN = (
    "collector",
    "localhost",
    "load",
    "capture",
    "sampler",
    "kernel",
    *ROLES,
    *(one.group for one in ROLES.values()),
)
# What stands beside an instance, and what holds the processes of a service that is only needed, are named so.
_PREFIXES = ("collector-", "holder-")


def _is_folder(text: str) -> str:
    if not re.fullmatch(r"/[^:,\s]+", text):
        raise knob_types.refusal(
            f"'{text}' is not a folder in the container: write its whole path, such as /var/cache/shop"
        )
    return text


def split_volume(text: str) -> tuple[str, str, str]:
    """Return what is mounted, the place in the container and the mode; all empty if it is no volume.

    A file or folder of the host begins with a dot, and may have colons of its own; other names are volumes of the run.
    One without a name is the instance's own.
    """
    found = re.fullmatch(r"(?s)(\..*|[A-Za-z0-9][\w.-]*):(/[^:]*)(?::([^/:]*))?|()(/[^:]+)()", text)
    return (found[1] or "", found[2] or found[5], found[3] or "") if found else ("", "", "")


def _is_volume(text: str) -> str:
    source, target, mode = split_volume(text)
    if not target:
        raise knob_types.refusal(f"'{text}' is not a volume: write ./folder:/where/it/goes, from the scenario's folder")
    if mode not in ("", "ro") and source.startswith("."):
        raise knob_types.refusal(
            f"'{text}': the service can only read a volume; name the folders that it writes to in 'writable'"
        )
    return text


def check_image(text: str) -> str:
    """Return the name of an image; refuse what is none."""
    # A program would take what begins with a hyphen for one of its options.
    if not re.fullmatch(r"[A-Za-z0-9][^\s]*", text):
        raise knob_types.refusal(f"'{text}' is not an image's name: write one such as acme/shop:1.2")
    return text


def _is_address(text: str) -> str:
    try:
        return str(ip_address(text))
    except ValueError:
        raise knob_types.refusal(f"'{text}' is not an address: write one such as 192.0.2.7") from None


def _is_variable(text: str) -> str:
    # Compose reads no key of more than 1,024 characters.
    if not re.fullmatch(r"[^=]{1,255}", text):
        raise knob_types.refusal(f"'{text}' cannot be the name of a variable")
    return text


Variable = Annotated[str, AfterValidator(_is_variable)]


class ToldBy(Part):
    """Where the running service tells the value of a knob."""

    page: Annotated[str, Field(pattern="^/", description="A page that answers with JSON")]
    at: Annotated[Text, Field(description="The keys that lead to the value, with dots between them")]


class ServiceKnob(Part):
    """One setting of a service: an environment variable, or what its program has built in."""

    env: Annotated[
        VariableName | None,
        Field(description="The environment variable that carries it; left out for what the program has built in"),
    ] = None
    default: Annotated[int | bool | str, Field(description="Its value; other values have the same type")]
    minimum: Annotated[int | None, Field(description="The least whole number; by default 0")] = None
    maximum: Annotated[int | None, Field(description="The greatest whole number")] = None
    values: Annotated[list[str] | None, Field(description="The texts that it can be")] = None
    unit: Annotated[Text | None, Field(description="What a number counts, such as connections or seconds")] = None
    doc: Annotated[Text | None, Field(description="What it does")] = None
    limit: Annotated[
        Limit | None,
        Field(
            description="What it bounds: connections that are accepted at once, the backlog of listen(2), threads that"
            " serve requests, or idle connections kept to the next server"
        ),
    ] = None

    read_back: Annotated[
        ToldBy | None, Field(description="Where the running service tells it; a run stops if it is another value")
    ] = None

    @model_validator(mode="after")
    def _has_one_type(self) -> Self:
        number = isinstance(self.default, int) and not isinstance(self.default, bool)
        if not number and (self.minimum is not None or self.maximum is not None):
            raise knob_types.refusal("minimum and maximum are for whole numbers")
        if isinstance(self.default, str) != (self.values is not None):
            needs = "a knob whose default is text needs 'values', the texts that it can be"
            raise knob_types.refusal(needs if self.values is None else "'values' needs a default that is text")
        if self.limit and not number:
            raise knob_types.refusal("a knob with a limit needs a default that is a whole number")
        return self

    def declared(self, name: str, port: int) -> dict[str, Any]:
        """Return it as a role.yaml of a service on this port has it."""
        told = self.read_back and {"page": f"http://127.0.0.1:{port}{self.read_back.page}", "at": self.read_back.at}
        common = {
            "default": self.default,
            "doc": self.doc
            or (f"The environment variable {self.env}" if self.env else "What the program has built in"),
            **({"unit": self.unit} if self.unit else {}),
            **({"read_back": told} if told else {}),
            **({"env": self.env} if self.env else {"fixed": True}),
            **({"label": name.replace("_", " ")} if self.limit else {}),
        }
        if isinstance(self.default, bool):
            return {"type": "boolean", **common}
        if isinstance(self.default, str):
            return {"type": "choice", "values": self.values, **common}
        low, high = (0 if self.minimum is None else self.minimum), (_ANY_MAX if self.maximum is None else self.maximum)
        if self.env is None:
            low = high = self.default
        return {"type": "integer", "minimum": low, "maximum": high, **common}


class Build(Part):
    """How an image is built, by Compose's names."""

    model_config = ConfigDict(title="connlab build")

    context: Annotated[Text, Field(description="The folder of the Dockerfile, from the scenario's folder")]
    dockerfile: Annotated[Text | None, Field(description="The Dockerfile, from that folder")] = None
    target: Annotated[Text | None, Field(description="The stage that is built")] = None
    args: Annotated[dict[Variable, KnobValue], Field(description="Build arguments")] = Field(default_factory=dict)


# What can be said of a server that runs already.
_OF_CLUSTER = frozenset(("cluster_service", "port", "tls", "instances", "knobs"))
WellKnown = Literal["json", "apache", "caddy", "combined", "envoy", "gunicorn", "spring", "traefik"]


class ServiceLog(Part):
    """A service's access log: where it is, and how a line of it is read."""

    model_config = ConfigDict(title="connlab service log")

    file: Annotated[
        Text, Field(description="The file in the container, in a folder of its own; or stdout, what the program prints")
    ] = "stdout"
    format: Annotated[
        WellKnown | None, Field(description="json, with 'fields'; or the log of a program that the lab knows")
    ] = None
    pattern: Annotated[
        Text | None, Field(description="Instead: a regular expression with groups that are named as fields")
    ] = None
    fields: Annotated[
        LogFields,
        Field(description="Where a line has what: {time: ts, status: code}, or {duration: {name: took, unit: ms}}"),
    ] = Field(default_factory=dict)

    @property
    def stdout(self) -> bool:
        """Whether the log is what the program prints."""
        return self.file == "stdout"

    @property
    def name(self) -> str:
        """The log's file among the raw files."""
        return CONTAINER_LOG if self.stdout else self.file.rpartition("/")[2]

    @property
    def folder(self) -> str:
        """The log's folder in the container."""
        return self.file.rpartition("/")[0]

    @model_validator(mode="after")
    def _can_be_read(self) -> Self:
        if (self.format is None) == (self.pattern is None):
            raise knob_types.refusal("a log takes either 'format' or 'pattern'")
        if not self.stdout and not re.fullmatch(r"(/[^:,\s/]+)+/[A-Za-z0-9][A-Za-z0-9_.-]*", self.file):
            what = f"'{self.file}' is not a log: write stdout, or its whole path, such as /var/log/shop/access.log"
            raise knob_types.refusal(what)
        if self.name == CONTAINER_LOG and not self.stdout:
            raise knob_types.refusal(f"a log cannot be named {CONTAINER_LOG}: the lab's own file has that name")
        try:
            _ = self.declared
        except ValidationError as error:
            raise knob_types.refusal(error.errors()[0]["msg"]) from None
        return self

    @property
    def declared(self) -> LogFormat:
        """How a line is read."""
        known = WELL_KNOWN.get(self.format or "")
        if known is None:
            return LogFormat(pattern=self.pattern, fields=self.fields)
        return LogFormat(pattern=known.pattern, fields={**known.fields, **self.fields})


# One file, or several that Compose merges.
ComposeFiles = Text | Annotated[list[Text], Field(min_length=1)]


def _folder_alone(value: object) -> object:
    return {"context": value} if isinstance(value, str) else value


class Service(Part):
    """A program of the user's own: on the path it is observed, and one that it needs is only started."""

    model_config = ConfigDict(title="connlab service")

    image: Annotated[
        Annotated[Text, AfterValidator(check_image)] | None, Field(description="Its image, such as acme/shop:1.2")
    ] = None
    build: Annotated[
        Build | None,
        BeforeValidator(_folder_alone, json_schema_input_type=Text | Build | None),
        Field(description="Instead: the folder of its Dockerfile, from the scenario's folder"),
    ] = None
    compose: Annotated[
        ComposeFiles | None, Field(description="Instead: a Compose file that has it, from the scenario's folder")
    ] = None
    service: Annotated[Text | None, Field(description="Its name in the Compose file")] = None
    cluster_service: Annotated[
        Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?/[a-z]([a-z0-9-]*[a-z0-9])?$")] | None,
        Field(
            description="Instead: a Service that runs on the cluster already, NAMESPACE/SERVICE. The load goes to its"
            " pods, which the lab leaves as they are"
        ),
    ] = None
    ignore: Annotated[list[Text], Field(description="Keys of the Compose file that are left out, such as ports")] = (
        Field(default_factory=list)
    )
    like: Annotated[
        Literal["proxy"] | None,
        Field(description="proxy: it passes requests on to what stands behind it on the path; it answers them itself"),
    ] = None
    log: Annotated[
        ServiceLog | None, Field(description="Its access log, whose lines are joined with the clients' requests")
    ] = None
    port: Annotated[int, Field(ge=1, le=65_535, description="The port that it listens on")] = TRAFFIC_PORT
    tls: Annotated[bool, Field(description="Whether it speaks TLS there; its certificate is not verified")] = False
    ready: Annotated[
        Annotated[str, Field(pattern="^/")] | Annotated[list[Text], Field(min_length=1)] | None,
        Field(
            description="When it is ready: a page that answers 200, or a command that ends with 0 in its container. By"
            " default, a service on the path is ready when it listens on its port"
        ),
    ] = None
    # It is written as it is read: a service that was read is read again, over what a Compose file says of it.
    ready_within: Annotated[
        Duration,
        PlainSerializer(format_duration),
        Field(ge=1_000, le=600_000, description="How long its start may take; the run stops after that"),
    ] = 120_000
    entrypoint: Annotated[list[str] | None, Field(description="Its program, in place of the image's")] = None
    command: Annotated[list[str] | None, Field(description="Its arguments, in place of the image's")] = None
    working_dir: Annotated[str | None, Field(pattern="^/", description="The folder that it starts in")] = None
    environment: Annotated[
        dict[Variable, KnobValue], Field(description="Its environment, besides what knobs carry")
    ] = Field(default_factory=dict)
    volumes: Annotated[
        list[Annotated[str, AfterValidator(_is_volume)]],
        Field(
            description="Files of the scenario's folder that it reads: ./conf:/etc/shop. data:/var/lib/shop, or a path"
            " alone, is a volume that it writes to: it begins with what the image has there, and goes with the run"
        ),
    ] = Field(default_factory=list)
    files: Annotated[
        dict[Annotated[str, AfterValidator(_is_folder)], str],
        Field(description="Files that it reads, by their whole paths, with their content"),
    ] = Field(default_factory=dict)
    depends_on: Annotated[
        list[Text],
        Field(description="What has to be ready before it: services, which are started, or roles of the path"),
    ] = Field(default_factory=list)
    completes: Annotated[
        bool, Field(description="Whether it ends by itself, and what depends on it waits for that; not on the path")
    ] = False
    aliases: Annotated[
        list[Annotated[Text, Field(pattern=r"^[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?$")]],
        Field(description="Further host names by which others reach it"),
    ] = Field(default_factory=list)
    extra_hosts: Annotated[
        dict[Text, Annotated[str, AfterValidator(_is_address)]],
        Field(description="Addresses of host names that it asks for"),
    ] = Field(default_factory=dict)
    instances: Annotated[int, Field(ge=1, le=_INSTANCES_MAX, description="How many of it; a knob, too")] = 1
    memory_mb: Annotated[int, Field(ge=1, description="What an instance takes of the machine's memory; MiB")] = 256
    user: Annotated[
        Text | None, Field(description="The user that it runs as, by default 10001; 'image' for the image's own")
    ] = None
    writable: Annotated[
        list[Annotated[str, AfterValidator(_is_folder)]],
        Field(description="Folders that it can write to, empty at first; /tmp is always one"),
    ] = Field(default_factory=list)
    read_only: Annotated[
        bool, Field(description="Whether it cannot write to its image's files; what it writes goes with the run")
    ] = True
    capabilities: Annotated[
        list[Capability], Field(description="Capabilities that it keeps; it has none otherwise")
    ] = Field(default_factory=list)
    sysctls: Annotated[
        dict[Text, KnobValue], Field(description="Sysctls of its namespace, below those of kernel.<service>")
    ] = Field(default_factory=dict)
    ulimits: Annotated[
        dict[Text, int | dict[Literal["soft", "hard"], int]], Field(description="Its limits, such as nofile: 65536")
    ] = Field(default_factory=dict)
    shm_size: Annotated[Text | None, Field(description="The size of its /dev/shm, such as 256m")] = None
    init: Annotated[bool, Field(description="Whether the engine's own init runs as its first process")] = False
    tty: Annotated[bool, Field(description="Whether it has a terminal")] = False
    stdin_open: Annotated[bool, Field(description="Whether its standard input stays open")] = False
    stop_signal: Annotated[Text | None, Field(description="The signal that ends it; by default SIGTERM")] = None
    knobs: Annotated[
        dict[KnobName, ServiceKnob], Field(description="Settings that you can turn, by names of your own")
    ] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _comes_from_one_place(self) -> Self:
        if [self.image, self.build, self.compose, self.cluster_service].count(None) != 3:  # noqa: PLR2004 # of four, one
            raise knob_types.refusal("a service takes exactly one of image, build, compose and cluster_service")
        if self.cluster_service is not None and (said := sorted(self.model_fields_set - _OF_CLUSTER)):
            what = f"{self.cluster_service} runs already, and the lab leaves it as it is: {', '.join(said)} cannot act"
            raise knob_types.refusal(what)
        if self.cluster_service is not None and any(one.env or one.read_back for one in self.knobs.values()):
            raise knob_types.refusal(f"knobs of {self.cluster_service} say what it has: leave env and read_back out")
        if (self.compose is None) != (self.service is None):
            raise knob_types.refusal("compose and service go together: the file, and the service's name in it")
        if self.ignore and self.compose is None:
            raise knob_types.refusal("'ignore' leaves out keys of a Compose file, and the service has no 'compose'")
        if self.tls and any(one.read_back for one in self.knobs.values()):
            raise knob_types.refusal("the lab reads settings back by plain HTTP alone, and the service takes TLS")
        if self.log is not None and self.log.folder in self.writable:
            raise knob_types.refusal(f"the log's folder {self.log.folder} is writable already: leave it out there")
        if "instances" in self.knobs:
            raise knob_types.refusal("every service has the knob 'instances' already: set 'instances' beside 'image'")
        limits = [one.limit for one in self.knobs.values() if one.limit]
        if len(set(limits)) < len(limits):
            raise knob_types.refusal("two of its knobs have the same limit")
        return self

    def role(self, name: str) -> dict[str, Any]:
        """Return the declaration of the role that it plays on the path: what its role.yaml would say."""
        limits = {one.limit: knob for knob, one in self.knobs.items() if one.limit}
        page = self.ready if isinstance(self.ready, str) and not self.tls else None
        address = f"127.0.0.1:{self.port}"
        asked = {"user": self.user, "writable": self.writable, "capabilities": self.capabilities}
        loosened: dict[str, Any] = {key: value for key, value in asked.items() if value}
        if not self.read_only:
            loosened["read_only"] = False
        instances = {
            "doc": f"How many instances of {name} there are; all are targets of the load if clients come to it first",
            "type": "integer",
            "minimum": 1,
            "maximum": _INSTANCES_MAX,
            "default": self.instances,
            "counts": "instances",
        }
        return {
            "schema": 1,
            "kind": self.like or "server",
            "description": f"The scenario's own {self.like or 'service'} {name}.",
            "group": name,
            "display_name": name,
            "ready": f"http://{address}{page}" if page else f"tcp://{address}",
            "port": self.port,
            "tls": self.tls,
            "shared": self.cluster_service is not None,
            "limits": limits,
            "logs": {self.log.name: self.log.declared.model_dump(exclude_none=True)} if self.log else {},
            "memory": {"base_mb": self.memory_mb},
            "loosened": loosened,
            "knobs": {"instances": instances}
            | {knob: one.declared(knob, self.port) for knob, one in self.knobs.items()},
        }


# An instance's name is a host's.
_NAME = r"^[a-z][a-z0-9]*(-[a-z0-9]+)*$"
ServiceName = Annotated[str, Field(pattern=_NAME)]
Services = Annotated[
    dict[ServiceName, Service],
    Field(description="Servers of your own, by the names that the path and 'depends_on' give them"),
]


def service_problems(services: Mapping[str, Service]) -> Iterator[tuple[tuple[str, ...], str, str | None]]:
    """Yield what is wrong between services: for each the place below `services`, the fault and a hint."""
    for name, service in services.items():
        if not may_be_named(name, services):
            yield (name,), f"the lab itself uses the name '{name}'", "give the service another one"
        for needed in service.depends_on:
            if needed in ROLES and ROLES[needed].kind != "client":
                continue
            if needed not in services:
                yield (name, "depends_on"), f"{name} depends on '{needed}', and no service has that name", "declare it"
            elif name in needed_by(services, [needed]):
                yield (name, "depends_on"), f"{name} and {needed} depend on each other", "leave one of the two out"


def may_be_named(name: str, others: Collection[str]) -> bool:
    """Return whether the lab has no other use for a name: its own, or that of an instance of another service."""
    other, _, number = name.rpartition("-")
    is_instance = (other in others or other in ROLES) and number.isdecimal()
    return not (name in _TAKEN or name.startswith(_PREFIXES) or is_instance)


def needed_by(services: Mapping[str, Service], names: list[str]) -> list[str]:
    """Return these services and all that they need, each once, what is needed first."""
    found: dict[str, None] = {}
    seen: set[str] = set()

    def add(name: str) -> None:
        if name in services and name not in seen:
            seen.add(name)
            for needed in services[name].depends_on:
                add(needed)
            found[name] = None

    for name in names:
        add(name)
    return list(found)


def is_service_name(name: str) -> bool:
    """Return whether a service may have this name."""
    return re.fullmatch(_NAME, name) is not None


def may_stand_on_path(name: str) -> bool:
    """Return whether a name can be a group of knobs, too."""
    return re.fullmatch(r"[a-z][a-z0-9]*", name) is not None


def roles(services: Mapping[str, Service]) -> dict[str, Role]:
    """Return the roles that services play."""
    return {name: Role.model_validate(service.role(name)) for name, service in services.items()}
