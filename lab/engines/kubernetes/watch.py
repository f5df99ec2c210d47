"""Watches a run's pods: what the cluster says of each, and which of their containers have ended."""

import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Self

from lab.engines import protocol
from lab.engines.kubernetes.kubectl import Kubectl
from lab.engines.kubernetes.objects import COLLECTOR, INSTANCE_LABEL, RUN_LABEL, instance_of, service_of
from lab.engines.programs import StreamingCommand
from lab.errors import LabError

# The API server ends a watch now and then; what it says next begins with how things stand.
_LOST_S = 30
_AGAIN_S = 0.5


class Watch(protocol.Watch):
    """The pods of a run, by their instances, as the cluster last told of them."""

    def __init__(self, kubectl: Kubectl, run_id: str) -> None:
        super().__init__()
        self._kubectl = kubectl
        self._arguments = (
            *("get", "pods", "--watch", "--output-watch-events", "--output", "json"),
            *("--selector", f"{RUN_LABEL}={run_id},{INSTANCE_LABEL}"),
        )
        self._news = threading.Condition()
        self._pods: dict[str, Mapping[str, Any]] = {}
        self._seen: set[str] = set()
        self._removed: dict[str, str] = {}
        self._events: StreamingCommand | None = None
        self._lost_since: float | None = None
        self._closed = threading.Event()
        self._reader = threading.Thread(target=self._read, name="kubernetes-pods", daemon=True)

    def __enter__(self) -> Self:
        self._events = self._kubectl.follow(*self._arguments)
        self._reader.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        if self._events:
            self._events.end()
        self._reader.join(timeout=1)

    def _read(self) -> None:
        while self._events and not self._closed.is_set():
            for event in _documents(self._events):
                self._lost_since = None
                self.take(event)
            if self._closed.is_set():
                return
            self._lost_since = self._lost_since or time.monotonic()
            self._closed.wait(_AGAIN_S)
            try:
                self._events = self._kubectl.follow(*self._arguments)
            except LabError:
                return

    def take(self, event: Mapping[str, Any]) -> None:
        """Take in what the API server says of a pod."""
        pod = event["object"]
        instance = instance_of(pod)
        with self._news:
            self._pods[instance] = pod
            for status in container_statuses(pod):
                service = service_of(instance, status["name"])
                ended = status.get("state", {}).get("terminated")
                # A container that was added is another one of the same service.
                if service and ended and (once := f"{instance}/{status['name']}") not in self._seen:
                    self._seen.add(once)
                    self.end(service, int(ended["exitCode"]), out_of_memory=ended.get("reason") == "OOMKilled")
            if event["type"] == "DELETED" or pod["metadata"].get("deletionTimestamp"):
                status = pod.get("status", {})
                self._removed[instance] = str(status.get("message") or status.get("reason") or "")
            if event["type"] == "DELETED":
                del self._pods[instance]
            self._news.notify_all()

    def await_pods(self, instances: list[str], done: Callable[[Mapping[str, Any]], bool], within_s: float) -> bool:
        """Wait until the pods of these instances are as `done` says, or anything is news for that long.

        Returns:
            Whether all are.
        """
        with self._news:
            return self._news.wait_for(
                lambda: all(one in self._pods and done(self._pods[one]) for one in instances), within_s
            )

    def pod(self, instance: str) -> Mapping[str, Any] | None:
        """Return what the cluster last said of an instance's pod; None if it has said nothing, or the pod is gone."""
        with self._news:
            return self._pods.get(instance)

    def check(self) -> None:
        """Raise LabError if the cluster has not been heard of for a while."""
        lost = self._lost_since
        if not self._reader.is_alive() or (lost is not None and time.monotonic() - lost > _LOST_S):
            raise LabError("the cluster stopped reporting its pods", hint="see 'kubectl cluster-info'")

    def ended(self, service: str) -> str | None:
        """Return how a service ended unasked, if it has; one whose pod is gone has ended."""
        said = super().ended(service)
        if said is not None:
            return said
        with self._news:
            gone = next((one for one in self._removed if service in (one, service_of(one, COLLECTOR))), None)
            if gone is None:
                return None
            why = f": {self._removed[gone]}" if self._removed[gone] else ""
        return f"the pod of {gone} was removed from the cluster{why}"


def container_statuses(pod: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return what the cluster says of a pod's own containers, and of those that were added to it."""
    status = pod.get("status", {})
    return [*status.get("containerStatuses", []), *status.get("ephemeralContainerStatuses", [])]


def _documents(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Yield the JSON documents that kubectl prints: one on a line, or over many lines, as its version has it."""
    text = ""
    for line in lines:
        text += line
        if line.rstrip() == "}" or (text == line and line.rstrip() != "{"):
            yield json.loads(text)
            text = ""
