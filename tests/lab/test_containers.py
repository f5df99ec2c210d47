"""What is read off the containers of a run when it is over."""

from lab import containers
from lab.topology import topology_of
from tests.lab.support import FakeDocker, Make


def test_what_never_ran_has_no_exit_code(effective: Make, fake_docker: FakeDocker) -> None:
    fake_docker.says('"ps "*', "connlab-k6-1\nconnlab-backend-1\n")
    lines = ("/connlab-k6-1 0 0001-01-01T00:00:00Z", "/connlab-backend-1 143 2026-01-31T12:00:00.5Z")
    fake_docker.says('"inspect "*', "\n".join(lines))
    assert containers.exit_codes(topology_of(effective())) == {"k6-1": None, "backend-1": 143}
