"""What will be run: a scenario with the user's overrides, validated as a whole."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from formats.knob_types import KnobValue
from formats.manifest import Source
from formats.predictions import Claim, Published
from formats.role import Role, request_path
from lab.errors import BadInput, Problem
from lab.reading import document
from lab.reading.document import Document, Location
from lab.reading.validation_messages import (
    describe_error,
    did_you_mean,
    expected,
    list_findings,
    locate,
    name_place,
    siblings,
)
from lab.roles.configurations.parsed import Entry, WantedEntry
from lab.scenarios import generators, network, places
from lab.scenarios.configuration_files import entry_by_file
from lab.scenarios.knobs import CATALOGUE, KnownKnob, flat_values, format_knob
from lab.scenarios.load_url import LoadUrl, parse_url
from lab.scenarios.model import IpFamily, Scenario
from lab.scenarios.overrides import Override, knob_location, nearest_knob, parse_overrides, preset_overrides
from lab.scenarios.places import Place
from lab.scenarios.registry import Registry, read_registry
from lab.scenarios.services import is_service_name, may_stand_on_path


@dataclass(frozen=True)
class PlacedPrediction:
    """A prediction, and the place to cite for it."""

    prediction: Claim
    where: str


@dataclass(frozen=True)
class Variant:
    """What an arm, or a cell of a matrix, makes of a scenario.

    Attributes:
        path: its path, if it has one of its own, with the place to cite.
        predictions: those that stand in place of the scenario's.
    """

    overrides: tuple[Override, ...] = ()
    path: tuple[list[str], str] | None = None
    arm: str | None = None
    predictions: tuple[PlacedPrediction, ...] | None = None


AS_WRITTEN = Variant()
# network, from, to, knob.
_LINK_KNOB_KEYS = 4

# The kernel has the file if it has IPv6.
HAS_IPV6 = Path("/proc/net/if_inet6").exists()
# The knobs of the load that hold whatever makes it.
_OF_ANY_LOAD = ("load.workload", "load.max_duration")


@dataclass(frozen=True)
class ResolvedScenario:
    """What will be run.

    Attributes:
        values: every knob's value under its full name; durations in milliseconds.
        overrides: the preset's, the user's and the variant's; each knob stands once.
    """

    place: Place
    registry: Registry
    scenario: Scenario
    values: Mapping[str, KnobValue]
    document: Document
    overrides: tuple[Override, ...]
    variant: Variant = AS_WRITTEN
    preset: str | None = None

    @property
    def slug(self) -> str:
        """Return the name of its folder."""
        return self.place.slug

    def source(self, knob: str) -> Source:
        """Return who set a knob."""
        for override in self.overrides:
            if override.knob == knob:
                return override.source
        return "scenario" if knob_location(knob) in self.document.lines else "default"

    @property
    def predictions(self) -> list[PlacedPrediction]:
        """Return what is predicted of one run of this."""
        if self.variant.predictions is not None:
            return list(self.variant.predictions)
        return [
            PlacedPrediction(one.claim(), self.where("predictions", index, "expression"))
            for index, one in enumerate(self.scenario.predictions)
            if one.judges(self.variant.arm)
        ]

    @property
    def published(self) -> Published | None:
        """Return the figures to set beside a published result in one run; a series of arms or a matrix has its own."""
        return None if self.scenario.arms or self.variant is not AS_WRITTEN else self.scenario.published

    @property
    def url(self) -> LoadUrl | None:
        """Return where the scenario lets its load go; None for where the path's first server listens."""
        written = self.scenario.load.url if self.scenario.load else None
        return None if written is None else parse_url(written)

    @property
    def first_server(self) -> str | None:
        """Return the role that clients come to."""
        return next((name for name in self.scenario.path if self.registry.roles[name].kind != "client"), None)

    def wanted_entry(self, role: str) -> WantedEntry:
        """Return what the scenario says of where traffic enters a role."""
        written = self.scenario.configurations.get(role)
        port = written.port if written else None
        if role != self.first_server:
            return WantedEntry(port, family="ipv4")
        asked = self.scenario.load.ip_family if self.scenario.load else None
        if (url := self.url) is None:
            return WantedEntry(port, family=asked if HAS_IPV6 else "ipv4")
        family = url.family or asked
        host = url.host if url.address is None else None
        return WantedEntry(url.port, url.tls, host, family if HAS_IPV6 else "ipv4", url.written)

    @property
    def ip_family(self) -> IpFamily:
        """Return the family of the clients' addresses: over IPv6 they come if asked to, or if only that is taken."""
        first = self.first_server or ""
        if self.wanted_entry(first).family == "ipv6":
            return "ipv6"
        return "ipv6" if first in self.entries and self.entries[first].ipv6 else "ipv4"

    @cached_property
    def roles(self) -> dict[str, Role]:
        """Return the roles on the path with their declarations, each with its listener as it is configured.

        A knob says whether a role of the lab's takes TLS. A configuration of the user's own says its port, too.
        """
        found = {name: self._with_listener(self._chosen(name)) for name in self.scenario.path} | {
            name: _role_by_file(self.registry.roles[name], entry) for name, entry in self.entries.items()
        }
        # The lab follows requests through the first proxy.
        for name in [name for name in self.scenario.path if found[name].kind == "proxy"][1:]:
            found[name] = _role_between(found[name])
        if self.ip_family == "ipv6" and self.first_server:
            found[self.first_server] = found[self.first_server].model_copy(update={"ipv6": True})
        return found

    def _chosen(self, name: str) -> Role:
        """Return the declaration of a role with the program that a knob chooses."""
        role = self.registry.roles[name]
        return role.with_variant(self.values[role.knob(role.variants.knob)]) if role.variants else role

    def other_variant(self, knob: str) -> str | None:
        """Return the knob that chose a role's program, if that program does not have the knob."""
        group, _, field = knob.partition(".")
        role = next((one for one in self.registry.roles.values() if one.group == group), None)
        declared = role.knobs.get(field) if role else None
        if role is None or role.variants is None or declared is None or declared.variants is None:
            return None
        chooses = role.knob(role.variants.knob)
        return None if self.values[chooses] in declared.variants else chooses

    def _with_listener(self, role: Role) -> Role:
        knob = role.listener.tls
        return role.model_copy(update={"tls": True}) if knob and self.values[role.knob(knob)] else role

    @cached_property
    def entries(self) -> dict[str, Entry]:
        """Return where the load enters by each configuration of the user's own on the path."""
        found = {
            name: entry_by_file(self.place.home, written, self.registry.roles[name], self.wanted_entry(name))
            for name, written in self.scenario.configurations.items()
            if name in self.scenario.path
        }
        return {name: entry for name, entry in found.items() if entry is not None}

    def number(self, knob: str) -> int:
        """Return the value of a knob that is a number."""
        return int(self.values[knob])

    def asked(self) -> list[str]:
        """Return the knobs that the scenario or the user set."""
        return [knob for knob in self.values if self.source(knob) != "default"]

    @cached_property
    def on_path(self) -> Mapping[str, KnobValue]:
        """Return the knobs that have a say: all but those of roles that take no part."""
        absent = set(self.registry.roles) - set(self.scenario.path)
        return {
            knob: value
            for knob, value in self.values.items()
            if knob.split(".", 1)[0] not in absent
            and not self.left_to_load(knob)
            and not self.in_file(knob)
            and not self.other_variant(knob)
        }

    def in_files(self) -> dict[str, KnobValue]:
        """Return the knobs that configurations of the scenario's own say, with the defaults of their programs."""
        return {knob: value for knob, value in self.values.items() if self.in_file(knob)}

    def in_file(self, knob: str) -> str | None:
        """Return the scenario's own configuration that says a knob; None if the scenario itself does."""
        return self._said_in_files.get(knob)

    @cached_property
    def _said_in_files(self) -> dict[str, str]:
        """Return the scenario's own configuration of each knob that one says."""
        return {
            f"{self.registry.roles[role].group}.{name}": written.config
            for role, written in self.scenario.configurations.items()
            for name, knob in self.registry.roles[role].knobs.items()
            if knob.counts is None
        }

    def left_to_load(self, knob: str) -> bool:
        """Return whether the scenario's own script says itself what a knob of the lab's workloads does."""
        if generators.name_of(self.scenario.own_load) is not None:
            return knob.startswith("load.") and knob not in _OF_ANY_LOAD
        known = self.registry.knobs.get(knob)
        readers = known.workloads if known else None
        return self.scenario.own_load is not None and readers is not None and "script" not in readers

    def where_knob(self, knob: str) -> str:
        """Return the place to cite for a knob's value."""
        return _where(knob_location(knob), self.document, self.overrides)

    def where(self, *location: str | int) -> str:
        """Return the place to cite for another part of the scenario."""
        if location == ("path",) and self.variant.path:
            return self.variant.path[1]
        return self.document.where(location)


def _role_by_file(role: Role, entry: Entry) -> Role:
    """Return a role's declaration with what a configuration of the user's own makes of it."""
    changed: dict[str, Any] = {}
    if (entry.port, entry.tls) != (role.port, role.tls):
        changed |= {"port": entry.port, "tls": entry.tls}
    if not entry.requests:
        changed["logs"] = {file: of for file, of in role.logs.items() if not str(of).endswith("-access")}
        changed["scrape"] = {
            name: page.model_copy(
                update={"values": {one: value.model_copy(update={"log": None}) for one, value in page.values.items()}}
            )
            for name, page in role.scrape.items()
        }
    return role.model_copy(update=changed) if changed else role


def _role_between(role: Role) -> Role:
    """Return the declaration of a proxy behind another one: its log is one of a server, which asks others itself."""
    logs = {file: of for file, of in role.logs.items() if not isinstance(of, str) or of.endswith("-access")}
    return role.model_copy(update={"kind": "server", "relays": True, "logs": logs, "scrape": {}})


def load_unchecked(
    name: str,
    overrides: Iterable[str] = (),
    variant: Variant = AS_WRITTEN,
    preset: str | None = None,
    found: tuple[Override, ...] = (),
) -> ResolvedScenario:
    """Read a scenario and apply a preset, a variant and overrides (`knob=value`); each value is valid by itself.

    What the user sets goes over what the preset sets, and so does what the variant sets. Whether the whole makes sense
    is for `lab.scenarios.resolve`, which commands call. `found` is what the engine found of services that run already.

    Raises:
        BadInput: a value is not valid; all that were found are listed, with file, line and the nearest valid name.
    """
    place = places.find(name)
    parsed = document.read(place.file)
    resolved = _validate(place, parsed, (*parse_overrides(overrides), *variant.overrides), variant, found)
    if preset is None:
        return resolved
    over = {override.knob for override in resolved.overrides}
    below = (one for one in preset_overrides(resolved.scenario, parsed, preset) if one.knob not in over)
    return replace(_validate(place, parsed, (*below, *resolved.overrides), variant, found), preset=preset)


def _validate(
    place: Place,
    parsed: Document,
    overrides: tuple[Override, ...],
    variant: Variant,
    found: tuple[Override, ...],
) -> ResolvedScenario:
    if not isinstance(parsed.content, Mapping):
        raise BadInput(Problem("a scenario must be a mapping of keys to values", parsed.where(())))
    content = _with_overrides(parsed.content, (*overrides, *found))
    if variant.path:
        content["path"] = variant.path[0]
    registry, parsed = read_registry(content, parsed, place.home)
    content = _with_load(content, registry)
    try:
        scenario = registry.scenario.model_validate(content)
    except ValidationError as error:
        findings = list_findings(error)
        if any(finding["loc"][:1] == ("load",) for finding in findings):  # the path's first name may be this load's
            findings = [finding for finding in findings if finding["loc"] != ("path", 0)]
        raise BadInput([_problem(finding, registry, parsed, overrides, variant) for finding in findings]) from None
    values = {**flat_values(scenario.knobs), **network.link_values(scenario.network)}
    registry = replace(registry, knobs={**registry.knobs, **network.known_link_knobs(scenario.network)})
    return ResolvedScenario(place, registry, scenario, values, parsed, overrides, variant)


def _with_load(content: dict[str, Any], registry: Registry) -> dict[str, Any]:
    """Let a scenario that has a load of its own run that; a workload that it names besides stays, to be refused.

    The lab's workloads ask for the page of `load.url`.
    """
    knobs, asked = content.get("knobs", {}), content.get("load")
    load = knobs.get("load", {}) if isinstance(knobs, Mapping) else None
    if not isinstance(asked, Mapping) or not isinstance(load, Mapping):
        return content
    said: dict[str, Any] = {"workload": "script"}
    if not set(asked) - {"url", "ip_family"}:
        page = _page_of(asked.get("url"), content, registry)
        said = {} if page is None else {"path": page}
    return {**content, "knobs": {**knobs, "load": {**said, **load}}}


def _page_of(url: object, content: Mapping[str, Any], registry: Registry) -> str | None:
    """Return the page that a URL names; the root is one only where the scenario's own program answers."""
    path = content.get("path")
    try:
        page = parse_url(str(url)).path if url is not None else None
    except PydanticCustomError:
        return None
    names = [one for one in path if isinstance(one, str)] if isinstance(path, list) else []
    kinds = {name: role.kind for name, role in registry.roles.items()}
    answers = {*request_path(names, kinds.get)[-1:]}
    # What answers is the user's own: the lab's roles have pages of their own.
    own = answers & {*registry.services, *(name for name in answers if isinstance(content.get(name), Mapping))}
    return page or ("/" if page is not None and own else None)


def _with_overrides(content: Mapping[str, Any], overrides: tuple[Override, ...]) -> dict[str, Any]:
    changed = dict(content)
    for override in overrides:
        level = changed
        for key in override.location[:-1]:
            inner = level.get(str(key), {})
            if not isinstance(inner, dict):
                break  # the scenario is wrong here, and validation will say so
            level[str(key)] = level = dict(inner)
        else:
            level[str(override.location[-1])] = override.value
    return changed


def _problem(
    finding: ErrorDetails, registry: Registry, parsed: Document, overrides: tuple[Override, ...], variant: Variant
) -> Problem:
    location = locate(finding)
    knobs = registry.knobs
    if location[:1] == (network.KEY,) and len(location) == _LINK_KNOB_KEYS:
        knobs = network.known_link_knobs({str(location[1]): {str(location[2]): network.Link()}})
    valid = siblings(registry.scenario, location)
    what, hint = knob_sentence(finding, valid, knobs)
    if location[:1] == ("load",) and finding["type"] == "extra_forbidden":
        hint = generators.hint_for(str(location[-1]), valid) or hint
    if variant.path and location[:1] == ("path",):
        return Problem(what, variant.path[1], hint)
    return Problem(what, _where(location, parsed, overrides), hint)


def _where(location: Location, parsed: Document, overrides: tuple[Override, ...]) -> str:
    for override in overrides:
        above = override.location[: len(location)] == location and location not in parsed.lines
        if above or override.location == location:
            return override.where
    return parsed.where(location)


def name_of(location: Location) -> str:
    """Return the name of a place: a knob by its full name, another key by its way down, items from 1."""
    parts = tuple(part for part in location if part != "[key]")
    return name_place(parts[1:] if parts[:1] == ("knobs",) and len(parts) > 1 else parts) or "the scenario"


def knob_sentence(
    error: ErrorDetails, siblings: list[str], catalogue: Mapping[str, KnownKnob] = CATALOGUE
) -> tuple[str, str | None]:
    """Return what is wrong and a hint; `siblings` are the names that are valid there."""
    location, name = error["loc"], name_of(error["loc"])
    if error["type"] == "extra_forbidden" and location[0] == "knobs":
        if len(location) == len(("knobs", "group")):
            return f"unknown group of knobs '{name}'", did_you_mean(name, siblings)
        return f"unknown knob '{name}'", nearest_knob(name, catalogue)
    if error["type"] == "literal_error" and (location[-1] == "[key]" or location[0] == "path"):
        given = str(error["input"])
        if location[0] == "path" and is_service_name(given) and not may_stand_on_path(given):
            what = f"'{given}' cannot stand on the path: figures and knobs have its name, where a - would subtract"
            return what, f"name the service {given.replace('-', '')}"
        return f"unknown role '{given}'", did_you_mean(given, expected(error))
    return describe_error(error, siblings, name, lambda knob, value: format_knob(knob, value, catalogue))
