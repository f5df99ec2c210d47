"""Asks a collector: it shares its role's namespaces, so it reaches what nobody else does."""

import json
from collections.abc import Iterable
from typing import Any

from lab.engines.protocol import Engine
from lab.errors import LabError


def request_from(engine: Engine, instance: str, url: str, *, method: str = "GET", body: str | None = None) -> Any:  # noqa: ANN401 # JSON
    """Send a request from inside an instance's namespace and give the answer's JSON; null for an empty one."""
    more = ("--body", body) if body is not None else ()
    answer = engine.ask(instance, "collector", "http", "--method", method, *more, url)
    return _json(answer or "null", f"{instance} at {url}")


def await_ready(engine: Engine, instance: str, within_s: float) -> None:
    """Wait until a server that was started again is ready, as its collector waited for it at first."""
    engine.ask(instance, "collector", "ready", "--within", f"{within_s:g}s", timeout_s=within_s + 10)


def inspect_namespace(engine: Engine, instance: str, sysctls: Iterable[str]) -> dict[str, Any]:
    """Return what the kernel says of an instance's namespace: sysctls, listeners, addresses."""
    arguments = [part for name in sysctls for part in ("--sysctl", name)]
    answer = _json(engine.ask(instance, "collector", "inspect", *arguments), f"collector-{instance}")
    if not isinstance(answer, dict):
        raise LabError(f"collector-{instance} did not describe its namespace: {answer!r}")
    return answer


def _json(text: str, source: str) -> Any:  # noqa: ANN401 # JSON
    try:
        return json.loads(text)
    except ValueError:
        raise LabError(f"{source} did not answer with JSON: {text[:200]!r}") from None
