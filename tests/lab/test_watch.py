import json
import subprocess
import sys
from pathlib import Path

import pytest

from lab.engines.compose.containers import Watch
from lab.errors import LabError
from tests.lab.engine import InMemoryDocker
from tests.lab.support import FakeDocker
from tests.lab.waiting import is_at_work, wait_until


def event(action: str, **attributes: str) -> str:
    return json.dumps({"Action": action, "Actor": {"Attributes": attributes}})


@pytest.fixture
def watch(fake_docker: InMemoryDocker) -> Watch:
    fake_docker.says("events *", event("die", name="connlab-nginx", exitCode="1") + "\n")
    return Watch("run-1")


def test_the_end_of_a_container_is_seen(watch: Watch, fake_docker: InMemoryDocker) -> None:
    with watch:
        wait_until(lambda: watch.ended("nginx") is not None)
    assert watch.ended("nginx") == "nginx ended with exit code 1"
    assert "label=connlab.run=run-1" in fake_docker.calls[0]


def test_what_runs_has_no_exit_code(watch: Watch) -> None:
    with watch:
        assert (watch.exit_code("backend-1"), watch.ended("backend-1")) == (None, None)


def test_one_that_ran_out_of_memory_is_said_to(watch: Watch) -> None:
    with watch:
        watch.take(event("oom", name="connlab-backend-1"))
        watch.take(event("die", name="connlab-backend-1", exitCode="137"))
    assert watch.ended("backend-1") == "backend-1 ended with exit code 137, out of memory"


@pytest.mark.parametrize(
    "line", ["", "no json", "[]", '{"Action": "die"}', '{"Action": "die", "Actor": {"Attributes": {}}}']
)
def test_what_is_no_event_is_passed_over(watch: Watch, line: str) -> None:
    with watch:
        watch.take(line)


def test_what_listens_to_the_engine_ends_with_a_lab_that_is_killed(docker_program: FakeDocker) -> None:
    docker_program.stays('"events "*')
    told = (
        "from lab.engines.compose.containers import Watch; watch = Watch('run-1'); print(watch._events.pid, flush=True)"
    )
    program = f"{told}; import time; time.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as lab:
        assert lab.stdout
        listener = int(lab.stdout.readline())
        # Before that it is setpriv, which may not have asked yet to be ended with its parent, or a program that is just
        # being started, which has no command line.
        wait_until(lambda: Path(f"/proc/{listener}/cmdline").read_text().startswith("sleep"))
        lab.kill()
    wait_until(lambda: not is_at_work(listener))


def test_an_engine_that_stops_telling_is_an_error(watch: Watch) -> None:
    with watch, pytest.raises(LabError, match="stopped telling its events"):
        wait_until(watch.check)
