"""The actions of a run: what a scenario does to servers and to the path while the load goes on.

A packet filter stands in a server's namespace for a while: its collector lets nobody connect, and reads the rule back.
"""

import math
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Self

from formats.manifest import BESIDE_SERVERS, ActionRecord
from lab.engines import protocol
from lab.engines.protocol import Watch, ask_collector
from lab.errors import EngineFailed, LabError
from lab.runs import dns_names, links
from lab.runs.run_context import RunContext

# Until the server is ready again, until the engine told of its end, until its thread has ended.
_READY_S = 90
_EVENT_S = 5
_ABORT_S = 30
_END_SPARE_S = 5


class Actions:
    """The actions of a run: each is done on a thread of its own, and writes down when it really was.

    As a context it sees to it that nothing goes on, and no server stays paused, when the measurement breaks off.
    """

    def __init__(self, context: RunContext, watch: Watch) -> None:
        measure = context.manifest.phases[-1]
        begun_ago_s = time.time() - measure.start_us / 1e6
        self._zero = time.monotonic() - begun_ago_s
        self._engine = context.engine
        self._watch = watch
        self._broken_off = threading.Event()
        self._errors: list[LabError] = []
        self._records = context.manifest.actions
        self._threads = [
            threading.Thread(target=self._act, args=(record,), name=f"action-{number}", daemon=True)
            for number, record in enumerate(self._records, start=1)
        ]
        self._roles = {one: context.topology.roles[context.topology.role_of(one)] for one in context.topology.all}
        self._links = partial(links.change_link, context)
        self._names = partial(dns_names.move_name, context)
        self._filters = partial(_set_filter, context)

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
        due_s = time.monotonic() - self._zero
        # One whose time has come may wait for what came before on the same server.
        missed = [one for one in self._records if one.start_us is None and one.at_ms / 1000 > due_s]
        for record, thread in zip(self._records, self._threads, strict=True):
            if record not in missed:
                thread.join()
        self.check()
        return f"the load had ended before it was time to {_shown(missed[0])}" if missed else None

    def _act(self, record: ActionRecord) -> None:
        if self._broken_off.wait(max(0.0, self._zero + record.at_ms / 1000 - time.monotonic())):
            return
        self._await_earlier(record)
        record.start_us = _now_us()
        try:
            self._deeds[record.do](record)
        except LabError as error:
            self._errors.append(LabError(f"the lab could not {_shown(record)}: {error}"))
        else:
            record.end_us = _now_us()

    @property
    def _deeds(self) -> dict[str, Callable[[ActionRecord], None]]:
        return {
            "pause": self._pause,
            "restart": self._restart,
            "stop": self._stop,
            "drain": self._stop,
            "start": self._start,
            "reload": self._reload,
            "cpu": self._limit_cpus,
            "link": partial(self._change_and_back, self._links),
            "dns": self._names,
            "filter": partial(self._change_and_back, self._filters),
        }

    def _await_earlier(self, record: ActionRecord) -> None:
        """Wait for what came before on the same server: an orderly end may take longer than its grace."""
        for other, thread in zip(self._records, self._threads, strict=True):
            if other.instance == record.instance and other.at_ms < record.at_ms and other.do not in BESIDE_SERVERS:
                thread.join()

    def _pause(self, record: ActionRecord) -> None:
        self._engine.pause(record.instance)
        self._wait(record)
        self._engine.resume(record.instance)

    def _restart(self, record: ActionRecord) -> None:
        self._stop(record)
        if not self._wait(record):
            self._start(record)

    def _start(self, record: ActionRecord) -> None:
        self._watch.expect(record.instance, end=False)
        self._engine.start_again(record.instance)
        protocol.await_ready(self._engine, record.instance, _READY_S)

    def _reload(self, record: ActionRecord) -> None:
        reload = self._roles[record.instance].reload
        if reload is None:
            raise LabError("its role does not declare how it is reloaded")
        # The old processes answer until the new ones do, so there is nothing to wait for.
        self._engine.signal(record.instance, reload.signal)

    def _limit_cpus(self, record: ActionRecord) -> None:
        before = self._engine.limit_cpus(record.instance, record.cpus)
        self._wait(record)
        try:
            after = self._engine.limit_cpus(record.instance, None)
        except EngineFailed:
            # A client may come to its end first, and its limit and what its kernel counted with it.
            if self._await_end(self._watch.exit_code, record.instance) is None:
                raise
            return
        if before is not None and after is not None:
            record.throttled_periods = after.throttled_periods - before.throttled_periods
            record.throttled_us = after.throttled_us - before.throttled_us

    def _change_and_back(self, change: Callable[..., None], record: ActionRecord) -> None:
        change(record)
        self._wait(record)
        change(record, back=True)

    def _stop(self, record: ActionRecord) -> None:
        self._watch.expect(record.instance, end=True)
        if record.grace_ms is None:
            self._engine.stop([record.instance])
        else:
            # A program with a grace of its own cuts its requests off when that is over, and needs a moment more to end.
            spare_s = _END_SPARE_S if self._roles[record.instance].grace else 0
            self._engine.stop([record.instance], math.ceil(record.grace_ms / 1000) + spare_s)
        record.down_us = _now_us()
        record.exit_code = self._await_end(self._watch.expected_exit_code, record.instance)
        if record.exit_code is None:
            raise LabError(f"the engine did not report its end within {_EVENT_S} s")

    def _await_end(self, told: Callable[[str], int | None], instance: str) -> int | None:
        """Return the exit code of an instance that ended; the engine may tell of it late. None if it does not."""
        deadline = time.monotonic() + _EVENT_S
        while (code := told(instance)) is None and time.monotonic() <= deadline:
            time.sleep(0.01)
        return code

    def _wait(self, record: ActionRecord) -> bool:
        """Wait for as long as the action lasts; True if the measurement broke off."""
        return self._broken_off.wait((record.for_ms or 0) / 1000)


def _shown(record: ActionRecord) -> str:
    return f"{record.words} ({record.at_ms / 1000:g} s after the start)"


def _now_us() -> int:
    return time.time_ns() // 1000


def _set_filter(context: RunContext, record: ActionRecord, *, back: bool = False) -> None:
    """Put the rule of an action into the filter of its server's namespace, or take it away.

    Raises:
        LabError: it does not stand then, or stands still.
    """
    port = context.topology.port_of(record.instance)
    rule = ["--port", str(port), "--answer", str(record.answer), *(["--remove"] if back else [])]
    if ask_collector(context.engine, record.instance, "filter", *rule)["stands"] is back:
        raise LabError(f"the rule for port {port} {'still stands' if back else 'does not stand'}")
