"""Actions: what the lab does to a server while the load runs, at the times that the scenario states."""

from __future__ import annotations

import threading
import time
from typing import Self

from formats.manifest import ActionRecord
from lab.engines import collector
from lab.engines.protocol import Watch
from lab.errors import LabError
from lab.runs.session import Session

_READY_S = 90
_EVENT_S = 5
_ABORT_S = 30


class Actions:
    """The actions of a run: each is done on a thread of its own, and writes down when it really was.

    As a context it sees to it that nothing goes on, and no server stays paused, when the measurement breaks off.
    """

    def __init__(self, session: Session, watch: Watch) -> None:
        measure = session.manifest.phases[-1]
        begun_ago_s = time.time() - measure.start_us / 1e6
        self._zero = time.monotonic() - begun_ago_s
        self._engine = session.engine
        self._watch = watch
        self._broken_off = threading.Event()
        self._errors: list[LabError] = []
        self._records = session.manifest.actions
        self._threads = [
            threading.Thread(target=self._act, args=(record,), name=f"action-{number}", daemon=True)
            for number, record in enumerate(self._records, start=1)
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._broken_off.set()
        for thread in self._threads:
            thread.join(_ABORT_S)

    def check(self) -> None:
        """Raise LabError if an action failed."""
        if self._errors:
            raise self._errors[0]

    def settle(self) -> str | None:
        """Wait, after the load, for actions that are under way; return a message about one that never began.

        Raises:
            LabError: an action failed.
        """
        missed = [one for one in self._records if one.start_us is None]
        for record, thread in zip(self._records, self._threads, strict=True):
            if record not in missed:
                thread.join()
        self.check()
        return f"the load had ended before it was time to {_shown(missed[0])}" if missed else None

    def _act(self, record: ActionRecord) -> None:
        if self._broken_off.wait(max(0.0, self._zero + record.at_ms / 1000 - time.monotonic())):
            return
        record.start_us = _now_us()
        try:
            {"pause": self._pause, "restart": self._restart, "stop": self._stop}[record.do](record)
        except LabError as error:
            self._errors.append(LabError(f"the lab could not {_shown(record)}: {error}"))
        else:
            record.end_us = _now_us()

    def _pause(self, record: ActionRecord) -> None:
        self._engine.pause(record.instance)
        self._wait(record)
        self._engine.resume(record.instance)

    def _restart(self, record: ActionRecord) -> None:
        self._stop(record)
        if self._wait(record):
            return
        self._watch.expect(record.instance, end=False)
        self._engine.start_again(record.instance)
        collector.await_ready(self._engine, record.instance, _READY_S)

    def _stop(self, record: ActionRecord) -> None:
        self._watch.expect(record.instance, end=True)
        self._engine.stop([record.instance])
        record.down_us = _now_us()
        record.exit_code = self._exit_code(record.instance)

    def _exit_code(self, instance: str) -> int:
        """Return what the engine told of the end; its word may come a moment after the stop."""
        deadline = time.monotonic() + _EVENT_S
        while (code := self._watch.expected_exit_code(instance)) is None:
            if time.monotonic() > deadline:
                raise LabError(f"the engine did not tell of its end within {_EVENT_S} s")
            time.sleep(0.01)
        return code

    def _wait(self, record: ActionRecord) -> bool:
        """Wait for as long as the action lasts; True if the measurement broke off."""
        return self._broken_off.wait((record.for_ms or 0) / 1000)


def _shown(record: ActionRecord) -> str:
    return f"{record.do} {record.instance} ({record.at_ms / 1000:g} s after the start)"


def _now_us() -> int:
    return time.time_ns() // 1000
