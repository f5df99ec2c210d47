"""A scenario: the model of `scenarios/<slug>/scenario.yaml`."""

import re
import shlex
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, WithJsonSchema, create_model, model_validator

from formats import knob_types
from formats.field_types import HostName, Named, Port
from formats.knob_types import Duration, KnobValue
from formats.manifest import ActionKind, FilterAnswer
from formats.predictions import Claim, Name, Part, Published, Text, Tolerance
from formats.role import VariableName
from formats.series import FAILED_IN_A_ROW
from lab.roles.declared_roles import ROLES
from lab.scenarios.generator_programs import PROGRAMS
from lab.scenarios.knobs import Knobs, RoleName
from lab.scenarios.load_url import check_url
from lab.scenarios.network import Link, link_schema
from lab.scenarios.services import ComposeFiles, Services, check_image

_OF_ARMS = re.compile(r"\barms\.")

_GROUPS = list(Knobs.model_fields)
# Editors know every name of a path where the scenario brings neither services nor a load.
_WITHOUT_SERVICES: dict[str, Any] = {
    "if": {
        "properties": {"path": {"items": {"type": "string"}}},
        "not": {"anyOf": [{"required": [name]} for name in ("services", "compose", "load")]},
    },
    "then": {"properties": {"path": {"items": {"enum": list(ROLES)}}, "knobs": {"propertyNames": {"enum": _GROUPS}}}},
}

# A service of the scenario's own is known by its name only there.
_NAMED = {"type": "string", "examples": list(ROLES)}
_PATH = {"type": "array", "items": _NAMED, "minItems": 2}
# lab.scenarios.registry makes a service of it.
_RUNNING = {"type": "object", "properties": {"service": {"type": "string"}}, "required": ["service"]}
_PATH_OF_SCENARIO = _PATH | {"items": {"anyOf": [_NAMED, _RUNNING]}}
_LINK = {"type": "object", "additionalProperties": False, "properties": link_schema()}
_NETWORK = {"type": "object", "additionalProperties": {"type": "object", "additionalProperties": _LINK}}
# Knobs by their full names, and `path`. What a value may be is the knob's to say, once it stands in its scenario.
Settings = Annotated[
    dict[str, KnobValue | list[str]],
    Field(description="Knobs by their full names, such as load.keep_alive: false; and path, if it differs"),
    WithJsonSchema(
        {
            "type": "object",
            "properties": {"path": _PATH},
            "propertyNames": {"pattern": r"^(path|[a-z0-9]+\..+)$"},
            "additionalProperties": {"type": ["integer", "boolean", "string", "number"]},
        }
    ),
]


class Preset(Part):
    """The scenario at another size, by a name: what `PRESET=` puts in the place of the scenario's own knobs."""

    # Its knobs stand beside `description`, by their full names, as those of an arm do.
    model_config = ConfigDict(
        extra="allow", json_schema_extra={"propertyNames": {"pattern": r"^(description|arms|[a-z0-9]+\..+)$"}}
    )
    __pydantic_extra__: dict[str, KnobValue]

    description: Annotated[
        Text | None, Field(description="What it is, and why the scenario's own size is different")
    ] = None
    arms: Annotated[
        dict[Name, dict[str, KnobValue]], Field(description="What it sets in one arm, by the arm's name")
    ] = Field(default_factory=dict)

    @property
    def knobs(self) -> dict[str, KnobValue]:
        """Return what it sets in the scenario as a whole: knobs by their full names."""
        return self.__pydantic_extra__


class Warmup(Part):
    """Requests before the measurement, one at a time, each on a connection of its own that leaves nothing behind."""

    requests: Annotated[int, Field(ge=0, le=100_000, description="How many; 0 = no warm-up")] = 0


class Prediction(Claim):
    """A scenario's prediction: about each run, about the runs of some arms, or about the arms beside each other."""

    arms: Annotated[
        Annotated[list[str], Field(min_length=1)] | None,
        Field(description="The arms whose runs it is about; by default all"),
    ] = None

    @property
    def compares_arms(self) -> bool:
        """Return whether it is about the series as a whole, and not about each run."""
        return bool(_OF_ARMS.search(self.expression))

    def judges(self, arm: str | None) -> bool:
        """Return whether it is about each run of an arm; None stands for a scenario without arms."""
        return not self.compares_arms and (self.arms is None or arm in self.arms)

    def claim(self) -> Claim:
        """Return what the records of a run and of a series keep of it."""
        return Claim(id=self.id, description=self.description, expression=self.expression, when=self.when)


class ClaimTest(Part):
    """What tells whether a published claim holds here: predictions, of which all must be true in a run; or nothing."""

    supported_by: Annotated[list[Name], Field(description="Predictions that the claim makes, too")] = Field(
        default_factory=list
    )
    refuted_by: Annotated[list[Name], Field(description="Predictions that contradict the claim")] = Field(
        default_factory=list
    )
    undecided: Annotated[Text | None, Field(description="Why this scenario cannot tell whether the claim holds")] = None
    caveat: Annotated[
        Text | None, Field(description="Which part of the published claim these predictions do not test")
    ] = None


class Control(Part):
    """Where the signal must not show: in an arm, in the control of another scenario, or, of a healthy one, nowhere."""

    scenario: Annotated[
        Name | None,
        Field(description="Another scenario whose control is the control here, too; by default it is described here"),
    ] = None
    arm: Annotated[Name | None, Field(description="The arm in which the signal does not show")] = None
    clean: Annotated[
        list[Name], Field(description="Predictions of one run that are all true where the signal does not show")
    ] = Field(default_factory=list)


class Budget(Part):
    """What a series may take at most; more is refused before anything starts."""

    cells: Annotated[int, Field(ge=1, le=10_000, description="Cells")] = 100
    duration: Annotated[Duration, Field(ge=1, description="Expected time of all runs")] = 4 * 3_600_000


class Stop(Part):
    """When a series ends before its last run."""

    failed_in_a_row: Annotated[
        int, Field(ge=1, le=1000, description="After so many runs in a row that the lab could not complete")
    ] = FAILED_IN_A_ROW
    when: Annotated[
        Text | None, Field(description="After a run in which this expression holds, such as client.requests.failed > 0")
    ] = None


class Series(Part):
    """How often and in which order the runs of a series go."""

    repetitions: Annotated[int, Field(ge=1, le=99, description="Runs of each cell, or arm")] = 1
    seed: Annotated[int, Field(ge=0, le=2**31, description="A number that fixes the shuffled order")] = 1
    cooldown: Annotated[Duration, Field(ge=0, le=600_000, description="Pause before each run but the first")] = 0
    stop: Stop = Stop()
    budget: Budget = Budget()


class Arms(Series):
    """Named variants of the scenario, each repeated, in one series."""

    baseline: Annotated[
        str | None, Field(description="The arm with which others are compared; by default the first")
    ] = None
    variants: Annotated[dict[Name, Settings], Field(min_length=2, description="What differs in each arm, by its name")]
    figures: Annotated[
        list[Text],
        Field(description="Figures that a comparison shows first; by default those of the predictions over arms"),
    ] = Field(default_factory=list)


IpFamily = Literal["ipv4", "ipv6"]


def _check_arguments(text: str) -> str:
    """Return arguments that can be told apart."""
    try:
        shlex.split(text)
    except ValueError:
        raise knob_types.refusal(f"{text} has a quote or a backslash without its partner") from None
    return text


_Arguments = Annotated[
    Annotated[Text, AfterValidator(_check_arguments)] | None,
    Field(description="Its arguments; {target} stands for the URL of the path's first server, {host} and {port} too"),
]


class Results(Part):
    """A file in which a load generator tells of each request."""

    file: Annotated[Named, Field(description="Its name in /raw, where the generator writes it")]
    format: Annotated[
        Literal["jmeter", "vegeta"], Field(description="jmeter: JTL, as CSV or XML; vegeta: `vegeta encode --to csv`")
    ]


class OwnLoad(Part):
    """Where the load goes, and a load of one's own: a k6 script, or a generator in a container of its own."""

    url: Annotated[
        Annotated[Text, AfterValidator(check_url)] | None,
        Field(
            description="The URL that users ask for, such as https://shop.example/; by default, where the path's first"
            " server listens"
        ),
    ] = None
    ip_family: Annotated[
        IpFamily | None,
        Field(description="Clients come over IPv4 or over IPv6; by default IPv4, if the first server listens there"),
    ] = None
    script: Annotated[Text | None, Field(description="A k6 script, by its path from the scenario's folder")] = None
    root: Annotated[
        Text | None,
        Field(
            description="The folder that k6 sees, by its path from the scenario's; by default the nearest that holds"
            " the script and what it imports and opens, in the same repository"
        ),
    ] = None
    modules: Annotated[
        dict[Text, Text],
        Field(
            description="Where remote modules lie: {https://…/index.js: ./vendor/index.js}; with / at the end, a folder"
        ),
    ] = Field(default_factory=dict)
    image: Annotated[
        Annotated[Text, AfterValidator(check_image)] | None,
        Field(description="The image of a generator, such as acme/load:1.2; or a k6 with extensions, for a script"),
    ] = None
    command: Annotated[list[str] | None, Field(description="The arguments of that image, in place of its own")] = None
    results: Annotated[
        Results | None,
        Field(description="What the generator writes of each request: {file: results.jtl, format: jmeter}, in /raw"),
    ] = None
    wrk: _Arguments = None
    ab: _Arguments = None
    hey: _Arguments = None
    jmeter: _Arguments = None
    vegeta: _Arguments = None
    locust: _Arguments = None
    gatling: _Arguments = None
    environment: Annotated[
        dict[VariableName, str],
        Field(description="Its environment, in k6 __ENV; {target}, {host} and {port} as in arguments"),
    ] = Field(default_factory=dict)

    @property
    def is_own(self) -> bool:
        """Return whether it takes the place of the lab's workloads."""
        return any(getattr(self, one) is not None for one in ("script", "image", *PROGRAMS))

    @model_validator(mode="after")
    def _is_one_load(self) -> Self:
        tools = [tool for tool in PROGRAMS if getattr(self, tool) is not None]
        if len(tools) + (self.script is not None) > 1:
            raise knob_types.refusal(f"a load is one of script, image, {', '.join(PROGRAMS)}, and this has more")
        if not self.is_own:
            if self.model_fields_set <= {"url", "ip_family"} and (self.url or self.ip_family):
                return self
            raise knob_types.refusal(f"a load takes one of script, image, {', '.join(PROGRAMS)}, or url alone")
        if self.script is not None and (self.command, self.results) != (None, None):
            raise knob_types.refusal("k6 runs a script by itself and records each request: leave the other keys out")
        if self.script is None and (self.root is not None or self.modules):
            raise knob_types.refusal("'root' and 'modules' are of a k6 script, and the load has none")
        if self.command is not None and (tools or self.image is None):
            raise knob_types.refusal("'command' goes with 'image' alone; a named generator has its arguments itself")
        if tools and not PROGRAMS[tools[0]].has_image and self.image is None:
            raise knob_types.refusal(f"the lab has no {tools[0]} of its own: name an image that has it (image: …)")
        return self


class ConfigurationFile(Part):
    """A configuration of one's own, in place of the lab's for a role."""

    config: Annotated[
        Text, Field(description="The file, or a folder of fragments, by its path from the scenario's folder")
    ]
    image: Annotated[
        Text | None, Field(description="The image that has the program, such as acme/nginx:1.29; the lab's own")
    ] = None
    port: Annotated[
        Port | None, Field(ge=1, description="Where the load enters; by default, the port that leads to the next role")
    ] = None
    hosts: Annotated[
        dict[Text, Text],
        Field(description="Which server of the path each server of the file stands for: {app: backend}"),
    ] = Field(default_factory=dict)
    tls_key: Annotated[
        Literal["ecdsa", "rsa"], Field(description="The kind of key of certificates that are made for a run")
    ] = "ecdsa"
    environment: Annotated[
        dict[VariableName, str],
        Field(description="Variables that are filled in in the files, as nginx's official image does in *.template"),
    ] = Field(default_factory=dict)


if TYPE_CHECKING:
    _WithConfigurations = Part
else:
    _WithConfigurations = create_model(
        "_WithConfigurations",
        __base__=Part,
        **{name: (ConfigurationFile | None, None) for name, role in ROLES.items() if role.own is not None},
    )


class Action(Part):
    """What the lab does to a server, or to a link, while the load runs."""

    model_config = ConfigDict(validate_by_name=True)

    at: Annotated[Duration, Field(ge=0, description="When, from the start of the measurement")]
    do: Annotated[
        ActionKind,
        Field(
            description="pause: freezes its processes for a time; restart: stops and starts it; stop: stops it; drain:"
            " lets its requests end for a while, then stops it; start: starts it after a stop or a drain; reload: lets"
            " it take its configuration anew; cpu: bounds its processors for a time; link: changes a link for a time;"
            " dns: lets a name lead to it from then on; filter: lets nobody connect to it for a time"
        ),
    ]
    instance: Annotated[
        Text,
        Field(description="The server, such as nginx or backend-1; of a link, its sender. cpu and link: also a client"),
    ]
    lasts: Annotated[
        Duration | None,
        Field(
            alias="for",
            description="How long a pause, cpu, link or filter lasts; how long a restart waits before it starts the"
            " server again",
        ),
    ] = None
    grace: Annotated[
        Duration | None,
        Field(ge=1_000, le=300_000, description="How long a drain or a restart lets requests under way go on"),
    ] = None
    cpus: Annotated[
        float | None, Field(ge=0.01, le=64, description="The processors that cpu leaves it: 0.25 is a quarter of one")
    ] = None
    to: Annotated[RoleName | None, Field(description="Of link: the role to which the link leads")] = None
    change: Annotated[
        Link | None,
        Field(description="Of link: what is different meanwhile, such as {loss: 20%}"),
        WithJsonSchema(_LINK),
    ] = None
    name: Annotated[HostName | None, Field(description="Of dns: the name, one of `names`")] = None
    answer: Annotated[
        FilterAnswer | None,
        Field(description="Of filter: what a client that connects gets: no answer (none), or an ICMP message"),
    ] = None


class Scenario(_WithConfigurations):
    """One experiment of the lab."""

    model_config = ConfigDict(title="connlab scenario", validate_by_name=True, json_schema_extra=_WITHOUT_SERVICES)

    format: Annotated[Literal[1], Field(alias="schema", description="The version of this format")]
    title: Annotated[Text, Field(description="The phenomenon, in a few words")]
    experiment: Annotated[Text, Field(description="Which published experiment this reproduces, such as B1")] = (
        "workshop"
    )
    question: Annotated[Text, Field(description="What the run answers")]
    path: Annotated[
        list[RoleName],
        Field(min_length=2, description="The roles from the client to the last server, such as [k6, nginx, backend]"),
        WithJsonSchema(_PATH_OF_SCENARIO),
    ]
    compose: Annotated[
        ComposeFiles | None,
        Field(description="A Compose file, or several that Compose merges: the path names services of it"),
    ] = None
    services: Services = Field(default_factory=dict)
    load: OwnLoad | None = None
    knobs: Annotated[Knobs, Field(description="What differs from the defaults")] = Knobs()
    network: Annotated[
        dict[RoleName, dict[RoleName, Link]],
        Field(description="How far roles are from each other, and what gets lost: from, then to"),
        WithJsonSchema(_NETWORK),
    ] = Field(default_factory=dict)
    names: Annotated[
        dict[HostName, Text],
        Field(
            description="Names that the lab may move: each leads to one server, such as {api: backend-1}, and the role"
            " in front reaches the servers by these names alone"
        ),
    ] = Field(default_factory=dict)
    warmup: Warmup = Warmup()
    drain: Annotated[
        Duration, Field(ge=0, le=600_000, description="How long the sockets are watched after the load")
    ] = 2_000
    actions: Annotated[list[Action], Field(description="What the lab does to servers while the load runs")] = Field(
        default_factory=list
    )
    slow: Annotated[
        Annotated[Duration, Field(ge=1)] | None, Field(description="A request slower than this must have a cause")
    ] = None
    tolerance: Tolerance = Tolerance()
    arms: Annotated[Arms | None, Field(description="Variants to compare: the scenario is then a series of runs")] = None
    presets: Annotated[
        dict[Name, Preset], Field(description="Other sizes of the scenario, such as the published one, by their names")
    ] = Field(default_factory=dict)
    predictions: Annotated[list[Prediction], Field(min_length=1, description="Each gives true, false or unknown")]
    published: Annotated[
        Published | None, Field(description="What was published, and which figures stand beside it")
    ] = None
    claim: Annotated[
        ClaimTest | None, Field(description="Which predictions decide whether the published claim holds")
    ] = None
    control: Annotated[
        Control | None, Field(description="The run without the fault, and the predictions that are true in it")
    ] = None

    @property
    def own_load(self) -> OwnLoad | None:
        """Return the load of one's own; None where the lab's workloads make it."""
        return self.load if self.load is not None and self.load.is_own else None

    @property
    def images(self) -> dict[str, str]:
        """Return the images of one's own that have a configuration's program, by role."""
        return {name: one.image for name, one in self.configurations.items() if one.image is not None}

    @property
    def configurations(self) -> dict[str, ConfigurationFile]:
        """Return the configurations of one's own, by role."""
        return {name: one for name, one in self if name in ROLES and isinstance(one, ConfigurationFile)}
