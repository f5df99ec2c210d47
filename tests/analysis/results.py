"""Results as comparisons read them: manifests and derived files of runs, and series of them, without any raw file."""

import json
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.analysis.support import DURATIONS, Record, knob, make_manifest

FIGURES: Record = {
    "client.requests.total": 103,
    "client.requests.failed": 100,
    "client.requests.error.1211": 100,
    "client.users.failed": 100,
    "client.latency_ms.list": [1.0, 2.0],
    "client.latency_ms.mean": 1500.0,
    "kernel.backend.TcpExt.ListenOverflows": 500,
    "model.users_failed": 100,
}


def latencies(*values: float | None) -> list[Record]:
    """The figures of one run for each of these mean latencies."""
    return [{"figures": {"client.latency_ms.mean": value}} for value in values]


@dataclass
class Results:
    """A folder of results that grows by runs and series."""

    root: Path
    count: int = 0
    places: dict[str, list[Record]] = field(default_factory=dict)

    def run(
        self,
        figures: Record | None = None,
        knobs: Record | None = None,
        *,
        scenario: str = "queue",
        predictions: dict[str, str] | None = None,
        series: str | None = None,
        cell: str = "default",
        why: dict[str, str] | None = None,
        beyond: str | None = None,
        **manifest: Any,  # noqa: ANN401  whatever a manifest has
    ) -> Path:
        """Write a run with these figures beside FIGURES and knobs beside the usual ones.

        Predictions are by id and status; `beyond` says that more is unexplained than the scenario tolerates.
        """
        self.count += 1
        run_id = f"20261121T0800{self.count:02d}Z-{cell}-r01"
        folder = self.root / scenario / run_id
        content = make_manifest() | {"scenario": scenario, "run": run_id, "series": series, "cell": cell}
        content["knobs"] = deepcopy(content["knobs"])
        for name, value in (knobs or {}).items():
            content["knobs"][name] = knob(value, "ms" if name in DURATIONS else None) | {"source": "scenario"}
        found = FIGURES | (figures or {})
        statuses = predictions or {"p": "true"}
        write(folder / "manifest.json", content | manifest)
        write(
            folder / "derived" / "figures.json",
            {"schema": "connlab.figures/1", "scenario": scenario, "run": run_id}
            | {"figures": found, "why": {name: "lost" for name, value in found.items() if value is None} | (why or {})},
        )
        result = "not-reproduced" if "false" in statuses.values() else "reproduced"
        write(
            folder / "derived" / "verdict.json",
            {"schema": "connlab.verdict/1", "scenario": scenario, "run": run_id}
            | {"verdict": "inconclusive" if "unknown" in statuses.values() else result, "published": None, "health": {}}
            | {"ledger": {"unexplained": 0, "causes": {}, "identities": {"true": 0, "false": 0, "unknown": 0}}}
            | {"problems": [{"instrument": "ledger", "message": beyond, "spoils": []}] if beyond else []}
            | {
                "predictions": [
                    {"id": id_, "description": "It is so.", "expression": "1 == 1", "status": status}
                    | {"measured": {}, "why": "lost" if status == "unknown" else None}
                    for id_, status in statuses.items()
                ]
            },
        )
        return folder

    def series(
        self,
        runs_of: dict[str, list[Record]],
        predictions: dict[str, str] | None = None,
        *,
        knobs: dict[str, Record] | None = None,
        holds: dict[str, str] | None = None,
        levels: dict[str, Record] | None = None,
        model: dict[str, Record] | None = None,
        **content: Any,  # noqa: ANN401  whatever a series has
    ) -> Path:
        """Write a series of arms: to each cell the keyword arguments of its runs.

        `knobs` are those of each cell, `model` its figures, and `levels` its place on the axes, where it is not an arm;
        `holds` says of each cell of a search whether its runs have what is looked for.
        """
        name = "20261121T080000Z-arms-queue"
        places = [
            {"cell": cell, "repetition": number, "status": "complete", "reason": None, "lost": []}
            | {"holds": (holds or {}).get(cell)}
            | {
                "run": "/".join(
                    self.run(**{"series": name, "cell": cell, "repetition": number, **arguments}).parts[-2:]
                )
            }
            for cell, runs in runs_of.items()
            for number, arguments in enumerate(runs, start=1)
        ]
        described = [
            {
                "cell": cell,
                "scenario": "queue",
                "levels": (levels or {}).get(cell, {"arm": cell}),
                "path": ["k6", "backend"],
            }
            | {"knobs": (knobs or {}).get(cell, {})}
            | {"load_s": 1.0, "model": (model or {}).get(cell, {})}
            for cell in runs_of
        ]
        axes: dict[str, dict[str, None]] = {}
        for cell in runs_of:
            for axis, level in (levels or {}).get(cell, {"arm": cell}).items():
                axes.setdefault(axis, {})[level] = None
        folder = self.root / "series" / name
        write(
            folder / "series.json",
            {"schema": "connlab.series/1", "series": name, "kind": "arms", "name": "queue", "title": "A queue"}
            | {"question": "How long?", "status": "complete", "repetitions": 4, "baseline": next(iter(runs_of))}
            | {"axes": [{"name": axis, "levels": [{"name": level} for level in found]} for axis, found in axes.items()]}
            | {"cells": described}
            | {"scenarios": ["queue"], "overrides": [], "request": {}, "command": ["connlab", "run", "queue"]}
            | {"started": "2026-11-21T08:00:00Z", "seed": 1, "cooldown_ms": 0, "stop": {"failed_in_a_row": 3}}
            | {"budget": {"cells": 9, "duration_ms": 60_000}, "runs": places, "fingerprint": fingerprint()}
            | {
                "predictions": [
                    {"id": id_, "description": "It is so.", "expression": expression}
                    for id_, expression in (predictions or {}).items()
                ]
            }
            | content,
        )
        return folder


def fingerprint(**images: str) -> Record:
    return {"plan": "p", "code": "c", "analysis": "a", "images": images, "kernel": "6.12.0"}


def write(path: Path, content: Record) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))
