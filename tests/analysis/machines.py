"""A recorded run as it would be had one of its instances been on another machine, with a clock of its own."""

import json
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from analysis.evidence.rawfiles import FOLDER

HERE, ELSEWHERE = "node-1", "node-2"

_TIMES = re.compile(rb'"(time_us|end_us|started_us|ended_us|time_ms)": ?(\d+)')
_MONO = re.compile(rb'"mono_us":(\d+)')
_SECOND = re.compile(rb"(?m)^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d")
_SECONDS = "%Y/%m/%d %H:%M:%S"
_BOOTED_US = 77_000_000_000
# How many parts of a second a capture counts, by its first bytes.
_PARTS = {bytes.fromhex("d4c3b2a1"): 1_000_000, bytes.fromhex("4d3cb2a1"): 1_000_000_000}


@dataclass(frozen=True)
class Apart:
    """A clock that is ahead of another one: by `ahead_ms` at a time, and by more or less from then on."""

    ahead_ms: float
    ppm: float = 0.0
    about_us: int = 0

    def shown(self, time_us: int) -> int:
        return time_us + round(1000 * self.ahead_ms + self.ppm * (time_us - self.about_us) / 1_000_000)

    def mono(self, mono_us: int) -> int:
        return _BOOTED_US + mono_us + round(self.ppm * mono_us / 1_000_000)


def move(run: Path, instance: str, ahead_ms: float, ppm: float, *, looks: bool = True) -> None:
    """Put an instance of a run on a machine of its own.

    Args:
        run: the run's folder, whose files are written anew.
        instance: which.
        ahead_ms: by how much its clock is ahead as the measurement begins.
        ppm: how much faster it is.
        looks: whether the lab looked at both clocks, before the measurement and after.
    """
    manifest = json.loads((run / "manifest.json").read_text())
    edges = {each["name"]: each for each in manifest["phases"]}
    first_us, last_us = edges["measure"]["start_us"], edges.get("drain", edges["measure"])["end_us"]
    clock = Apart(ahead_ms, ppm, first_us)
    for path in (run / FOLDER / instance).rglob("*.*"):
        _shift(path, clock)
    every = [each for of_role in manifest["instances"].values() for each in of_role]
    manifest["nodes"] = {each: ELSEWHERE if each == instance else HERE for each in every}
    if looks:
        manifest["clocks"] = [
            _look(each, us, clock.shown if each == instance else lambda us: us)
            for us in (first_us - 400_000, first_us - 100_000, last_us + 100_000)
            for each in every
        ]
    (run / "manifest.json").write_text(json.dumps(manifest))


def _look(instance: str, time_us: int, shown: Callable[[int], int]) -> dict[str, Any]:
    return {
        "instance": instance,
        "asked_us": time_us - 30_000,
        "shown_us": shown(time_us),
        "told_us": time_us + 45_000,
    }


def _shift(path: Path, clock: Apart) -> None:
    content = path.read_bytes()
    if path.suffix == ".pcap":
        content = _packets(content, clock)
    elif path.name == "error.log":
        content = _SECOND.sub(lambda found: _second(found, clock), content)
    elif path.suffix in (".jsonl", ".json", ".log"):
        content = _TIMES.sub(lambda found: _time(found, clock), content)
        content = _MONO.sub(lambda found: b'"mono_us":%d' % clock.mono(int(found[1])), content)
    else:
        return
    path.write_bytes(content)


def _time(found: re.Match[bytes], clock: Apart) -> bytes:
    unit_us = 1000 if found[1].endswith(b"ms") else 1
    return b'"%s":%d' % (found[1], clock.shown(unit_us * int(found[2])) // unit_us)


def _second(found: re.Match[bytes], clock: Apart) -> bytes:
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    moment = datetime.strptime(found[0].decode(), _SECONDS).replace(tzinfo=UTC)
    shown_us = clock.shown((moment - epoch) // timedelta(microseconds=1))
    return (epoch + timedelta(microseconds=shown_us)).strftime(_SECONDS).encode()


def _packets(content: bytes, clock: Apart) -> bytes:
    parts = _PARTS[content[:4]]
    changed, at = bytearray(content), 24
    while at < len(content):
        second, part, kept = struct.unpack_from("<III", content, at)
        per_us = parts // 1_000_000
        shown_us = clock.shown(1_000_000 * second + part // per_us)
        second, us = divmod(shown_us, 1_000_000)
        struct.pack_into("<II", changed, at, second, us * per_us + part % per_us)
        at += 16 + kept
    return bytes(changed)
