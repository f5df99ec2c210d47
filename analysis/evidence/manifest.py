"""Reads manifest.json: what was run, with which settings, and when.

Only what tells one run from another is required. A run that ended early has a manifest with holes, and what stands in
it still counts; fields that a later minor version adds are passed over.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from analysis.evidence import roles
from analysis.evidence.roles import TRAFFIC_PORT, Role
from formats import owner
from formats.field_types import (
    MS_MAX,
    Count,
    ExitCode,
    Instance,
    KnobName,
    Ms,
    Named,
    Number,
    Port,
    Scalar,
    SeriesId,
    Us,
)
from formats.safe_open import read_regular
from formats.sanitize import format_validation_error

FILE = "manifest.json"
SCHEMA = "connlab.manifest/1"
_KILLED = "the lab's process ended without a word (killed, or the machine went down)"


class ManifestError(Exception):
    """There is no usable manifest: the folder is not a run's, or the file is broken or of another version."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)


class Knob(_Part):
    """The value of one knob; durations in ms. `source` is who set it, `where` the lines of a file that did."""

    value: Scalar | None
    source: str | None = None
    where: list[str] | None = None


class Phase(_Part):
    """A phase of the run, Unix epoch in µs, and by the monotonic clock, if known; it has no end while it lasts."""

    name: str
    start_us: Us
    end_us: Us | None = None
    start_mono_us: Us | None = None
    end_mono_us: Us | None = None


class Action(_Part):
    """What the lab did to a server in the measurement; Unix epoch in µs, None for what did not come about.

    `down_us` is when the server had ended, `end_us` when the action was over: the server ran on, or was ready again.
    """

    do: str
    instance: Instance
    start_us: Us | None = None
    down_us: Us | None = None
    end_us: Us | None = None
    exit_code: ExitCode | None = None

    @property
    def ends_it(self) -> bool:
        """Whether the server's process ended, and all that it counted with it."""
        return self.do in ("restart", "stop")


class Prediction(_Part):
    """What the scenario expects: an id, a sentence, the expression that decides, and the settings that it is about."""

    id: str
    says: str
    expression: str
    when: str | None = None


class Published(_Part):
    """What was published, None for a workshop's own scenario, and figures beside it: expressions by their names.

    `there` has the published number of some of them.
    """

    says: str | None = None
    here: dict[str, str]
    there: dict[str, float] = {}


class Host(_Part):
    """The machine; `cpus` counts its processors. Whatever else stands there is one value each, which pages show."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Scalar | None]

    cpus: Annotated[Count, Field(gt=0)] | None = None


class Removed(_Part):
    """A raw file that was not a plain file when its container had ended; the lab removed it."""

    file: str
    was: str


class Listener(_Part):
    """A listening socket at the time of the read-back; the limit of its queue in connections."""

    port: Port
    limit: Count


class Tolerance(_Part):
    """What a run may leave open; None where the manifest does not say."""

    unexplained: Count | None = None
    evidence_share: Annotated[float, Field(gt=0, le=1)] = 0.8


class Program(_Part):
    """A server that the lab knows: who asks the kernel for its accept queue, by which setting, and by whose word.

    `setting` is None where a program has none; `backlog` is what it asks for by default, None where that depends.
    """

    name: str
    backlog: Count | None = None
    setting: str | None = None
    how: str | None = None
    source: str | None = None


class Target(_Part):
    """What one collector watched; `peer`: it stands beside a client of the others."""

    instance: Instance
    kind: str
    name: str
    program: Program | None = None
    peer: bool = False
    ended: bool = False


class Observed(_Part):
    """A system that the lab did not start; None as `connect_timeout_ms`: nobody said how long its clients wait."""

    targets: list[Target]
    capture: str
    connect_timeout_ms: Annotated[Ms, Field(gt=0)] | None = None


class Guess(_Part):
    """What somebody expected of a figure, told before the run; None if they passed it over."""

    prediction: str
    figure: str
    asks: str
    unit: str
    value: Number | None


class Look(_Part):
    """A look of the lab at an instance's clock; Unix epoch in µs: asked and told by the lab's clock, shown by its."""

    instance: Instance
    asked_us: Us
    shown_us: Us
    told_us: Us


class Manifest(_Part):
    """The part of manifest.json that the analysis reads; docs/data-format.md describes all of it."""

    contract: Annotated[Literal["connlab.manifest/1"], Field(alias="schema")]
    scenario: Named
    run: Named
    series: SeriesId | None = None
    cell: Named = "default"
    preset: Named | None = None
    by_set: bool = True
    status: Literal["running", "complete", "aborted", "failed"]
    reason: str | None = None
    title: str | None = None
    question: str | None = None
    folder: str | None = None
    command: list[str] = []
    started: str = ""
    git: dict[str, Scalar | None] = {}
    lab: dict[str, Scalar | None] = {}
    images: dict[str, str] = {}
    host: Host = Host()
    path: list[Named] = []
    roles: dict[Named, Role] = {}
    instances: dict[Named, list[Instance]] = {}
    addresses: dict[Instance, list[str]] = {}
    nodes: dict[Instance, Named] = {}
    clocks: list[Look] = []
    knobs: dict[KnobName, Knob] = {}
    sysctls: dict[str, dict[str, str | None]] = {}
    listeners: dict[str, list[Listener]] = {}
    metrics_port: Count | None = None
    phases: list[Phase] = []
    actions: list[Action] = []
    exits: dict[str, ExitCode | None] = {}
    removed: list[Removed] = []
    slow_ms: Annotated[Ms, Field(gt=0)] | None = None
    tolerance: Tolerance = Tolerance()
    predictions: list[Prediction] = []
    published: Published | None = None
    guesses: list[Guess] = []
    observed: Observed | None = None
    profile: dict[str, Annotated[float, Field(ge=0, le=MS_MAX)]] | None = None

    @model_validator(mode="after")
    def _begins_at_a_client(self) -> Manifest:
        """A run that ended before its path was known has none; what was observed where it ran has none either."""
        first = next(iter(self.request_path), None)
        lacks = self.status == "complete" if first is None else self.kind_of(first) != "client"
        if lacks and self.observed is None:
            raise ValueError("path does not begin at a client")
        return self

    @model_validator(mode="after")
    def _has_each_prediction_once(self) -> Manifest:
        ids = [one.id for one in self.predictions]
        if twice := next((one for one in ids if ids.count(one) > 1), None):
            raise ValueError(f"predictions has the id {twice!r} twice")
        return self

    def of_role(self, role: str) -> list[str]:
        """The instances of a role, none if it takes no part."""
        return self.instances.get(role, [])

    def kind_of(self, role: str) -> str | None:
        """Client, proxy or server; None for a role that nothing declares."""
        return self.roles[role].kind if role in self.roles else None

    @property
    def origin(self) -> str | None:
        """The role that answers the requests; None for what was observed where it ran, which has no path."""
        return next(reversed(self.request_path), None)

    @property
    def request_path(self) -> list[str]:
        """The roles that carry requests, from the client to the one that answers."""
        return roles.request_path(self.path, self.kind_of)

    def port_of(self, instance: str) -> int:
        """Where an instance takes its traffic."""
        ports = (role.port for name, role in self.roles.items() if instance in self.of_role(name))
        return next(ports, TRAFFIC_PORT)

    @property
    def proxies(self) -> list[str]:
        """The instances of the proxy, none on a direct path."""
        return [
            instance for name, role in self.roles.items() if role.kind == "proxy" for instance in self.of_role(name)
        ]

    def logged(self, formats: Collection[str]) -> list[tuple[str, str, str]]:
        """The instances that write a log in one of these formats, each with the log's file and format."""
        return [
            (instance, file, of)
            for name, role in self.roles.items()
            for file, of in role.logs.items()
            if of in formats
            for instance in self.of_role(name)
        ]

    def ends_of(self, instance: str) -> list[Action]:
        """The restarts and stops of a server that were begun."""
        return [each for each in self.actions if each.instance == instance and each.ends_it and each.start_us]

    def sysctl(self, instance: str, name: str) -> str | None:
        """A sysctl as read back in an instance's namespace; None if it was not read or the kernel has none."""
        return self.sysctls.get(instance, {}).get(name)


def read(run_dir: Path) -> Manifest:
    """Return the manifest of a run folder; raise ManifestError with one line for the user.

    A manifest that says `running` of a run whose process was killed is read as one that was aborted.
    """
    path = run_dir / FILE
    for place in ("raw", "raw/*", "raw/*/*"):
        if link := next((found for found in run_dir.glob(place) if found.is_symlink() and found.is_dir()), None):
            raise ManifestError(f"{link}: {link.relative_to(run_dir)} is a link; a run has all of its files itself")
    try:
        text = read_regular(path)
    except FileNotFoundError:
        raise ManifestError(f"{run_dir}: no {FILE} here; this is not a run's folder") from None
    except OSError as error:
        raise ManifestError(f"{path}: {error.strerror}") from None
    try:
        found = Manifest.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        if first["loc"] == ("schema",) and first["type"] == "literal_error":
            version = f"its schema is {first['input']}, and this version reads {SCHEMA}"
            raise ManifestError(f"{path}: {version}; use the version of connlab that made the run") from None
        raise ManifestError(f"{path}: {format_validation_error(error)}") from None
    if found.status == "running" and owner.is_gone(run_dir):
        return found.model_copy(update={"status": "aborted", "reason": _KILLED})
    return found


def read_whole(run_dir: Path) -> dict[str, Any]:
    """The same as JSON, also with what the analysis has no use for, and all that it has; raise ManifestError."""
    found = read(run_dir)
    unset = found.model_dump(mode="json", by_alias=True, include=Manifest.model_fields.keys() - found.model_fields_set)
    return {**unset, **json.loads(read_regular(run_dir / FILE)), "status": found.status, "reason": found.reason}
