"""derived/clocks.json: how the clocks of a run's machines stood to each other; only where it had several."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from analysis.evidence.clocks import LAB, Clocks
from analysis.expressions.values import Unknown
from analysis.figures import Run
from analysis.output import DerivedFile, Written


class MachineEntry(Written):
    """One machine's clock."""

    machine: Annotated[str | None, Field(description="As the engine names it; null for the one on which the lab ran")]
    instances: list[str]
    ahead_us: Annotated[
        int | None,
        Field(description="What it shows more than the reference as the measurement begins; null: not known"),
    ]
    drift_ppm: Annotated[float | None, Field(description="What that grows by, in µs for each second; null: not known")]
    residual_us: Annotated[
        int | None, Field(description="How far its times may still be off once they are put on the reference's clock")
    ]
    by: Annotated[
        str | None, Field(description="The machine whose clock it was fitted to; null: the lab's, or none: not fitted")
    ]
    bounds: Annotated[int, Field(description="How many events bound that fit")]
    contradiction_us: Annotated[
        int, Field(description="By how much these contradict each other: a clock did not run evenly")
    ]


class ClocksFile(DerivedFile):
    """The clocks of one run."""

    file = Path("derived") / "clocks.json"

    contract: Annotated[Literal["connlab.clocks/1"], Field(alias="schema")] = "connlab.clocks/1"
    scenario: str
    run: str
    reference: Annotated[str, Field(description="The machine on whose clock all times in derived/ are")]
    apart_us: Annotated[
        int | None, Field(description="How far times of two instances may be off against each other; null: not known")
    ]
    lab_apart_us: Annotated[
        int | None, Field(description="The same of an instance's time against the lab's, of phases and actions")
    ]
    machines: list[MachineEntry]


def write(run: Run, run_dir: Path) -> None:
    """Write the file into a run's folder, if the run had several clocks.

    Raises:
        OSError: it cannot be written.
    """
    clocks = run.raw.clocks
    if not clocks.machines:
        return
    began_us = None if isinstance(run.raw.window, Unknown) else run.raw.window.start_us
    found = ClocksFile(
        scenario=run.raw.manifest.scenario,
        run=run.raw.manifest.run,
        reference=clocks.reference,
        apart_us=clocks.apart_us,
        lab_apart_us=clocks.lab_apart_us,
        machines=[_entry(clocks, name, began_us) for name in clocks.machines],
    )
    found.write(run_dir)


def _entry(clocks: Clocks, name: str, began_us: int | None) -> MachineEntry:
    found = clocks.machines[name]
    rate = found.clock.rate if found.clock else None
    return MachineEntry(
        machine=None if name == LAB else name,
        instances=[each for each, node in clocks.nodes.items() if node == name],
        ahead_us=None if rate is None or began_us is None else rate.inverse().more_us(began_us),
        drift_ppm=None if rate is None else round(1e6 * rate.inverse().drift, 2),
        residual_us=clocks.residual_us(name),
        by=found.along[0] or None if found.along else None,
        bounds=found.bounds,
        contradiction_us=found.fit.contradiction_us if found.fit else 0,
    )
