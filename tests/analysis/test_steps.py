"""How long each step took, by a clock that the tests set."""

import pytest

from analysis.derivation import analyse
from analysis.steps import Steps
from tests.analysis.support import RunFolder


class Clock:
    """A monotonic clock that advances when a test says so."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def goes(self, seconds: float) -> None:
        self.now_s += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr("analysis.steps.time.monotonic", lambda: made.now_s)
    return made


def test_a_step_within_another_is_a_part_of_it(clock: Clock) -> None:
    steps = Steps()
    with steps.step("prepare"):
        clock.goes(1)
        with steps.step("start"):
            clock.goes(0.25)
    with steps.step("measure"):
        clock.goes(2)

    assert list(steps.ms.items()) == [("prepare", 1250.0), ("prepare/start", 250.0), ("measure", 2000.0)]


def test_what_is_done_twice_counts_together(clock: Clock) -> None:
    steps = Steps()
    for seconds in (1, 2):
        with steps.step("samples"):
            clock.goes(seconds)

    assert steps.ms == {"samples": 3000.0}


def test_a_step_that_fails_counts_until_then_and_the_next_is_no_part_of_it(clock: Clock) -> None:
    steps = Steps()

    def fails() -> None:
        with steps.step("prepare"):
            clock.goes(1)
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        fails()
    with steps.step("close"):
        clock.goes(0.5)

    assert steps.ms == {"prepare": 1000.0, "close": 500.0}


def test_an_analysis_tells_its_steps_and_neither_they_nor_those_in_a_manifest_change_what_is_derived(
    run: RunFolder,
) -> None:
    steps, folder = Steps(), run.write()
    analyse(folder)
    derived = {file.name: file.read_bytes() for file in (folder / "derived").iterdir()}
    run.manifest["profile"] = {"prepare": 1250.0, "prepare/start": 250.0}
    analyse(run.write(), steps)

    assert list(steps.ms) == [
        *("samples", "packets", "health", "joins", "ledger", "predictions"),
        *("tables", "readings", "ladders", "figures"),
    ]
    assert {file.name: file.read_bytes() for file in (folder / "derived").iterdir()} == derived
