"""What is known before a run: the knobs, and what the model computes from them."""

from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

from analysis import figures
from analysis.diagnosis.health import Evidence
from analysis.evidence.rawrun import RawRun
from analysis.evidence.window import Window
from analysis.expressions import parse
from analysis.expressions.values import Unknown, Value, unknown
from analysis.figures import Run
from formats.manifest import Manifest
from formats.predictions import Claim
from lab.scenarios import sysctls
from lab.scenarios.knobs import RoleKnobs
from lab.scenarios.resolved import ResolvedScenario
from lab.scenarios.topology import topology_of

_RESPONSES = "model.response_ms.list"
_WAITING = (_RESPONSES, "model.users_failed")


class _Plan(Run):
    """A run that is to come: it has settings, and no evidence yet to rest on."""

    def resting_on(
        self, instances: list[str], evidence: dict[Evidence, str], compute: Callable[[Window], Value]
    ) -> Value:
        """Compute what rests on the load as if it had been put on in full; nothing else is recorded yet."""
        del instances
        if set(evidence) - {Evidence.LOAD}:
            return unknown("the run is to come")
        window = self.raw.window
        return window if isinstance(window, Unknown) else compute(window)


def known_before_run(resolved: ResolvedScenario, names: Iterable[str]) -> dict[str, Any]:
    """Return the value of each of these names that does not depend on measurements; lists as lists.

    A sysctl that the scenario does not set is taken to be what a new network namespace begins with.
    """
    values = values_before_run(resolved, names)
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


def values_before_run(resolved: ResolvedScenario, names: Iterable[str]) -> dict[str, Value]:
    """Return the values of `known_before_run` as expressions take them."""
    plan = _Plan(RawRun(Path(), _manifest(resolved)))
    settled = [name for name in names if name in resolved.values or name.startswith("model.")]
    values = {name: figures.value(plan, name) for name in settled}
    return {name: value for name, value in values.items() if not isinstance(value, Unknown)}


def names_of(prediction: Claim) -> tuple[str, ...]:
    """Return the names in a prediction and in its condition, each once."""
    conditions = names_in(prediction.when) if prediction.when is not None else ()
    return tuple(dict.fromkeys((*names_in(prediction.expression), *conditions)))


def applies(prediction: Claim, resolved: ResolvedScenario) -> bool | None:
    """Return whether a prediction is about these settings; None if that is not known before the run."""
    if prediction.when is None:
        return True
    condition = parse(prediction.when)
    known = values_before_run(resolved, condition.names)
    held = condition.evaluate(lambda name: known.get(name, unknown("the run is to come")))
    return held if isinstance(held, bool) else None


def names_in(expression: str) -> tuple[str, ...]:
    """Return the names in an expression, each once."""
    return parse(expression).names


def expected_load_s(resolved: ResolvedScenario) -> float | None:
    """Estimate how long the load takes, in seconds; None where the model does not know who waits and for how long."""
    told_by_settings = resolved.scenario.knobs.load.workload in ("sequential", "long_polling")
    if not told_by_settings and set(_WAITING) - set(known_before_run(resolved, _WAITING)):
        return None
    return minimum_load_s(resolved)


def minimum_load_s(resolved: ResolvedScenario) -> float:
    """Estimate how long the load takes at least, in seconds: as expected, or as if nobody waited."""
    load = resolved.scenario.knobs.load
    if load.workload == "sequential":
        requests_ms: int = load.requests
        return max(load_ms(load, 0), requests_ms) / 1000
    if load.workload == "long_polling":
        backend = resolved.scenario.knobs.backend
        # Who waits in the accept queue is served when the first ones' idle connections end, and k6 waits for that.
        queued = load.users > backend.max_connections * backend.instances
        idle_ms: int = backend.keep_alive_timeout if queued else 0
        return (load_ms(load, 0) + idle_ms) / 1000
    known = known_before_run(resolved, _WAITING)
    longest_ms = max(known.get(_RESPONSES) or [0])
    failing_ms = load.connect_timeout if known.get("model.users_failed") else 0
    last_ms: int = max(user_ms(load), longest_ms, failing_ms)
    return load_ms(load, last_ms) / 1000


@cache
def _defaults_of_the_kernel() -> dict[str, str]:
    return {name: value for name, value in sysctls.IN_A_NEW_NAMESPACE.items() if sysctls.settable(name)}


def _manifest(resolved: ResolvedScenario) -> Manifest:
    topology, scenario = topology_of(resolved), resolved.scenario
    defaults = _defaults_of_the_kernel()
    kernel = scenario.knobs.kernel
    return Manifest.model_validate(
        {
            "schema": "connlab.manifest/1",
            "scenario": resolved.slug,
            "run": "to-come",
            "status": "complete",
            "path": list(scenario.path),
            "roles": resolved.roles,
            "instances": {role: list(instances) for role, instances in topology.instances.items()},
            "knobs": {name: {"value": value} for name, value in resolved.on_path.items()},
            "actions": [{"do": each.do, "instance": each.instance, "at_ms": each.at} for each in scenario.actions],
            "sysctls": {one: defaults | kernel.get(topology.role_of(one), {}) for one in topology.all},
            "phases": [{"name": "measure", "start_us": 0, "end_us": 1}, {"name": "drain", "start_us": 1, "end_us": 2}],
        }
    )


# In slow_clients and half_open, the users come so long after the others (k6/lib/users.js).
_OTHERS_FIRST_MS = 1_000


def user_ms(load: RoleKnobs) -> int:
    """Return what a user's calls take, with the pauses between them, if it waits for nothing else."""
    taken: int = load.calls * load.handler_delay + (load.calls - 1) * load.think_time
    return taken


def load_ms(load: RoleKnobs, user_ms: int) -> int:
    """Return how long the load takes, if its last user takes so long."""
    users_ms = (load.users - 1) * load.arrival_gap + user_ms
    taken: dict[str, int] = {
        "users": users_ms,
        "tcp": users_ms,
        "slow_clients": _OTHERS_FIRST_MS + max(users_ms, load.header_duration),
        "half_open": max(_OTHERS_FIRST_MS + users_ms, load.half_open_duration),
        "spike": load.duration + load.handler_delay,
        "long_polling": load.ramp_half + load.ramp_full + load.ramp_hold + load.ramp_down,
        "sequential": load.requests * load.handler_delay,
        # k6 knows how long a script takes (own_script).
        "script": 0,
    }
    return taken[load.workload]
