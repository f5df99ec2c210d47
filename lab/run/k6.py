"""Holds the k6 instances at the start line and lets them go together."""

from __future__ import annotations

import json
import time
from typing import Any

from lab import parallel
from lab.engines import collector
from lab.engines.protocol import Engine, Watch
from lab.errors import EngineFailed, LabError

_STATUS_URL = "http://127.0.0.1:6565/v1/status"
_POLL_S = 0.1
_READY_TIMEOUT_S = 120
# k6's lib.ExecutionStatusPausedBeforeRun: all users are initialised, and the test waits to be resumed.
_PAUSED_BEFORE_RUN = 4


def wait_ready(engine: Engine, instances: list[str], watch: Watch) -> None:
    """Wait until every instance has initialised its users and stands paused.

    Raises:
        LabError: an instance ended, or did not get there in time.
    """
    deadline = time.monotonic() + _READY_TIMEOUT_S
    waiting = list(instances)
    while True:
        ready = parallel.each(lambda one: _is_ready(engine, one), waiting)
        waiting = [instance for instance in waiting if not ready[instance]]
        if not waiting:
            return
        for instance in waiting:
            ended = watch.ended(instance)
            if ended:
                raise LabError(f"{ended} before its load:{engine.last_words(instance)}")
        if time.monotonic() > deadline:
            raise LabError(f"{', '.join(waiting)} did not initialise its users within {_READY_TIMEOUT_S} s")
        time.sleep(_POLL_S)


def _is_ready(engine: Engine, instance: str) -> bool:
    try:
        attributes = _attributes(collector.request_from(engine, instance, _STATUS_URL))
    except EngineFailed:
        return False  # its API is not up yet, or it has ended, which the caller sees
    return attributes.get("status") == _PAUSED_BEFORE_RUN and attributes.get("paused") is True


def resume(engine: Engine, instances: list[str]) -> None:
    """Start the load in all instances at once."""
    body = json.dumps({"data": {"type": "status", "id": "default", "attributes": {"paused": False}}})
    answers = parallel.each(
        lambda one: collector.request_from(engine, one, _STATUS_URL, method="PATCH", body=body), instances
    )
    for instance, answer in answers.items():
        if _attributes(answer).get("paused") is not False:
            raise LabError(f"{instance} did not start its load: {json.dumps(answer)[:200]}")


def _attributes(answer: Any) -> dict[str, Any]:  # noqa: ANN401 # JSON
    try:
        return dict(answer["data"]["attributes"])
    except (KeyError, TypeError):
        raise LabError(f"k6 answered no status: {json.dumps(answer)[:200]}") from None
