import threading
import time

import pytest

from lab import parallel
from lab.signals import Interrupted


def test_each_gives_the_result_of_each() -> None:
    assert parallel.each(abs, [-1, 2]) == {-1: 1, 2: 2}
    assert parallel.each(abs, []) == {}


def test_a_failure_is_raised_when_all_have_ended() -> None:
    ended: list[int] = []

    def work(item: int) -> None:
        if item == 0:
            raise ValueError(item)
        time.sleep(0.2)
        ended.append(item)

    with pytest.raises(ValueError, match="0"):
        parallel.each(work, [0, 1])
    assert ended == [1]


def test_an_interruption_waits_for_nobody() -> None:
    goes_on = threading.Event()

    def work(item: int) -> None:
        if item == 0:
            raise Interrupted
        goes_on.wait(10)

    began = time.monotonic()
    with pytest.raises(Interrupted):
        parallel.each(work, [0, 1])
    assert time.monotonic() - began < 5
    goes_on.set()
