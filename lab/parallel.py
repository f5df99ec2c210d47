"""Runs independent waits side by side; nearly all of the lab's own time is waiting for an engine."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_T = TypeVar("_T")
_R = TypeVar("_R")
_WORKERS = 12


def each(function: Callable[[_T], _R], items: Iterable[_T]) -> dict[_T, _R]:
    """Apply a function to all items at once and return each one's result; the first exception is raised.

    An interruption waits for none of them.
    """
    todo = list(items)
    if not todo:
        return {}
    pool = ThreadPoolExecutor(min(_WORKERS, len(todo)))
    try:
        results = dict(zip(todo, pool.map(function, todo), strict=True))
    except BaseException as error:
        # `with` would wait here, and so let Ctrl-C wait for a whole warm-up.
        pool.shutdown(wait=isinstance(error, Exception), cancel_futures=True)
        raise
    pool.shutdown()
    return results
