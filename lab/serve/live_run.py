"""The run at work: what its clients and its kernels say at this moment, as the terminal shows it."""

import threading
import time
from pathlib import Path
from typing import Any

from analysis.evidence.rawfiles import Places
from formats.manifest import Manifest, ManifestError, load_manifest
from lab import paths
from lab.runs import live_display
from lab.runs.gauges import SECONDS_KEPT, Gauges, History, ServerGauge
from lab.runs.lock import holder

_US_PER_S = 1_000_000


class RunAtWork:
    """Looks at the run that this checkout has at work."""

    def __init__(self) -> None:
        # The gauges of one run, which read on from where they were.
        self._followed: tuple[Path, Gauges] | None = None
        self._looking = threading.Lock()

    def look(self) -> dict[str, Any] | None:
        """Return the run's figures as JSON; None if none is at work, or nothing of it is known yet.

        Counts are since the start of the load; each history has one value for each of the last 60 s, the newest last,
        None where nothing was read.
        """
        held = holder()
        if held is None or held.folder is None:
            return None
        folder = paths.RESULTS / held.folder
        try:
            manifest = load_manifest(folder)
        except ManifestError:
            return None
        with self._looking:
            gauges = self._gauges(folder, manifest)
            gauges.refresh()
            return {"what": held.what, **_of_manifest(manifest), **_figures(gauges)}

    def _gauges(self, folder: Path, manifest: Manifest) -> Gauges:
        ports = {one: manifest.port_of(one) for each in manifest.instances.values() for one in each}
        if self._followed is None or self._followed[0] != folder or self._followed[1].kernels.keys() != ports.keys():
            self._followed = folder, Gauges(manifest.clients, ports, Places(folder))
        return self._followed[1]


def _of_manifest(manifest: Manifest) -> dict[str, Any]:
    phase = manifest.phases[-1] if manifest.phases else None
    since_us = phase.start_us if phase and phase.end_us is None else None
    return {
        "phase": phase.name if phase and since_us else "stopping" if phase else "starting",
        "phase_s": None if since_us is None else max(0, round(time.time() - since_us / _US_PER_S)),
        "path": manifest.path,
    }


def _figures(gauges: Gauges) -> dict[str, Any]:
    client = gauges.client
    until = max(client.asking.newest, *(gauge.waiting.newest for gauge in gauges.kernels.values()))

    def last(history: History) -> list[float | None]:
        return history.last(SECONDS_KEPT, until)

    def server(gauge: ServerGauge) -> dict[str, Any]:
        return {
            "depth": gauge.depth,
            "places": None if gauge.limit is None else gauge.limit + gauge.queues,
            "full": gauge.is_full,
            "overflows": gauge.overflows,
            "time_wait": gauge.time_wait,
            "filling": last(gauge.filling),
            "waiting": last(gauge.waiting),
        }

    return {
        "client": {
            "known": client.is_known,
            "users": client.users,
            "requests": client.requests,
            "failed": client.failed,
            "kinds": live_display.kinds(client),
            "asking": last(client.asking),
            "failing": last(client.failing),
        },
        "kernels": {name: server(gauge) for name, gauge in gauges.kernels.items()},
    }
