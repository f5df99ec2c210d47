"""From nothing to pods that are ready, and what lies behind it if they are not."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lab import parallel
from lab.engines import bounds, start_failures
from lab.engines.kubernetes import objects, trouble
from lab.engines.kubernetes.kubectl import Kubectl
from lab.engines.kubernetes.names import HOLD, pod_name
from lab.engines.kubernetes.objects import Images
from lab.engines.kubernetes.watch import Watch
from lab.engines.protocol import Parts
from lab.errors import BadInput, LabError
from lab.scenarios.topology import collector_of

_WAIT_S = 300
_LOOK_S = 3
# A cluster that grows by itself takes longer to have a new node; the lab does not wait for that.
_UNSCHEDULABLE_S = 20


@dataclass(frozen=True)
class Start:
    """The start of one run.

    Attributes:
        images: where they come from.
        last_words: gives the end of what a service said.
        spread: whether roles are to be on nodes of their own.
        metrics: the port on which each collector serves its current figures; None if none does.
    """

    kubectl: Kubectl
    parts: Parts
    watch: Watch
    images: Images
    last_words: Callable[[str], str]
    spread: bool
    metrics: int | None

    def start(self) -> None:
        """Start everything and wait for it.

        Roles come in the order from the last of the path to the first: a pod is told the addresses of those behind it.

        Raises:
            BadInput: the cluster or a node's kernel refuses a sysctl.
            LabError: a pod failed.
        """
        parts, topology = self.parts, self.parts.topology
        self.kubectl.create((self._pod(one, None, {}) for one in topology.all), "--dry-run=server")
        deadline_s = bounds.compute_deadline_s(parts.effective)
        job = self.kubectl.create([objects.build_owner(parts.run_id, self.images, deadline_s)])[0]
        owned = objects.build_owner_reference(job)
        self.kubectl.create([objects.build_network_policy(parts.run_id, owned, self.metrics)])
        hosts: dict[str, str] = {}
        for role in reversed(topology.instances):
            instances = topology.instances[role]
            self.kubectl.create([self._pod(one, owned, hosts) for one in instances])
            self._await(instances, _has_address)
            hosts |= {one: _address(self.watch.pod(one)) for one in instances}
        self._await(topology.all, _is_ready)
        self._fetch_settings()

    def _pod(self, instance: str, owned: Mapping[str, Any] | None, hosts: Mapping[str, str]) -> dict[str, Any]:
        return objects.build_pod(
            self.parts, instance, self.images, owned=owned, hosts=hosts, spread=self.spread, metrics_port=self.metrics
        )

    def _await(self, instances: list[str], done: Callable[[Mapping[str, Any]], bool]) -> None:
        begun = time.monotonic()
        while not self.watch.await_pods(instances, done, _LOOK_S):
            self.watch.check()
            self.refuse_ended()
            waited_s = time.monotonic() - begun
            for problem in self._problems(instances, waited_s):
                raise problem
            if waited_s > _WAIT_S:
                late = [one for one in instances if not done(self.watch.pod(one) or {})]
                what = f"{', '.join(late)} was not ready within {_WAIT_S} s"
                raise LabError(f"{what}{self.last_words(late[0])}")

    def refuse_ended(self) -> None:
        """Raise LabError if a container of the run has ended."""
        for instance in self.parts.topology.all:
            for service in (instance, collector_of(instance)):
                if ended := self.watch.ended(service):
                    pod = self.watch.pod(instance)
                    cannot = trouble.find_pod_problem(pod, self.parts.effective) if pod else None
                    raise cannot or start_failures.ended_during_start(ended, self.last_words(service))

    def _problems(self, instances: list[str], waited_s: float) -> Iterator[BadInput | LabError]:
        for instance in instances:
            pod = self.watch.pod(instance)
            if pod is None:
                continue
            found = trouble.find_pod_problem(pod, self.parts.effective)
            if found is None and waited_s > _UNSCHEDULABLE_S:
                found = trouble.find_scheduling_problem(pod)
            if found:
                yield found
            if not _has_address(pod):
                yield from trouble.read_warnings(self.kubectl, pod["metadata"]["name"], self.parts.effective)

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
