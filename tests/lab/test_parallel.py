import os
import signal
import threading
import time
from collections.abc import Callable

import pytest

from lab import parallel
from lab.errors import Interruption
from lab.signals import interruptible
from tests.lab.waiting import HANG_S


def test_each_gives_the_result_of_each() -> None:
    assert parallel.each(abs, [-1, 2]) == {-1: 1, 2: 2}
    assert parallel.each(abs, []) == {}


def test_a_failure_is_raised_when_what_has_begun_has_ended() -> None:
    begun, ended = threading.Event(), threading.Event()

    def work(item: str) -> None:
        if item == "fails":
            assert begun.wait(HANG_S)
            raise ValueError(item)
        begun.set()
        time.sleep(0.2)
        ended.set()

    with pytest.raises(ValueError, match="fails"):
        parallel.each(work, ["fails", "lasts"])
    assert ended.is_set()


def end_by_signal(work: Callable[[str], None]) -> None:
    with interruptible():
        parallel.each(work, ["signals", "lasts"])


def test_an_interruption_waits_for_nobody() -> None:
    begun, may_end, ended = threading.Event(), threading.Event(), threading.Event()

    def work(item: str) -> None:
        if item == "signals":
            assert begun.wait(HANG_S)
            os.kill(os.getpid(), signal.SIGTERM)
            return
        begun.set()
        may_end.wait(HANG_S)
        ended.set()

    with pytest.raises(Interruption, match="terminated"):
        end_by_signal(work)
    assert not ended.is_set()
    may_end.set()
