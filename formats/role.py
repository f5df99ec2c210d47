"""The model of `<role>/role.yaml`: all that connlab knows of a program on the path; a manifest carries its roles'."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    field_serializer,
    model_validator,
)

from formats import knob_types
from formats.field_types import Named, Port
from formats.knob_types import DAY_MS, Duration, format_duration
from formats.log_format import BEYOND_RE2, LogFormat, check_pattern
from formats.predictions import Part, Text

FILE = "role.yaml"
# Where the lab's own servers take their traffic; management ports are apart.
TRAFFIC_PORT = 8080
# What a container wrote to its standard output and error, as the engine kept it: a log may be there.
CONTAINER_LOG = "container.log"
# What a program takes for a knob of `Limits` that bounds nothing.
NO_LIMIT = -1
Kind = Literal["client", "proxy", "server"]
# As they stand on a path.
KINDS: tuple[Kind, ...] = ("client", "proxy", "server")
Workload = Literal["users", "spike", "long_polling", "sequential", "tcp", "slow_clients", "half_open", "script"]
Default = int | bool | str
# What stands in place of a knob as `Configured.absent`.
UNKNOWN = "unknown"

VariableName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
KnobName = Annotated[str, Field(pattern=r"^[a-z0-9]+(_[a-z0-9]+)*$")]


Pattern = Annotated[str, Field(min_length=1), AfterValidator(check_pattern)]


class KnobReadback(Part):
    """Where the running program tells a knob's value: a name on the role's page, or a line of the role's file."""

    name: Annotated[Text | None, Field(description="Its name among the `settings` on the role's page")] = None
    page: Annotated[Text | None, Field(description="A page of its own that has it as JSON, at `at`")] = None
    at: Annotated[Text | None, Field(description="The keys that lead to it there, with dots between them")] = None
    part: Annotated[Text | None, Field(description="The part of the role's file in which the line stands")] = None
    line: Annotated[
        Pattern | None, Field(description="A regular expression for the whole line; its one group is the value")
    ] = None
    absent: Annotated[Default | None, Field(description="The value that a file without such a line tells")] = None
    optional: Annotated[bool, Field(description="Whether the file may have no such line, and tell nothing")] = False
    unless: Annotated[
        KnobName | None, Field(description="The knob with which, when it is true, the program has no such setting")
    ] = None


class Configured(Part):
    """Where a configuration of the user's own says a knob's value; analysers of formats know the places."""

    at: Annotated[Text, Field(description="The place, such as `main` or `traffic`; lab.roles.configurations has all")]
    directive: Annotated[Text, Field(description="The words that its line begins with")]
    parameter: Annotated[
        Text | None, Field(description="The parameter of that line that is the value; what follows the words")
    ] = None
    absent: Annotated[
        Text | None,
        Field(description="The knob whose value holds where no line says it, or `unknown`; the default holds"),
    ] = None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


class Knob(Part, ABC):
    """What every knob has."""

    default: Any
    doc: Annotated[Text, Field(description="What it does, as the program's manual has it")]
    unit: Annotated[Text | None, Field(description="What a number counts; a duration has its own")] = None
    env: Annotated[
        VariableName | None,
        Field(description="The environment variable that carries it; CONNLAB_<NAME>"),
    ] = None
    fixed: Annotated[bool, Field(description="Whether the program has it built in, so that nothing carries it")] = False
    label: Annotated[Text | None, Field(description="Its words beside the role in a report's path; it is left out")] = (
        None
    )
    counts: Annotated[
        Literal["instances", "addresses"] | None,
        Field(description="What of the topology it counts: the lab reads it, and the program does not"),
    ] = None
    workloads: Annotated[
        Annotated[tuple[Workload, ...], Field(strict=False, min_length=1)] | None,
        Field(description="The workloads that read it; all"),
    ] = None
    variants: Annotated[
        Annotated[tuple[Text, ...], Field(strict=False, min_length=1)] | None,
        Field(description="The variants of the role that have it; all"),
    ] = None
    read_back: Annotated[KnobReadback | None, Field(description="Where the running program tells it")] = None
    configured: Annotated[
        Configured | None, Field(description="Where a configuration of the user's own says it; its value is unknown")
    ] = None

    default_since: Annotated[
        dict[Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+)*$")], Any],
        Field(description="Defaults of the program's other versions: each from a version on"),
    ] = Field(default_factory=dict)

    @abstractmethod
    def annotation(self) -> Any:  # noqa: ANN401 # what pydantic takes for a type
        """Return the type of its values, with their range."""

    @property
    def initial(self) -> Default:
        """Return the default, in milliseconds for a duration."""
        return self._valid(self.default)

    def _valid(self, default: object) -> Default:
        value: Default = TypeAdapter(self.annotation(), config=ConfigDict(strict=True)).validate_python(default)
        return value

    def initial_in(self, version: str | None) -> Default:
        """Return the default of a version of the program, such as 1.29.7; the lab's own if it is not known."""
        here = [one for one in self.default_since if version and _numbers(one) <= _numbers(version)]
        return self._valid(self.default_since[max(here, key=_numbers)]) if here else self.initial

    @model_validator(mode="after")
    def _default_is_valid(self) -> Self:
        try:
            for one in (self.default, *self.default_since.values()):
                self._valid(one)
        except ValidationError as error:
            raise knob_types.refusal(f"the default is not valid: {error.errors()[0]['msg']}") from None
        return self


class Integer(Knob):
    """A whole number within a range, or one of a few other values."""

    type: Literal["integer"]
    minimum: int
    maximum: int
    also: Annotated[
        dict[str, Text] | None, Field(description="Values outside the range, and what each of them means")
    ] = None
    at_most: Annotated[KnobName | None, Field(description="The knob of this role that it must not exceed")] = None
    default: int | str

    def annotation(self) -> Any:  # noqa: ANN401 # as above
        """Return the type of its values, with their range."""
        if self.also is None:
            return knob_types.integer(self.minimum, self.maximum)
        return knob_types.integer_or(self.also, self.minimum, self.maximum)


class DurationKnob(Knob):
    """A time with its unit, in whole steps."""

    model_config = ConfigDict(title="Duration")

    type: Literal["duration"]
    minimum: Duration = 0
    maximum: Duration = DAY_MS
    step: Duration = 1
    default: Annotated[Text, Field(description="With its unit, such as 20s")]

    @field_serializer("minimum", "maximum", "step", when_used="json")
    def _with_its_unit(self, ms: int) -> str:
        return format_duration(ms)

    def annotation(self) -> Any:  # noqa: ANN401 # as above
        """Return the type of its values, with their range."""
        return knob_types.duration(self.minimum, self.maximum, self.step)


class Boolean(Knob):
    """True or false."""

    type: Literal["boolean"]
    default: bool

    def annotation(self) -> Any:  # noqa: ANN401 # as above
        """Return the type of its values."""
        return bool


class Choice(Knob):
    """One of a few texts."""

    type: Literal["choice"]
    values: Annotated[list[str], Field(min_length=2)]
    default: str

    def annotation(self) -> Any:  # noqa: ANN401 # as above
        """Return the type of its values."""
        return knob_types.choice(self.values)


class Words(Knob):
    """Some of a few words, with spaces between them."""

    type: Literal["words"]
    values: Annotated[list[Text], Field(min_length=2)]
    alone: Annotated[Text | None, Field(description="The word that has no other beside it")] = None
    default: str

    def annotation(self) -> Any:  # noqa: ANN401 # as above
        """Return the type of its values."""
        return knob_types.words(self.values, self.alone)


class UrlPath(Knob):
    """The path of a URL."""

    type: Literal["url_path"]
    default: str

    def annotation(self) -> Any:  # noqa: ANN401 # as above
        """Return the type of its values."""
        return knob_types.URL_PATH


KNOB_TYPES: Mapping[str, type[BaseModel]] = {
    "integer": Integer,
    "duration": DurationKnob,
    "boolean": Boolean,
    "choice": Choice,
    "words": Words,
    "url_path": UrlPath,
}
AnyKnob = Annotated[Integer | DurationKnob | Boolean | Choice | Words | UrlPath, Field(discriminator="type")]


class RoleReadback(Part):
    """How the running program tells its settings."""

    page: Annotated[Text | None, Field(description="A page that has them as JSON, in `settings`")] = None
    file: Annotated[Text | None, Field(description="A file that it leaves among its raw files")] = None
    part: Annotated[
        Pattern | None, Field(description="A regular expression for a line that begins a part; its group is the name")
    ] = None


class ConfigurationFormat(Part):
    """How the program takes a configuration of the user's own in place of the lab's."""

    format: Annotated[Literal["blocks", "sections"], Field(description="What lab.roles.configurations reads it by")]
    folder: Annotated[Text, Field(description="Where its folder lies for the program, as its messages have it")]
    writable: Annotated[list[Text], Field(description="Folders that it may write to, empty at first")] = Field(
        default_factory=list
    )
    read_only: Annotated[bool, Field(description="Whether it cannot write to its image's files")] = True
    around: Annotated[
        Text | None,
        Field(description="A file of the role's folder that stands around a fragment, and includes it; it takes none"),
    ] = None
    refusal: Annotated[
        Pattern, Field(description="A regular expression for what the program refuses: groups what, file and line")
    ]
    rules: Annotated[
        list[Text], Field(description="The first words of the lines by which it answers a request without a server")
    ] = Field(default_factory=list)
    version: Annotated[
        Pattern, Field(description="A regular expression for its version in what it read; its one group is the number")
    ]


class Value(Part):
    """A number on a page."""

    at: Annotated[Text, Field(description="Where it stands on the page; see `format`")]
    minus: Annotated[
        Text | None, Field(description="Where the number stands that is subtracted: what it counts besides")
    ] = None
    grows: Annotated[bool, Field(description="Whether it counts from the program's start on; else it is a level")] = (
        False
    )
    description: Annotated[
        Text | None, Field(description="What it counts: it is a figure with this meaning; only the ledger reads it")
    ] = None
    label: Annotated[Text | None, Field(description="Its words in the chart of a report; its description")] = None
    limit: Annotated[KnobName | None, Field(description="The knob that bounds it, which the chart shows, too")] = None
    limit_label: Annotated[Text | None, Field(description="That knob's words in the chart; its name")] = None
    log: Annotated[
        Text | None, Field(description="The log file that has a line for each thing that it counts, and may lack some")
    ] = None
    own: Annotated[bool, Field(description="Whether it counts the collector's readings of the page, too")] = False


class Page(Part):
    """A page on which a running program says how it is; the collector reads it once a second."""

    url: Text
    format: Annotated[
        Literal["json", "text", "csv"],
        Field(
            description="A value stands in json at a path such as `threads.busy`; in text at the group of a regular"
            " expression; in csv at `<first column>/<second column>/<name of the value's column>`"
        ),
    ]
    figure_prefix: Annotated[
        KnobName | None, Field(description="The first part of the names of its figures; the page's name")
    ] = None
    values: Annotated[
        dict[Annotated[str, Field(pattern=r"^[a-z0-9_]+(\.[a-z0-9_]+)*$")], Value],
        Field(
            description="By their names. A server's `threads_busy`, `threads_max`, `processing_ms` and `requests` let"
            " the ledger tell a wait for a thread from a slow handler"
        ),
    ] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _patterns_are_patterns(self) -> Self:
        for at in self.places:
            if self.format == "text" and re.compile(check_pattern(at)).groups != 1:
                raise knob_types.refusal(f"'{at}' must have one group")
            if self.format == "text" and BEYOND_RE2.search(at):
                raise knob_types.refusal(f"'{at}' must look neither ahead nor back")
            if self.format == "csv" and at.count("/") != 2:  # noqa: PLR2004  two columns that name a row
                raise knob_types.refusal(f"'{at}' must be <first column>/<second column>/<column>")
        return self

    @property
    def places(self) -> list[str]:
        """Return where the numbers stand that the page is read for."""
        return [at for value in self.values.values() for at in (value.at, value.minus) if at is not None]


class Limits(Part):
    """The knobs that bound what the program holds, and for how long, whatever it calls them."""

    backlog: Annotated[KnobName | None, Field(description="The backlog that it asks of listen(2)")] = None
    connections: Annotated[KnobName | None, Field(description="The connections that it takes at once")] = None
    connect_timeout: Annotated[KnobName | None, Field(description="How long it tries to connect")] = None
    pool: Annotated[
        KnobName | None, Field(description="The idle connections to servers that it keeps; 0 if it keeps none")
    ] = None
    threads: Annotated[KnobName | None, Field(description="The requests that it serves at once")] = None
    event_loops: Annotated[
        KnobName | None,
        Field(description="The event loops that run its handlers; a connection has one of them for all its requests"),
    ] = None
    process_connections: Annotated[
        KnobName | None, Field(description="The connections of one of its processes, to clients and servers together")
    ] = None
    processes: Annotated[KnobName | None, Field(description="How many such processes it has")] = None
    idle: Annotated[KnobName | None, Field(description="How long it keeps an idle connection of a client")] = None
    requests: Annotated[
        KnobName | None,
        Field(description="The requests of a client that it serves on one connection; -1 or 0 = no limit"),
    ] = None
    server_connections: Annotated[
        KnobName | None, Field(description="The connections, or requests, that one server gets at once; 0 = no limit")
    ] = None
    server_pool: Annotated[
        KnobName | None, Field(description="The idle connections to one server that it keeps, of those of `pool`")
    ] = None
    no_pool: Annotated[KnobName | None, Field(description="Whether it keeps no connection to a server")] = None
    server_idle: Annotated[
        KnobName | None, Field(description="How long it keeps an idle connection to a server; 0 = no limit")
    ] = None
    answer_timeout: Annotated[KnobName | None, Field(description="How long it waits for a server's answer")] = None
    queue_timeout: Annotated[
        KnobName | None, Field(description="How long a request waits in its own queue for one of a server's places")
    ] = None
    failures: Annotated[KnobName | None, Field(description="The failed tries that leave a server out")] = None
    left_out: Annotated[KnobName | None, Field(description="How long it then leaves that server out")] = None
    next_server: Annotated[
        KnobName | None, Field(description="The failures that send a request to the next server")
    ] = None
    own_threads: Annotated[KnobName | None, Field(description="Whether each request has a thread of its own")] = None
    streams: Annotated[
        KnobName | None, Field(description="The requests at once on one connection of a client by HTTP/2")
    ] = None
    connection_age: Annotated[
        KnobName | None, Field(description="How old a connection of a client may become, idle or not")
    ] = None


class ListenerKnobs(Part):
    """The knobs of the port that takes the traffic, whatever the program calls them."""

    tls: Annotated[KnobName | None, Field(description="Whether it takes TLS there")] = None
    key: Annotated[KnobName | None, Field(description="The kind of its certificate's key")] = None
    oldest: Annotated[KnobName | None, Field(description="The oldest version of TLS")] = None
    newest: Annotated[KnobName | None, Field(description="The newest version of TLS")] = None
    tickets: Annotated[KnobName | None, Field(description="Whether it gives clients tickets of TLS sessions")] = None
    http2: Annotated[KnobName | None, Field(description="Whether it takes HTTP/2 there")] = None


class Privileges(Part):
    """What a service has beyond the confinement of the lab's own roles; a scenario asks for each by name."""

    user: Annotated[Text | None, Field(description="The user it runs as; 'image' is the image's own")] = None
    writable: Annotated[list[Text], Field(description="Folders that it may write to, empty at first")] = Field(
        default_factory=list
    )
    read_only: Annotated[bool, Field(description="Whether it cannot write to its image's files")] = True
    capabilities: Annotated[list[Text], Field(description="Capabilities that are not dropped")] = Field(
        default_factory=list
    )


class Checks(Part):
    """Health checks of a proxy: connections to its servers that carry no request of a client."""

    servers: Annotated[int, Field(ge=1, description="The servers that it checks")]
    every_ms: Annotated[int, Field(ge=1, description="The least time between two checks of one server")]


class Rule(Part):
    """A line of a configuration by which a proxy answers a request itself, without a server."""

    text: Annotated[Text, Field(description="The line's words, with a blank between them")]
    where: Annotated[Text, Field(description="Its file, from the configuration's folder, and its line")]


class Memory(Part):
    """What an instance takes of the machine's memory."""

    base_mb: Annotated[int, Field(ge=0, description="Without a connection; MiB")]
    heap: Annotated[
        KnobName | None, Field(description="A part that this knob fixes, and that holds connections; MiB")
    ] = None
    connection_kb: Annotated[int, Field(ge=0, description="For each connection, in the heap if there is one; KiB")] = 0


class Reload(Part):
    """How a program takes its configuration anew while it runs."""

    signal: Annotated[str, Field(pattern=r"^SIG[A-Z0-9]+$", description="What its first process takes for it")]
    variable: Annotated[
        str | None,
        Field(pattern=r"^CONNLAB_[A-Z0-9_]+$", description="Is `true` for the image in a run that reloads it"),
    ] = None
    counts_anew: Annotated[
        bool, Field(description="Whether the program's own figures begin at 0 with its new configuration")
    ] = False


class Variant(Part):
    """What a role declares otherwise where its image runs another program."""

    scrape: Annotated[dict[KnobName, Page], Field(description="The pages that the collector reads")] = Field(
        default_factory=dict
    )
    read_back: Annotated[RoleReadback | None, Field(description="How it tells its settings")] = None
    limits: Limits = Limits()


class Variants(Part):
    """The programs of which an image runs one, as a knob says; the first is as the role itself declares."""

    knob: Annotated[KnobName, Field(description="The knob that chooses")]
    of: Annotated[dict[Text, Variant], Field(description="The others, by the knob's values")]


class Role(Part):
    """A program on the path."""

    model_config = ConfigDict(title="connlab role", validate_by_name=True)

    format: Annotated[Literal[1], Field(alias="schema", description="The version of this format")]
    kind: Kind
    description: Annotated[Text, Field(description="What it is, in a sentence")]
    group: Annotated[str, Field(pattern=r"^[a-z0-9]*$", description="The group of its knobs; the folder's name")] = ""
    display_name: Annotated[Text, Field(description="Its name in the midst of a sentence")]
    ready: Annotated[
        Text | None, Field(description="A page that answers 200 once it serves; tcp://… is a port that is listened on")
    ] = None
    port: Annotated[Port, Field(ge=1, description="The port that takes the traffic")] = TRAFFIC_PORT
    tls: Annotated[bool, Field(description="Whether the traffic is TLS")] = False
    ipv6: Annotated[bool, Field(description="Whether clients come over IPv6")] = False
    relays: Annotated[
        bool, Field(description="Whether it is a proxy behind another one, which counts as a service between others")
    ] = False
    shared: Annotated[
        bool, Field(description="Whether others than the run's clients connect to it, as to what ran before the run")
    ] = False
    listener: ListenerKnobs = ListenerKnobs()
    servers_http2: Annotated[
        KnobName | None, Field(description="Whether it speaks HTTP/2 with the servers behind it")
    ] = None
    loosened: Annotated[
        Privileges | None, Field(description="What a scenario's own service has beyond the lab's confinement")
    ] = None
    scrape: Annotated[
        dict[KnobName, Page], Field(description="Pages that the collector reads during a run, by their files' names")
    ] = Field(default_factory=dict)
    processes: Annotated[
        tuple[Text, ...],
        Field(
            strict=False,
            description="The names of its processes in /proc/<pid>/comm, whose processor time, memory and files count"
            " as the role's; all in its namespace but the collector's",
        ),
    ] = ()
    logs: Annotated[
        dict[Named, Text | LogFormat],
        Field(description="Its log files, each with the format that analysis/evidence/logs reads, or a declared one"),
    ] = Field(default_factory=dict)
    one_at_a_time: Annotated[
        bool,
        Field(
            description="Whether a client speaks HTTP/1 and sends a request only after the answer to the one before, so"
            " that packets tell its requests apart"
        ),
    ] = False
    read_back: Annotated[RoleReadback | None, Field(description="How it tells its settings")] = None
    own: Annotated[
        ConfigurationFormat | None, Field(description="How it takes a configuration of the user's own; it takes none")
    ] = None
    stop_signal: Annotated[
        str, Field(pattern=r"^SIG[A-Z0-9]+$", description="The signal that ends it in order, as its image has it")
    ] = "SIGTERM"
    grace: Annotated[
        str | None,
        Field(
            pattern=r"^[A-Z][A-Z0-9_]*$",
            description="The variable by which the program bounds its own orderly end; without one it waits for its"
            " requests for as long as they take",
        ),
    ] = None
    reload: Annotated[Reload | None, Field(description="How it takes its configuration anew; it cannot")] = None
    checks: Annotated[
        Checks | None, Field(description="The health checks that a configuration of the user's own asks for")
    ] = None
    rules: Annotated[
        tuple[Rule, ...],
        Field(
            strict=False,
            description="The lines of a configuration of the user's own by which it answers without a server",
        ),
    ] = ()
    page: Annotated[Text | None, Field(description="The page that a proxy serves without a server behind it")] = None
    once: Annotated[Text | None, Field(description="Why it cannot be started again within a run")] = None
    limits: Limits = Limits()
    variants: Annotated[Variants | None, Field(description="The programs of which its image runs one")] = None
    memory: Memory
    files: Annotated[int, Field(ge=0, description="Files that a process opens besides its connections")] = 128
    knobs: dict[KnobName, AnyKnob]

    @model_validator(mode="after")
    def _names_its_own_knobs(self) -> Self:
        named = {told.unless for one in self.knobs.values() if (told := one.read_back) is not None}
        bounds = {one.at_most for one in self.knobs.values() if isinstance(one, Integer)}
        others = self.variants.of.values() if self.variants else ()
        drawn = {value.limit for page in self.pages().values() for value in page.values.values()}
        absent = {one.configured.absent for one in self.knobs.values() if one.configured is not None} - {UNKNOWN}
        unknown = {*named, *bounds, *drawn, *absent, *self.limits.model_dump().values(), self.memory.heap}
        unknown |= {self.servers_http2, *self.listener.model_dump().values()}
        unknown |= {name for one in others for name in one.limits.model_dump().values()}
        unknown |= {self.variants.knob} if self.variants else set()
        unknown -= {None, *self.knobs}
        if unknown:
            raise knob_types.refusal(f"it names the knob '{min(map(str, unknown))}', and has none of that name")
        return self

    def with_variant(self, chosen: object) -> Self:
        """Return the declaration of the program that the image runs, without the knobs that others have."""
        if self.variants is None:
            return self
        knobs = {
            name: knob for name, knob in self.knobs.items() if knob.variants is None or str(chosen) in knob.variants
        }
        listener = {what: name for what, name in self.listener.model_dump().items() if name in knobs}
        other = self.variants.of.get(str(chosen))
        changed: dict[str, Any] = {"knobs": knobs, "listener": ListenerKnobs(**listener), "variants": None}
        if other:
            changed |= {"scrape": other.scrape, "read_back": other.read_back, "limits": other.limits}
        return self.model_copy(update=changed)

    def pages(self) -> Mapping[str, Page]:
        """Return the pages of each program that the image may run."""
        others = self.variants.of.values() if self.variants else ()
        return {name: page for one in (self, *others) for name, page in one.scrape.items()}

    def knob(self, name: str) -> str:
        """Return the full name of one of its knobs."""
        return f"{self.group}.{name}"

    def limiting_knobs(self) -> dict[str, str]:
        """Return the full names of the knobs that bound it, by what they bound, without those that are built in."""
        limits: dict[str, str] = self.limits.model_dump(exclude_none=True)
        return {what: self.knob(name) for what, name in limits.items() if not self.knobs[name].fixed}

    def ordered_knobs(self) -> Iterator[tuple[str, str]]:
        """Yield each knob that must not exceed another, and that other, by their full names."""
        for name, knob in self.knobs.items():
            if isinstance(knob, Integer) and knob.at_most is not None:
                yield self.knob(name), self.knob(knob.at_most)

    def counting(self, what: Literal["instances", "addresses"]) -> str | None:
        """Return the knob that counts its instances, or its addresses; None where it has one of them."""
        return next((name for name, knob in self.knobs.items() if knob.counts == what), None)

    def as_written(self) -> dict[str, Any]:
        """Return what its file says, with the group of its knobs, as JSON."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)


def passes_on(role: Role) -> bool:
    """Return whether a role passes requests on to what stands behind it."""
    return role.kind == "proxy" or role.relays


def answering(path: Sequence[str], roles: Mapping[str, Role]) -> str:
    """Return the role of a path that answers requests itself: the first server that relays none."""
    return request_path(path, lambda name: "proxy" if passes_on(roles[name]) else roles[name].kind)[-1]


def request_path(path: Sequence[str], kind_of: Callable[[str], str | None]) -> list[str]:
    """Return the roles of a path that carry requests: from the client to its first server, which answers them.

    What stands behind that is a server of its own, such as a database: its connections carry no request of a client.

    Args:
        path: the roles.
        kind_of: gives the kind of each.
    """
    ends = (place for place, role in enumerate(path, start=1) if kind_of(role) == "server")
    return list(path[: next(ends, None)])
