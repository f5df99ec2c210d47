"""Runs independent waits side by side; nearly all of the lab's own time is waiting for an engine."""

from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import TypeVar

from lab.signals import LOOK_S, deferred, signal_waits

_T = TypeVar("_T")
_R = TypeVar("_R")
_WORKERS = 12


@deferred()
def each(function: Callable[[_T], _R], items: Iterable[_T]) -> dict[_T, _R]:
    """Apply a function to all items at once and return each one's result; the first exception is raised.

    What has begun is waited for, unless a signal comes.
    """
    todo = list(dict.fromkeys(items))
    if not todo:
        return {}
    pool = ThreadPoolExecutor(min(_WORKERS, len(todo)))
    futures = {one: pool.submit(function, one) for one in todo}
    left = set(futures.values())
    while left and not signal_waits():
        done, left = wait(left, LOOK_S, FIRST_EXCEPTION)
        if any(not one.cancelled() and one.exception() for one in done):
            for one in left:
                one.cancel()
    pool.shutdown(wait=False, cancel_futures=True)
    return {} if left else {one: future.result() for one, future in futures.items()}
