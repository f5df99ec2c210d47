"""The edges of the measurement: it begins, and anything is stopped, only once every sampler has seen the edge."""

import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from lab import measure
from lab.effective import Effective
from lab.session import Session, open_session
from tests.lab.support import FakeDocker, Make


@pytest.fixture
def session(effective: Make, elsewhere: Path, fake_docker: FakeDocker) -> Session:
    assert elsewhere.is_dir()
    fake_docker.says('"version "*', "26.1.5")
    fake_docker.says('"compose version "*', "2.26.1")
    resolved: Effective = effective()
    opened = open_session(resolved, ["connlab", "run", "one"])
    opened.manifest.begin("drain")
    opened.manifest.end_phase()
    return opened


def tick(session: Session, instances: Sequence[str], after_us: int) -> None:
    end_us = session.manifest.phases[-1].end_us
    assert end_us
    for instance in instances:
        with (session.raw / instance / "samples.jsonl").open("a") as stream:
            stream.write(f'{{"kind":"tick","time_us":{end_us + after_us}}}\n')


def test_every_sampler_s_next_sample_is_waited_for(session: Session) -> None:
    tick(session, session.topology.all, 0)
    tick(session, session.topology.clients, 1)
    late = threading.Timer(0.2, tick, (session, session.topology.servers, 1))
    began = time.monotonic()
    late.start()
    measure.await_samples(session)
    late.join()
    assert 0.2 <= time.monotonic() - began < 1


def test_a_sampler_that_is_gone_is_not_waited_for_forever(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "_SAMPLE_MAX_S", 0.1)
    tick(session, session.topology.clients, 1)
    began = time.monotonic()
    measure.await_samples(session)
    assert 0.1 <= time.monotonic() - began < 1
