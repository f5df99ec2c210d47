"""Reads back from the running namespaces and servers what took effect, and compares it with what was asked.

Links and names that move are read back where they are set: in `links` and `dns_names`.
"""

import re
from collections.abc import Iterator, Mapping
from ipaddress import ip_address
from pathlib import Path

from analysis.evidence.rawfiles import Places
from formats.knob_types import KnobValue
from formats.manifest import Knob, Listener, Manifest, OwnProgram, listeners_of_traffic
from formats.role import Role
from formats.safe_files import open_regular
from lab import parallel
from lab.engines import protocol
from lab.engines.protocol import Engine
from lab.errors import BadInput, LabError, Problem
from lab.roles import readback_parser
from lab.roles.configurations.parsed import ParsedConfiguration
from lab.scenarios import forecast, own_configuration, sysctls
from lab.scenarios.client_addresses import client_addresses
from lab.scenarios.knobs import RoleName, format_knob
from lab.scenarios.resolved import ResolvedScenario
from lab.scenarios.topology import Topology


def read_back(
    engine: Engine, resolved: ResolvedScenario, topology: Topology, manifest: Manifest, places: Places
) -> None:
    """Fill in what the namespaces and servers say, and stop the run if anything is not as asked.

    Raises:
        BadInput: a service of the scenario's own listens on its loopback address only.
        LabError: some knob did not take; the message names knob, asked and found, for each.
    """
    inspected = parallel.each(
        lambda instance: protocol.inspect_namespace(engine, instance, _sysctl_names(resolved)), topology.all
    )
    in_files = {
        instance: _configuration_read(resolved, topology, instance, places)
        for instance in topology.all
        if topology.role_of(instance) in resolved.scenario.configurations
    }
    told = parallel.each(
        lambda instance: _settings_told(engine, topology.roles[topology.role_of(instance)], instance, places),
        [instance for instance in topology.all if instance not in in_files],
    )
    handshakes = parallel.each(
        lambda instance: _tls_told(engine, resolved, topology.roles[topology.role_of(instance)], instance),
        [
            instance
            for instance in topology.all
            if (role := topology.role_of(instance)) not in in_files and _knobs_of_tls(topology.roles[role])
        ],
    )
    for instance, facts in inspected.items():
        manifest.addresses[instance] = facts["addresses"]
        manifest.sysctls[instance] = facts["sysctls"]
        manifest.listeners[instance] = [Listener.model_validate(one) for one in facts["listeners"]]
    if unreachable := list(_unreachable_services(resolved, topology, manifest)):
        raise BadInput(unreachable)
    for instance, found in in_files.items():
        _record_configuration(resolved, manifest, topology.role_of(instance), found)
    mismatches = [
        *_sysctl_mismatches(resolved, topology, manifest),
        *_backlog_mismatches(resolved, topology, manifest),
        *(
            line
            for instance in topology.all
            for found in (
                handshakes.get(instance, {}),
                told.get(instance, {}) | _addresses(resolved, topology, instance, manifest),
            )
            for line in _compare(resolved, manifest, found, instance)
        ),
    ]
    if mismatches:
        raise LabError(
            "the run was stopped before its load, because settings did not take:\n  " + "\n  ".join(mismatches)
        )


def _unreachable_services(resolved: ResolvedScenario, topology: Topology, manifest: Manifest) -> Iterator[Problem]:
    """Return services that take connections from their own container alone; their readiness is checked from there."""
    for role in filter(resolved.registry.services.__contains__, topology.instances):
        port = topology.roles[role].port
        for instance in topology.instances[role]:
            found = {one.address for one in manifest.listeners[instance] if one.port == port}
            if found and all(ip_address(each).is_loopback for each in found):
                what = (
                    f"{instance} listens on {' and '.join(sorted(found))} port {port} alone, which no client can reach"
                )
                yield Problem(what, resolved.where("services", role, "port"), "let it listen on 0.0.0.0")


_IN_PREDICTION = re.compile(r"sysctl\.[a-z0-9_]+\.exists\.(?P<name>.+)")


def _sysctl_names(resolved: ResolvedScenario) -> list[str]:
    asked = {name for names in resolved.scenario.knobs.kernel.values() for name in names}
    named = (name for stated in resolved.predictions for name in forecast.names_in(stated.prediction.expression))
    predicted = {match["name"] for name in named if (match := _IN_PREDICTION.fullmatch(name))}
    return sorted(asked.union(predicted, sysctls.RECORDED))


def _settings_told(engine: Engine, role: Role, instance: str, places: Places) -> dict[str, KnobValue]:
    """Return the knobs that an instance tells of, by their full names."""
    try:
        if role.read_back is None:
            pages = {page: protocol.request_from(engine, instance, page) for page in readback_parser.own_pages(role)}
            found = readback_parser.parse_own_pages(role, pages)
        elif role.read_back.page is not None:
            found = readback_parser.parse_page(role, protocol.request_from(engine, instance, role.read_back.page))
        else:
            found = readback_parser.parse_file(
                role, _read_left_file(instance, places.role(instance, str(role.read_back.file)))
            )
    except readback_parser.MissingSettings as error:
        lost = ", ".join(role.knob(knob) for knob in error.knobs)
        raise LabError(f"{instance} does not report all of its settings: {lost} missing") from None
    return {role.knob(knob): value for knob, value in found.items()}


def _knobs_of_tls(role: Role) -> dict[str, str]:
    """Return the knobs of a listener of TLS that handshakes show, by what they show; none without TLS."""
    listener = role.listener
    if not role.tls or role.kind == "client":
        return {}
    named = {"oldest": listener.oldest, "newest": listener.newest, "tickets": listener.tickets, "http2": listener.http2}
    return {what: role.knob(name) for what, name in named.items() if name}


def _tls_told(engine: Engine, resolved: ResolvedScenario, role: Role, instance: str) -> dict[str, KnobValue]:
    """Return the knobs of an instance's TLS as handshakes with it show them; what they cannot show is left out."""
    knobs = _knobs_of_tls(role)
    # A program may log a handshake that it refuses, so older versions are not tried.
    shown = protocol.inspect_tls(engine, instance, role.port, str(resolved.values[knobs["oldest"]]))
    return {knob: shown[what] for what, knob in knobs.items() if shown.get(what) is not None}


def _configuration_read(
    resolved: ResolvedScenario, topology: Topology, instance: str, places: Places
) -> ParsedConfiguration:
    """Return what an instance's own configuration says, as its program read it."""
    role = topology.role_of(instance)
    left = topology.roles[role].read_back
    text = _read_left_file(instance, places.role(instance, str(left.file if left else None)))
    return own_configuration.read_configuration(resolved, topology, role, text)


def _record_configuration(
    resolved: ResolvedScenario, manifest: Manifest, name: RoleName, found: ParsedConfiguration
) -> None:
    """Put the values of a configuration into the manifest, without those that are not known."""
    role = resolved.registry.roles[name]
    image = resolved.scenario.configurations[name].image
    manifest.programs[name] = OwnProgram(image=image, version=found.version)
    manifest.roles[name] = _with_section_names(manifest.roles[name], found.called)
    if found.checks is not None or found.rules:
        update = {"checks": found.checks, "rules": found.rules}
        manifest.roles[name] = manifest.roles[name].model_copy(update=update)
    for field, setting in found.settings.items():
        if setting.value is not None:
            knob = role.knob(field)
            declared = resolved.registry.knobs[knob]
            where = [str(one) for one in setting.where]
            manifest.knobs[knob] = Knob(
                value=setting.value,
                default=declared.default,
                source="file",
                unit=declared.unit,
                read_back=setting.value,
                where=where,
            )


def _with_section_names(role: Role, called: Mapping[str, str]) -> Role:
    """Return a declaration whose pages have the rows of a configuration's own sections."""
    pages = {}
    for name, page in role.scrape.items():
        values = {}
        for one, value in page.values.items():
            places = {"at": value.at, "minus": value.minus}
            values[one] = value.model_copy(
                update={key: _with_section_name(at, called) for key, at in places.items() if at is not None}
            )
        pages[name] = page.model_copy(update={"values": values})
    return role.model_copy(update={"scrape": pages}) if pages else role


def _with_section_name(at: str, called: Mapping[str, str]) -> str:
    section, slash, rest = at.partition("/")
    return f"{called.get(section, section)}{slash}{rest}"


def _read_left_file(instance: str, file: Path) -> str:
    try:
        with open_regular(file) as stream:
            return stream.read().decode()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise LabError(f"{instance} left no settings to read back: {file}: {why}") from None


def _addresses(
    resolved: ResolvedScenario, topology: Topology, instance: str, manifest: Manifest
) -> dict[str, KnobValue]:
    """Return the knob that counts an instance's addresses, as the namespace has them: those by which clients come."""
    role = topology.roles[topology.role_of(instance)]
    counting = role.counting("addresses")
    of_clients = {str(one.ip) for one in client_addresses(resolved, topology).of_instances.get(instance, [])}
    found = set(manifest.addresses[instance])
    return {role.knob(counting): len(found & of_clients if role.ipv6 else found - of_clients)} if counting else {}


def _compare(
    resolved: ResolvedScenario, manifest: Manifest, found: Mapping[str, KnobValue], instance: str
) -> Iterator[str]:
    for knob, value in found.items():
        manifest.knobs[knob].read_back = value
        if value != resolved.values[knob]:
            asked, read = (format_knob(knob, each, resolved.registry.knobs) for each in (resolved.values[knob], value))
            yield f"{knob} on {instance}: asked {asked}, found {read}"


def _sysctl_mismatches(resolved: ResolvedScenario, topology: Topology, manifest: Manifest) -> Iterator[str]:
    for role, names in resolved.scenario.knobs.kernel.items():
        for name, asked in names.items():
            knob = f"kernel.{role}.{name}"
            for instance in topology.instances[role]:
                found = manifest.sysctls[instance].get(name)
                manifest.knobs[knob].read_back = found
                as_before = found is None and sysctls.AS_BEFORE_IT_CAME.get(name) == asked
                if not as_before and (found is None or found.split() != asked.split()):
                    told = "no such sysctl" if found is None else found or "nothing in it"
                    yield f"{knob} on {instance}: asked {asked}, found {told}"


def _backlog_mismatches(resolved: ResolvedScenario, topology: Topology, manifest: Manifest) -> Iterator[str]:
    """Compare the kernel's own limit of each traffic listener with min(backlog, somaxconn)."""
    for role, instances in topology.instances.items():
        backlog = topology.roles[role].limits.backlog
        if backlog is None:
            continue
        knob = topology.roles[role].knob(backlog)
        # A configuration may leave it to the program.
        if knob not in manifest.knobs:
            continue
        asked = int(manifest.knobs[knob].value or 0)
        for instance in instances:
            somaxconn = manifest.sysctls[instance].get("net.core.somaxconn")
            listeners = listeners_of_traffic(
                manifest.listeners[instance], topology.roles[role].port, ipv6=topology.roles[role].ipv6
            )
            if somaxconn is None or not listeners:
                yield f"{knob} on {instance}: the kernel shows no listener on port {topology.roles[role].port}"
                continue
            expected = min(asked, int(somaxconn))
            for one in listeners:
                if one.limit != expected:
                    what = f"{knob} on {instance}: the listen queue's limit should be {expected}, and is {one.limit}"
                    yield f"{what}{_service_note(resolved, role, backlog)}"


def _service_note(resolved: ResolvedScenario, role: RoleName, field: str) -> str:
    """Return where a service's knob stands, and what its program may not do."""
    service = resolved.registry.services.get(role)
    if service is None:
        return ""
    where, variable = resolved.where("services", role, "knobs", field), service.knobs[field].env
    return f" ({where}" + (f"; does the program read {variable}?)" if variable else "; its program has another)")
