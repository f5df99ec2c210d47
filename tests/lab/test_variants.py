"""A knob chooses which program a role's image runs; each has limits, pages and knobs of its own."""

import pytest

from formats.role import Role
from lab.errors import BadInput
from lab.scenarios import forecast
from tests.lab.support import MINIMAL, Make, yaml_with

JETTY = yaml_with(MINIMAL, {"accept_count: 1": "server: jetty", "users: 3": "users: 12\n    arrival_gap: 100ms"})


def test_the_role_is_declared_as_the_program_that_runs(effective: Make) -> None:
    found = effective(text=JETTY)
    backend = found.roles["backend"]
    assert backend.limiting_knobs() == {
        "backlog": "backend.jetty_accept_queue_size",
        "connections": "backend.jetty_max_connections",
        "threads": "backend.jetty_threads_max",
        "idle": "backend.jetty_idle_timeout",
    }
    assert list(backend.scrape) == ["jetty"]
    assert backend.read_back is not None
    assert backend.read_back.page == "http://127.0.0.1:8081/actuator/jetty"
    assert "backend.jetty_acceptors" in found.on_path
    assert not {"backend.accept_count", "backend.tls"} & found.on_path.keys()
    # A manifest carries it.
    assert Role.model_validate(backend.as_written()) == backend


def test_a_setting_of_another_program_is_refused(effective: Make) -> None:
    with pytest.raises(BadInput) as refused:
        effective("backend.max_connections=5", text=JETTY)
    assert "backend.max_connections is set, but backend.server is jetty, which has no such setting" in str(
        refused.value
    )


@pytest.mark.parametrize(
    ("overrides", "served"),
    [
        pytest.param("", 12, id="no limit of connections"),
        pytest.param("backend.jetty_max_connections=2 backend.jetty_accept_queue_size=3", 6, id="limit + queue + 1"),
        pytest.param("backend.server=netty", 12, id="no limit at all"),
        pytest.param("backend.server=netty backend.netty_blocking_handler=true", None, id="an event loop may block"),
        pytest.param(
            "backend.jetty_threads_max=14 backend.jetty_threads_min=4", None, id="a request may wait for a thread"
        ),
    ],
)
def test_the_model_is_of_the_program_s_own_limits(effective: Make, overrides: str, served: int | None) -> None:
    found = effective(
        *overrides.split(),
        "load.connect_timeout=5s",
        "load.request_timeout=5m",
        text=JETTY,
    )
    assert forecast.known_before_run(found, ["model.users_served"]).get("model.users_served") == served
