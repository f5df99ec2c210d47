"""`connlab clean` removes what is the lab's, and nothing else."""

from lab.engines.compose.containers import clean
from tests.lab.engine import InMemoryDocker


def test_only_what_bears_the_lab_s_labels_or_its_own_names_is_removed(fake_docker: InMemoryDocker) -> None:
    fake_docker.says("ps *label=connlab.run*", "connlab-k6-1\n")
    fake_docker.says("ps *label=connlab.check*", "eager_name\n")
    fake_docker.says("ps --all --format*", "connlab-db\n")
    fake_docker.says("network ls *label=*", "connlab_lab\n")
    fake_docker.says("volume ls *label=connlab.check*", "connlab-bare-trixie-1\n")
    fake_docker.says("volume ls --format *", "connlab-cache\nconnlab-backup\nold-connlab-cache\n")
    fake_docker.says("image ls *dangling*label=connlab.source*", "abc123\n")
    fake_docker.says("image ls *dangling*")
    fake_docker.says("image ls *label=connlab.source*", "connlab/k6:latest\n<none>:<none>\n")
    fake_docker.says("image ls *label=connlab.base*", "connlab/base:latest\n")
    fake_docker.says("image ls *label=connlab.check*", "connlab/bare:trixie\n")
    fake_docker.says("image ls *reference=connlab/trixie-slim*", "connlab/trixie-slim:latest\n")
    fake_docker.says("image ls *reference=*", "connlab/mine:latest\n")
    cleaned = clean()
    assert cleaned.containers == ["connlab-k6-1", "eager_name"]
    assert cleaned.networks == ["connlab_lab"]
    assert cleaned.volumes == ["connlab-bare-trixie-1", "connlab-cache"]
    roles, bases = ["connlab/k6:latest", "connlab/bare:trixie"], ["connlab/base:latest", "connlab/trixie-slim:latest"]
    assert cleaned.images == [*roles, *bases, "abc123"]
    assert cleaned.kept == []
    removals = [call for call in fake_docker.calls if call.split()[0] in ("rm", "rmi") or " rm " in call]
    assert len(removals) == 10


def test_what_is_in_use_is_kept_and_told(fake_docker: InMemoryDocker) -> None:
    fake_docker.says("image ls *reference=*", "connlab/base:latest\n")
    fake_docker.says("rmi *", stderr="image is being used by running container 1234\n", exit_code=1)
    assert clean().kept == ["connlab/base:latest: image is being used by running container 1234"]


def test_what_docker_keeps_silently_is_reported(fake_docker: InMemoryDocker) -> None:
    fake_docker.says("image ls *reference=*", "connlab/base:latest\n")
    fake_docker.says("rmi *", exit_code=1)
    assert clean().kept == ["connlab/base:latest: (it said nothing)"]


def test_nothing_there_is_nothing_removed(fake_docker: InMemoryDocker) -> None:
    cleaned = clean()
    assert (cleaned.containers, cleaned.networks, cleaned.volumes, cleaned.images, cleaned.kept) == ([], [], [], [], [])
    assert not [call for call in fake_docker.calls if " rm " in f" {call} "]
