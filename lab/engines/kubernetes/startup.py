"""From nothing to pods that are ready, and what lies behind it if they are not."""

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lab import parallel
from lab.engines.container_settings import compute_deadline_s
from lab.engines.kubernetes import objects
from lab.engines.kubernetes.kubectl import Kubectl
from lab.engines.kubernetes.objects import COLLECTOR, HOLD, pod_name
from lab.engines.kubernetes.pod_problems import (
    UNSCHEDULABLE_S,
    find_pod_problem,
    find_scheduling_problem,
    read_warnings,
)
from lab.engines.kubernetes.pods import Pods
from lab.engines.kubernetes.running_pods import RunningPods
from lab.engines.kubernetes.watch import Watch
from lab.engines.protocol import Parts
from lab.engines.start_failures import ended_during_start, ipv6_hint, missing_listener
from lab.errors import BadInput, LabError
from lab.scenarios.topology import collector_of

_WAIT_S = 300
_LOOK_S = 3


@dataclass(frozen=True)
class Start:
    """The start of one run."""

    kubectl: Kubectl
    pods: Pods
    watch: Watch
    last_words: Callable[[str], str]
    running: RunningPods

    @property
    def parts(self) -> Parts:
        """Return the parts of the run."""
        return self.pods.parts

    def start(self) -> None:
        """Start everything and wait for it.

        Servers start before the pods that call them: a pod gets the addresses of the pods that already run.

        Raises:
            BadInput: the cluster or a node's kernel refuses a sysctl.
            LabError: a pod failed.
        """
        parts, topology, pods = self.parts, self.parts.topology, self.pods
        self.kubectl.create((pods.build(one, owned=None, hosts={}) for one in pods.names), "--dry-run=server")
        deadline_s = compute_deadline_s(parts.resolved)
        (job,) = self.kubectl.create([objects.build_owner(parts.run_id, pods.images, deadline_s)])
        owned = {"apiVersion": "batch/v1", "kind": "Job", **{key: job["metadata"][key] for key in ("name", "uid")}}
        policy = objects.build_network_policy(parts.run_id, owned, self.running.selectors, pods.metrics)
        self.kubectl.create([policy, *pods.config_maps(owned)])
        self.running.join(parts, apart=pods.spread)
        hosts = {address: topology.host_names(one) for one, address in self.running.addresses.items()}
        for names in pods.order():
            made = pods.container(names[0])
            awaited = [*made.after, *made.after_listeners]
            others = [one for role in awaited for one in topology.instances.get(role, [role])]
            self._await([one for one in others if one in pods.names], self._is_ready)
            self.kubectl.create([pods.build(one, owned=owned, hosts=hosts) for one in names])
            self._await(names, _has_address)
            hosts |= {_address(self.watch.pod(one)): self._host_names(one) for one in names}
        self._await(pods.names, self._is_ready)
        self._fetch_settings()

    def _host_names(self, name: str) -> list[str]:
        topology, own = self.parts.topology, self.parts.resolved.registry.services
        return [name, *own[name].aliases] if name in topology.needed else topology.host_names(name)

    def _completes(self, name: str) -> bool:
        own = self.parts.resolved.registry.services.get(name)
        return own is not None and own.completes

    def _is_ready(self, pod: Mapping[str, Any]) -> bool:
        """Return whether a pod is ready, or has ended in order if it is to."""
        if self._completes(objects.instance_of(pod)):
            return bool(pod.get("status", {}).get("phase") == "Succeeded")
        return _is_ready(pod)

    def _wait_s(self, instances: list[str]) -> float:
        """Return how long to wait: what the scenario gives its own services, where it is about them."""
        own = self.parts.resolved.registry.services
        roles = {self.pods.role_of(one) for one in instances}
        return max(_WAIT_S, sum(own[role].ready_within for role in roles if role in own) / 1000)

    def _await(self, instances: list[str], done: Callable[[Mapping[str, Any]], bool]) -> None:
        begun, within_s = time.monotonic(), self._wait_s(instances)
        while not self.watch.await_pods(instances, done, _LOOK_S):
            self.watch.check()
            self.refuse_ended()
            waited_s = time.monotonic() - begun
            for problem in self._problems(instances, waited_s):
                raise problem
            if waited_s > within_s:
                late = next(one for one in instances if not done(self.watch.pod(one) or {}))
                what = f"{late} was not ready within {within_s:g} s"
                raise LabError(f"{what}{self.last_words(late)}", hint=self._what_listens(late))

    def _what_listens(self, late: str) -> str | None:
        """Return what listens in the pod of a service whose port nobody listens on."""
        topology, own = self.parts.topology, self.parts.resolved.registry.services
        if late not in topology.all or topology.role_of(late) not in own:
            return None
        with contextlib.suppress(LabError, ValueError, KeyError):
            asked = ("exec", pod_name(self.parts.run_id, late), "--container", COLLECTOR, "--", "collector", "inspect")
            port, found = topology.port_of(late), json.loads(self.kubectl(*asked))["listeners"]
            pages = str(topology.roles[topology.role_of(late)].ready).startswith("http")
            return missing_listener(late, port, found) or (None if pages else ipv6_hint(port, found))
        return None

    def refuse_ended(self) -> None:
        """Raise LabError if a container of the run has ended that is to stay."""
        topology, resolved = self.parts.topology, self.parts.resolved
        services = [(one, service) for one in topology.all for service in (one, collector_of(one))]
        for name, service in [*((one, one) for one in topology.needed), *services]:
            ended = self.watch.ended(service)
            if ended is None or (self._completes(name) and self.watch.exit_code(name) == 0):
                continue
            pod, role = self.watch.pod(name), self.pods.role_of(name)
            cannot = find_pod_problem(pod, resolved) if pod else None
            where = resolved.where("services", role) if role in resolved.registry.services else None
            raise cannot or ended_during_start(ended, self.last_words(service), where)

    def _problems(self, instances: list[str], waited_s: float) -> Iterator[BadInput | LabError]:
        for instance in instances:
            pod = self.watch.pod(instance)
            if pod is None:
                continue
            found = find_pod_problem(pod, self.parts.resolved)
            if found is None and waited_s > UNSCHEDULABLE_S:
                found = find_scheduling_problem(pod)
            if found:
                yield found
            if not _has_address(pod):
                yield from read_warnings(self.kubectl, pod["metadata"]["name"], self.parts.resolved)

    def _fetch_settings(self) -> None:
        """Bring the files out in which servers leave their settings: they are read back before the load."""
        topology = self.parts.topology
        named = [
            (instance, left.file)
            for instance in topology.all
            if (left := topology.roles[topology.role_of(instance)].read_back) and left.file
        ]

        def fetch(one: tuple[str, str]) -> None:
            instance, file = one
            source = f"{pod_name(self.parts.run_id, instance)}:/raw/role/{file}"
            self.kubectl("cp", "--container", HOLD, source, str(self.parts.places.role(instance, file)))

        parallel.each(fetch, named)


def _address(pod: Mapping[str, Any] | None) -> str:
    return str((pod or {}).get("status", {}).get("podIP", ""))


def _has_address(pod: Mapping[str, Any]) -> bool:
    return bool(_address(pod))


def _is_ready(pod: Mapping[str, Any]) -> bool:
    conditions = pod.get("status", {}).get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
