"""What is known of a prediction's names before a run: knobs, and what the model computes from them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from analysis import figures
from analysis.expressions import parse
from analysis.figures import Run
from analysis.health import Evidence
from analysis.manifest import Manifest
from analysis.rawrun import RawRun
from analysis.values import Unknown, Value
from analysis.window import Window
from lab import sysctls
from lab.effective import Effective
from lab.scenario import Prediction
from lab.topology import topology_of


class _Plan(Run):
    """A run that is to come: it has settings, and no evidence yet to rest on."""

    def resting_on(
        self, instances: list[str], evidence: dict[Evidence, str], compute: Callable[[Window], Value]
    ) -> Value:
        """Compute what rests on the load as if it had been put on in full."""
        del instances, evidence
        window = self.raw.window
        return window if isinstance(window, Unknown) else compute(window)


def known_before_run(effective: Effective, prediction: Prediction) -> dict[str, object]:
    """Give the value of each name of a prediction that does not depend on measurements.

    A sysctl that the scenario does not set is taken to be what a new network namespace begins with.
    """
    plan = _Plan(RawRun(Path(), _manifest(effective)))
    names = parse(prediction.expression).names
    known = {name: figures.value(plan, name) for name in names if name in effective.values or name.startswith("model.")}
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in known.items()
        if not isinstance(value, Unknown)
    }


def _manifest(effective: Effective) -> Manifest:
    topology = topology_of(effective)
    defaults = {name: value for name, value in sysctls.IN_A_NEW_NAMESPACE.items() if sysctls.settable(name)}
    kernel = effective.scenario.knobs.kernel
    return Manifest.model_validate(
        {
            "schema": "connlab.manifest/1",
            "scenario": effective.slug,
            "run": "to-come",
            "status": "complete",
            "path": list(effective.scenario.path),
            "instances": {role: list(instances) for role, instances in topology.instances.items()},
            "knobs": {name: {"value": value} for name, value in effective.on_path().items()},
            "sysctls": {one: defaults | kernel.get(topology.role_of(one), {}) for one in topology.all},
            "phases": [{"name": "measure", "start_us": 0, "end_us": 1}, {"name": "drain", "start_us": 1, "end_us": 2}],
        }
    )
