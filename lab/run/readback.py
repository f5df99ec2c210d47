"""Reads back from the running namespaces and servers what took effect, and compares it with what was asked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from analysis.evidence.rawfiles import Places, open_raw
from lab import parallel
from lab.engine.compose import collector
from lab.errors import LabError
from lab.roles import nginx_conf
from lab.run.manifest import Listener, Manifest
from lab.scenario import foreseen, sysctls
from lab.scenario.catalogue import CATALOGUE, show_value
from lab.scenario.effective import Effective
from lab.scenario.knobs import KnobValue, Role
from lab.scenario.topology import TRAFFIC_PORT, Topology

_TOMCAT_URL = "http://127.0.0.1:8081/actuator/tomcat"
_TOMCAT_SETTINGS = {
    "backend.accept_count": "acceptCount",
    "backend.max_connections": "maxConnections",
    "backend.threads_max": "maxThreads",
    "backend.threads_min_spare": "minSpareThreads",
    "backend.keep_alive_timeout": "keepAliveTimeoutMs",
    "backend.max_keep_alive_requests": "maxKeepAliveRequests",
    "backend.connection_timeout": "connectionTimeoutMs",
    "backend.virtual_threads": "virtualThreads",
}
_GATEWAY_URL = "http://127.0.0.1:8081/gateway"
_GATEWAY_SETTINGS = {
    "gateway.max_idle_conns": "maxIdleConns",
    "gateway.max_idle_conns_per_host": "maxIdleConnsPerHost",
    "gateway.max_conns_per_host": "maxConnsPerHost",
    "gateway.idle_conn_timeout": "idleConnTimeoutMs",
    "gateway.disable_keep_alives": "disableKeepAlives",
    "gateway.dial_timeout": "dialTimeoutMs",
    "gateway.response_header_timeout": "responseHeaderTimeoutMs",
    "gateway.server_idle_timeout": "serverIdleTimeoutMs",
}
# Role → the page of its management port that tells the settings in force, and knob → its name there.
_PAGES: dict[Role, tuple[str, dict[str, str]]] = {
    "backend": (_TOMCAT_URL, _TOMCAT_SETTINGS),
    "gateway": (_GATEWAY_URL, _GATEWAY_SETTINGS),
}
_BACKLOG: dict[Role, str] = {"backend": "backend.accept_count", "nginx": "nginx.listen_backlog"}


def read_back(effective: Effective, topology: Topology, manifest: Manifest, places: Places) -> None:
    """Fill in what the namespaces and servers say, and stop the run if anything is not as asked.

    Raises:
        LabError: some knob did not take; the message names knob, asked and found, for each.
    """
    inspected = parallel.each(lambda instance: collector.inspect(instance, _sysctl_names(effective)), topology.all)
    told = [instance for instance in topology.servers if topology.role_of(instance) in _PAGES]
    answers = parallel.each(lambda instance: collector.http(instance, _PAGES[topology.role_of(instance)][0]), told)
    found = _nginx_knobs(places) if "nginx" in topology.instances else {}

    for instance, facts in inspected.items():
        manifest.addresses[instance] = facts["addresses"]
        manifest.sysctls[instance] = facts["sysctls"]
        manifest.listeners[instance] = [Listener.model_validate(one) for one in facts["listeners"]]
    if "nginx" in topology.instances:
        found["nginx.addresses"] = len(manifest.addresses["nginx"])
    mismatches = [
        *_sysctl_mismatches(effective, topology, manifest),
        *_backlog_mismatches(effective, topology, manifest),
        *(
            line
            for instance, answer in answers.items()
            for line in _compare(effective, manifest, _told_knobs(topology.role_of(instance), answer), instance)
        ),
        *_compare(effective, manifest, found, "nginx"),
    ]
    if mismatches:
        raise LabError(
            "the run was stopped before its load, because settings did not take:\n  " + "\n  ".join(mismatches)
        )


_IN_PREDICTION = re.compile(r"sysctl\.[a-z0-9_]+\.exists\.(?P<name>.+)")


def _sysctl_names(effective: Effective) -> list[str]:
    asked = {name for names in effective.scenario.knobs.kernel.values() for name in names}
    named = (name for stated in effective.predictions for name in foreseen.names_in(stated.prediction.expression))
    predicted = {match["name"] for name in named if (match := _IN_PREDICTION.fullmatch(name))}
    return sorted(asked.union(predicted, sysctls.RECORDED))


def _told_knobs(role: Role, answer: Any) -> dict[str, KnobValue]:  # noqa: ANN401 # JSON
    try:
        told = {knob: answer["settings"][setting] for knob, setting in _PAGES[role][1].items()}
    except (KeyError, TypeError) as error:
        raise LabError(f"the {role}'s management port does not tell its settings: {error} is missing") from None
    if told.get("backend.virtual_threads") is True:
        return {knob: value for knob, value in told.items() if knob not in _THREAD_POOL}
    return told


# With virtual threads Tomcat has no pool that these could bound.
_THREAD_POOL = ("backend.threads_max", "backend.threads_min_spare")


# nginx keeps no pool of connections unless it is asked to, and needs no rule for leaving out servers where there are
# none; then these have no directive.
_NOT_ALWAYS = (
    *("nginx.upstream_keepalive_timeout", "nginx.upstream_keepalive_requests"),
    *("nginx.max_fails", "nginx.fail_timeout"),
)


def _nginx_knobs(places: Places) -> dict[str, KnobValue]:
    file = places.role("nginx", "nginx.conf")
    try:
        with open_raw(file) as stream:
            text = stream.read().decode()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise LabError(f"nginx left no configuration to read back: {file}: {why}") from None
    found = {f"nginx.{knob}": value for knob, value in nginx_conf.knobs_of(text).items()}
    asked_of_it = [knob.name for knob in CATALOGUE.values() if knob.group == "nginx" and not knob.of_the_lab]
    lost = [name for name in asked_of_it if name not in (*found, *_NOT_ALWAYS)]
    if lost:
        raise LabError(f"nginx's own print of its configuration does not tell {', '.join(lost)}")
    return found


def _compare(effective: Effective, manifest: Manifest, found: Mapping[str, KnobValue], instance: str) -> Iterator[str]:
    for knob, value in found.items():
        manifest.knobs[knob].read_back = value
        if value != effective.values[knob]:
            yield _mismatch(knob, instance, effective.values[knob], value)


def _mismatch(knob: str, instance: str, asked: KnobValue, value: KnobValue) -> str:
    return f"{knob} on {instance}: asked {show_value(knob, asked)}, found {show_value(knob, value)}"


def _sysctl_mismatches(effective: Effective, topology: Topology, manifest: Manifest) -> Iterator[str]:
    for role, names in effective.scenario.knobs.kernel.items():
        for name, asked in names.items():
            knob = f"kernel.{role}.{name}"
            for instance in topology.instances[role]:
                found = manifest.sysctls[instance].get(name)
                manifest.knobs[knob].read_back = found
                as_before = found is None and sysctls.AS_BEFORE_IT_CAME.get(name) == asked
                if not as_before and (found is None or found.split() != asked.split()):
                    told = "no such sysctl" if found is None else found or "nothing in it"
                    yield f"{knob} on {instance}: asked {asked}, found {told}"


def _backlog_mismatches(effective: Effective, topology: Topology, manifest: Manifest) -> Iterator[str]:
    """Compare the kernel's own limit of each traffic listener with min(backlog, somaxconn)."""
    for role, knob in _BACKLOG.items():
        for instance in topology.instances.get(role, []):
            somaxconn = manifest.sysctls[instance].get("net.core.somaxconn")
            listeners = [one for one in manifest.listeners[instance] if one.port == TRAFFIC_PORT]
            if somaxconn is None or not listeners:
                yield f"{knob} on {instance}: the kernel shows no listener on port {TRAFFIC_PORT}"
                continue
            expected = min(int(effective.values[knob]), int(somaxconn))
            for one in listeners:
                if one.limit != expected:
                    yield f"{knob} on {instance}: the listen queue's limit should be {expected}, and is {one.limit}"
