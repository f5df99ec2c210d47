"""A run's folder as read: the manifest, the window, and what each instrument recorded.

Each file is read once, when something first asks for it. What is missing or damaged is part of what was read.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from analysis.evidence import (
    captures,
    clock,
    clocks,
    flows,
    k6_files,
    logs,
    processes,
    result_files,
    samples,
    scrapes,
    window,
)
from analysis.evidence.captures import Capture
from analysis.evidence.clocks import Clocks
from analysis.evidence.flows import Reduction
from analysis.evidence.jsonl import Record
from analysis.evidence.k6_files import Client
from analysis.evidence.rawfiles import Places
from analysis.evidence.records import Log, Records, load_records
from analysis.evidence.samples import Samples
from analysis.evidence.scrapes import Scrape
from analysis.evidence.window import Window
from analysis.expressions.values import Unknown
from formats.manifest import Manifest
from formats.role import Page


@dataclass(frozen=True)
class Scraped:
    """The readings of one page of one instance: whose they are, the page's name and declaration, and what was read."""

    instance: str
    role: str
    name: str
    page: Page
    scrape: Scrape

    @property
    def figure_prefix(self) -> str:
        """The first part of its figures' names."""
        return self.page.figure_prefix or self.name

    @cached_property
    def values(self) -> list[dict[str, int]]:
        """The declared values of each good reading."""
        return scrapes.values(self.page, self.scrape.bodies)


@dataclass
class RawRun:
    """One run; a mapping's keys are the names of instances."""

    folder: Path
    written: Manifest

    @cached_property
    def manifest(self) -> Manifest:
        """The manifest as written, with its phases and actions on the steady clock."""
        return clock.on_steady(self.written, self.clocks.lab)

    @cached_property
    def clocks(self) -> Clocks:
        """The wall clocks of its machines; whatever is read is put on the steady one."""
        return clocks.find_clocks(self.written, self.places, self._sampled, lambda: self._reduced)

    @cached_property
    def window(self) -> Window | Unknown:
        """The time the run is about."""
        return window.find_window(self.manifest, self.clocks.lab_apart_us or 0)

    @cached_property
    def samples(self) -> dict[str, Samples]:
        """What the collector of each instance sampled."""
        return {instance: self.clocks.of(instance).retimed(samples) for instance, samples in self._sampled.items()}

    @cached_property
    def _sampled(self) -> dict[str, Samples]:
        return {
            each: samples.read(
                self.places.collector(each, "samples.jsonl"),
                *(self.written.port_of(each), each),
                ipv6=self.written.over_ipv6(each),
            )
            for each in self.instances
        }

    @cached_property
    def processes(self) -> dict[str, list[Record]]:
        """What the processes of each instance's role used, in readings once a second."""
        declared = self.manifest.roles
        return {
            instance: processes.select_role(
                self.samples[instance].processes, declared[role].processes if role in declared else ()
            )
            for role, instances in self.manifest.instances.items()
            for instance in instances
        }

    @cached_property
    def records(self) -> Records:
        """The records that grow with the load, in tables."""
        return load_records(self.manifest, self.places, self.clocks)

    @cached_property
    def clients(self) -> dict[str, Client]:
        """What each k6 instance recorded."""
        requests, dials = self.records.requests, self.records.dials
        return {
            each: k6_files.read(self.places.role(each), each, requests[each], dials[each])
            for each in self.manifest.of_role("k6")
        }

    @property
    def with_results(self) -> list[str]:
        """The instances of load generators whose files of results tell of their requests."""
        return [instance for instance, _, _ in self.manifest.logged(result_files.FORMATS)]

    @cached_property
    def scraped(self) -> tuple[Scraped, ...]:
        """What was scraped: each page of each instance."""
        return tuple(
            Scraped(instance, role, name, page, self._scrape(instance, f"{name}.jsonl", page))
            for role, declared in self.manifest.roles.items()
            for name, page in declared.scrape.items()
            for instance in self.manifest.of_role(role)
        )

    def _scrape(self, instance: str, file: str, page: Page) -> Scrape:
        found = scrapes.read(self.places.collector(instance, file), page)
        found.times_us, found.errors_us = map(self.clocks.of(instance).in_order, (found.times_us, found.errors_us))
        return found

    @property
    def proxy_dials(self) -> dict[str, Log]:
        """How each proxy's own record of its dials to the servers was read."""
        return {each: self.records.dials[each] for each, _, _ in self.manifest.logged(logs.DIALS)}

    @cached_property
    def captures(self) -> dict[str, Capture]:
        """The captures that there are or should be."""
        knobs = self.manifest.knobs
        modes = [knobs[name].value if name in knobs else None for name in ("capture.mode", "capture.client")]
        apart = len(set(self.written.nodes.values())) > 1
        acted = {one.instance for one in self.manifest.actions if one.do == "filter"}
        filtered = [role for role in self.manifest.path if acted.intersection(self.manifest.of_role(role))]
        roles = captures.expected(self.manifest.path, *modes, apart=apart, also=filtered)
        due = [each for role in roles for each in self.manifest.of_role(role)]
        found = {each: captures.read(self.places.collector(each), self.clocks.of(each)) for each in self.instances}
        return {
            instance: capture
            for instance, capture in found.items()
            if instance in due or capture.packets or capture.report is not None
        }

    @cached_property
    def reductions(self) -> dict[str, Reduction]:
        """What `flows` made of each capture; its files last as long as this object."""
        return {each: flows.on_steady(self._reduced[each], self.clocks.of(each)) for each in self.captures}

    @cached_property
    def _reduced(self) -> dict[str, Reduction]:
        """What `flows` made of each capture, with times as captured."""
        folder = Path(tempfile.mkdtemp(prefix="connlab-"))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        return {
            each: flows.reduce_capture(self.places.collector(each), folder / f"{each}.parquet")
            for each in self.instances
        }

    @property
    def inspected(self) -> bool:
        """Whether its evidence is files that somebody else recorded."""
        return self.written.observed is not None and bool(self.written.observed.files)

    @property
    def instances(self) -> list[str]:
        """Every instance of every role, in the manifest's order."""
        return [instance for role in self.written.instances.values() for instance in role]

    @cached_property
    def places(self) -> Places:
        """Where the raw files lie."""
        return Places(self.folder)
