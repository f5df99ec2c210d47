"""What `connlab observe` takes for a target, what it refuses, and what it says before it starts."""

import errno
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from formats import manifest, run_liveness
from lab.engines.compose import docker_sidecar
from lab.errors import BadInput, LabError
from lab.observe import observing
from lab.observe.known_servers import known_programs, program_in
from lab.observe.options import parse_options
from lab.observe.targets import TargetNames, find_targets, program_of_role
from lab.signals import Interrupted
from tests.lab.engine import InMemoryEngine, InMemorySidecar, InMemorySidecars
from tests.lab.support import FakeDocker

ID = "a" * 64

Watched = Callable[[InMemorySidecars], manifest.Manifest]


def inspected(name: str = "shop", **changes: object) -> str:
    found: dict[str, Any] = {
        "Id": ID,
        "Name": f"/{name}",
        "Config": {"Image": "acme/shop:1", "Entrypoint": None, "Cmd": ["node", "shop.js"], "Labels": None},
        "State": {"Running": True, "Status": "running", "Pid": 4711, "ExitCode": 0},
        "HostConfig": {"NetworkMode": "acme_default"},
    }
    return json.dumps([found | changes])


def test_a_container_is_found_and_its_program_known_by_its_command(docker_program: FakeDocker) -> None:
    docker_program.says("'container inspect'*", inspected())
    docker_program.says("top*", "PID COMMAND\n4711 node shop.js\n")
    (found,) = find_targets(TargetNames(containers=["shop"]), docker_sidecar)
    assert (found.record.instance, found.record.kind, found.joins) == ("shop", "container", ID)
    assert found.record.program is not None
    assert (found.record.program.name, found.record.program.backlog) == ("Node.js", 511)


@pytest.mark.parametrize(
    ("named", "message"),
    [
        (TargetNames(), "nothing to observe is named; give --container, --compose, --pid or --pod"),
        (TargetNames(containers=["shop"]), "there is no container 'shop'; those that run: web"),
        (
            TargetNames(compose="acme/web"),
            "the Compose project 'acme' has no running container of the service 'web'; its",
        ),
        (TargetNames(pid=2**22), f"there is no process {2**22} (it may have ended)"),
    ],
)
def test_what_is_not_there_is_refused(docker_program: FakeDocker, named: TargetNames, message: str) -> None:
    docker_program.says("'container inspect'*", stderr="Error: No such container: shop", exit_code=1)
    docker_program.says("'ps --format {{.Names}}'", "web\n")
    docker_program.says("'ps --filter'*", "db\n")
    with pytest.raises(BadInput) as refused:
        find_targets(named, docker_sidecar)
    assert str(refused.value).startswith(message)


def test_a_container_that_has_ended_is_refused(docker_program: FakeDocker) -> None:
    docker_program.says("'container inspect'*", inspected(State={"Running": False, "Status": "exited", "Pid": 0}))
    with pytest.raises(BadInput, match=r"the container 'shop' does not run \(exited\)"):
        find_targets(TargetNames(containers=["shop"]), docker_sidecar)


@pytest.mark.parametrize("mode", ["host", f"container:{'b' * 64}"])
def test_the_host_s_network_is_refused_without_leave(docker_program: FakeDocker, mode: str) -> None:
    docker_program.says(f"*{'b' * 64}*", inspected("pause", Id="b" * 64, HostConfig={"NetworkMode": "host"}))
    docker_program.says("'container inspect'*", inspected(HostConfig={"NetworkMode": mode}))
    with pytest.raises(BadInput, match=r"in the host's own network namespace.*add --host"):
        find_targets(TargetNames(containers=["shop"]), docker_sidecar)
    (found,) = find_targets(TargetNames(containers=["shop"], host=True), docker_sidecar)
    assert (found.container.on_host, found.processes) == (True, False)


@pytest.mark.parametrize(
    ("configured", "why"),
    [
        ({"PidMode": "host"}, "its process namespace is the host's"),
        ({"PidMode": f"container:{'b' * 64}"}, "its process namespace is the host's"),
        ({"CapAdd": ["CAP_SYS_PTRACE"]}, "it has the capability SYS_PTRACE"),
        ({"CapAdd": ["NET_ADMIN", "wake_alarm"]}, "it has the capability WAKE_ALARM"),
        ({"CapAdd": ["ALL"]}, "it has the capability ALL"),
        ({"Privileged": True}, "it has all capabilities"),
    ],
)
def test_a_collector_stays_out_of_processes_that_are_the_host_s_or_could_reach_it(
    docker_program: FakeDocker, configured: dict[str, Any], why: str
) -> None:
    of = {"NetworkMode": "acme_default"}
    docker_program.says(f"*{'b' * 64}*", inspected("agent", Id="b" * 64, HostConfig=of | {"PidMode": "host"}))
    docker_program.says("'container inspect'*", inspected(HostConfig=of | configured))
    (found,) = find_targets(TargetNames(containers=["shop"]), docker_sidecar)
    assert not found.processes
    says = observing.announce([found], parse_options("60s", "headers", 256, None, None, host=False))
    assert any(line.startswith(f"It does not see the processes of shop: {why}") for line in says)
    assert not any("of its processes" in line for line in says)


def test_a_collector_joins_the_processes_of_a_container_without_such_rights(docker_program: FakeDocker) -> None:
    configured = {"NetworkMode": "acme_default", "PidMode": "", "CapAdd": ["CAP_NET_ADMIN"], "Privileged": False}
    docker_program.says("'container inspect'*", inspected(HostConfig=configured))
    (found,) = find_targets(TargetNames(containers=["shop"]), docker_sidecar)
    assert (found.processes, found.container.apart) == (True, None)


def test_a_process_of_the_host_s_network_is_refused_without_leave(docker_program: FakeDocker) -> None:
    assert docker_program.calls == []
    with pytest.raises(BadInput, match="add --host"):
        find_targets(TargetNames(pid=os.getpid()), docker_sidecar)


def test_without_an_engine_the_message_says_so(docker_program: FakeDocker) -> None:
    docker_program.says("*", stderr="Cannot connect to the Docker daemon at unix:///var/run/docker.sock.", exit_code=1)
    with pytest.raises(LabError, match="start the Docker Engine"):
        find_targets(TargetNames(containers=["shop"]), docker_sidecar)


def test_two_targets_of_one_name_get_folders_of_their_own(docker_program: FakeDocker) -> None:
    docker_program.says("'container inspect'*", inspected("Acme_Web.1"))
    found = find_targets(TargetNames(containers=["Acme_Web.1"], peers=["acme-web-1"]), docker_sidecar)
    assert [each.record.instance for each in found] == ["acme-web-1", "acme-web-1-2"]
    assert [each.record.peer for each in found] == [False, True]


def test_a_collector_has_no_right_but_to_capture_joins_the_target_and_writes_into_a_folder_of_any_name(
    docker_program: FakeDocker,
) -> None:
    started = docker_sidecar.start("c", {"CONNLAB_OBSERVING": "1"}, Path("/a:b,c"), target=ID, processes=True)
    (call,) = docker_program.calls
    assert f"--network container:{ID} --pid container:{ID}" in call
    # The second is there so that nobody in the target's container has all of them.
    assert "--cap-drop ALL --cap-add NET_RAW --cap-add WAKE_ALARM --security-opt no-new-privileges:true" in call
    assert "--read-only" in call
    assert "--privileged" not in call
    assert call.endswith('--mount type=bind,"source=/a:b,c",target=/raw connlab/collector run')
    assert started.enter == ()


def test_a_process_s_namespace_is_entered_by_its_file(docker_program: FakeDocker) -> None:
    started = docker_sidecar.start("c", {}, Path("/raw"), target=4711, processes=False)
    (call,) = docker_program.calls
    assert "--network none --mount type=bind,source=/proc/4711/ns/net," in call
    assert call.endswith(f"--entrypoint nsenter connlab/collector {' '.join(started.enter[1:])} collector run")


def test_every_wrong_option_is_named() -> None:
    with pytest.raises(BadInput) as refused:
        parse_options("60", "header", 256, "any", "0s", host=False)
    assert [str(problem).partition(":")[0] for problem in refused.value.problems] == [
        "--duration", "--connect-timeout", "--capture",
    ]  # fmt: skip


@pytest.mark.parametrize("duration", ["0s", "999ms", "25h"])
def test_an_observation_lasts_from_a_second_to_a_day(duration: str) -> None:
    with pytest.raises(BadInput, match="from 1s to 24h"):
        parse_options(duration, "headers", 256, None, None, host=False)


def test_it_says_what_it_will_see_before_it_starts(docker_program: FakeDocker) -> None:
    docker_program.says("'container inspect'*", inspected())
    targets = find_targets(TargetNames(containers=["shop"]), docker_sidecar)
    says = "\n".join(observing.announce(targets, parse_options("60s", "headers", 256, None, None, host=False)))
    assert "at most 128 bytes of a packet and no data" in says
    assert "restarts nothing, sets nothing and sends nothing" in says
    assert "no packet" in "\n".join(
        observing.announce(targets, parse_options("60s", "off", 256, None, None, host=False))
    )


@pytest.fixture
def watch(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> Watched:
    """Observe a container on an engine in memory, for a second or until it ends, and give the manifest."""
    monkeypatch.setattr("lab.runs.run_results.analyse_run", lambda _: {})

    def take(sidecars: InMemorySidecars) -> manifest.Manifest:
        targets = find_targets(TargetNames(containers=["shop"]), sidecars)
        options = parse_options("1s", "headers", 256, None, None, host=False)
        try:
            observing.observe(targets, options, InMemoryEngine(sidecars=sidecars), ["connlab"])
        finally:
            assert [one.partition(" connlab-observe-")[0] for one in sidecars.did] == ["start", "stop", "remove"]
        (file,) = elsewhere.glob("results/observed-shop/2*/manifest.json")
        return manifest.load_manifest(file.parent)

    return take


def test_an_observation_leaves_nothing_behind(watch: Watched) -> None:
    told = watch(InMemorySidecars())
    assert (told.status, [phase.name for phase in told.phases]) == ("complete", ["prepare", "measure"])
    assert told.addresses["shop"] == ["192.0.2.1", "127.0.0.1", "::1"]


class Planting(InMemorySidecars):
    """Something beside the collector writes into its folder, too.

    Attributes:
        held: what the run's folder has when the first collector starts.
    """

    held: frozenset[str] = frozenset()

    def start(self, name: str, environment: Mapping[str, str], folder: Path, **rest: Any) -> InMemorySidecar:  # noqa: ANN401 # as its base
        self.held = frozenset(each.name for each in folder.parents[2].iterdir())
        (folder / "capture.pcap").symlink_to("/etc/passwd")
        return super().start(name, environment, folder, **rest)


def test_what_was_removed_from_its_files_stands_in_the_manifest(watch: Watched) -> None:
    told = watch(Planting())
    assert told.removed == [manifest.Removed(file="raw/shop/collector/capture.pcap", was="a symbolic link")]


def test_an_observation_is_held_by_its_process_to_its_end(watch: Watched, elsewhere: Path) -> None:
    sidecars = Planting()
    watch(sidecars)
    assert run_liveness.FILE in sidecars.held
    assert not list(elsewhere.glob(f"results/*/*/{run_liveness.FILE}"))


def test_files_that_cannot_be_sealed_end_the_observation_and_the_manifest_says_so(
    watch: Watched, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(_: Path, *, ended: bool) -> list[manifest.Removed]:
        assert ended
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr("lab.runs.raw_folders.seal_raw_folders", breaks)
    with pytest.raises(LabError, match=r"the files in .*/raw cannot be taken back: Input/output"):
        watch(InMemorySidecars())
    (file,) = elsewhere.glob("results/observed-shop/2*/manifest.json")
    assert manifest.load_manifest(file.parent).status == "failed"


def test_a_target_that_ends_keeps_what_was_seen_of_it(watch: Watched, capsys: pytest.CaptureFixture[str]) -> None:
    told = watch(InMemorySidecars(runs_for=0))
    assert told.observed is not None
    assert (told.status, told.observed.targets[0].ended) == ("complete", True)
    assert "shop ended while it was observed" in capsys.readouterr().err


def test_an_interrupted_observation_is_kept(watch: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: str) -> bool:
        raise Interrupted("interrupted (Ctrl-C)")

    sidecars = InMemorySidecars()
    monkeypatch.setattr(sidecars, "is_running", interrupted)
    assert watch(sidecars).status == "complete"


def test_a_collector_that_ends_fails_the_observation(watch: Watched, elsewhere: Path) -> None:
    with pytest.raises(LabError, match="the collector beside shop ended: no such device"):
        watch(InMemorySidecars(last_words="no such device"))
    (file,) = elsewhere.glob("results/observed-shop/2*/manifest.json")
    assert manifest.load_manifest(file.parent).status == "failed"


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("tomcat:11\ncatalina.sh run", "Tomcat"),
        ("nginx:1.27\nnginx: master process", "nginx"),
        ("haproxy:3.0", "HAProxy"),
        ("python:3\ngunicorn app:app -k uvicorn.workers.UvicornWorker", "gunicorn"),
        ("python:3\nuvicorn app:app", "uvicorn"),
        ("python:3\nuwsgi --http-socket :8000 --wsgi-file app.py", "uWSGI"),
        ("ruby:3\npuma 6.6.0 (tcp://0.0.0.0:9292) [shop]", "Puma"),
        ("x\n/usr/bin/python3 /usr/bin/hypercorn -b 0.0.0.0:8000 asgi:app", "Hypercorn"),
        ("x\nlighttpd -D -f /etc/lighttpd/lighttpd.conf", "lighttpd"),
        ("memcached:1.6\nmemcached -m 64", "memcached"),
        ("rabbitmq:4\nbeam.smp -W w -- -root /usr/lib/erlang", "RabbitMQ"),
        ("x\n/usr/bin/python3 -m http.server 8000", "Python's http.server or socketserver"),
        ("x\npython3 /shop.py", "Python"),
        ("php:8-fpm\nphp-fpm: master process", "PHP-FPM"),
        ("postgres:17\npostgres", "PostgreSQL"),
        ("redis:7\nredis-server *:6379", "Redis"),
        ("mysql:8\nmysqld", "MySQL"),
        ("httpd:2.4\nhttpd -DFOREGROUND", "Apache httpd"),
        ("envoyproxy/envoy\nenvoy -c x", "Envoy"),
        ("jetty:12\njava -jar start.jar", "Jetty"),
        ("quay.io/wildfly/wildfly", "Undertow"),
        ("acme\n/shop", None),
    ],
)
def test_programs_are_known_by_image_and_command(words: str, name: str | None) -> None:
    found = program_in(words)
    assert (found.name if found else None) == name


def test_each_known_program_has_a_name_of_its_own_and_a_source() -> None:
    known = known_programs().values()
    assert len({each.name for each in known}) == len(known)
    assert all(each.how and str(each.source).startswith("https://") for each in known)


def test_a_role_that_the_user_declares_names_the_setting() -> None:
    found = program_of_role(Path(__file__).parents[2] / "backend" / "role.yaml")
    assert (found.setting, found.backlog) == ("backend.accept_count", 100)


@pytest.mark.parametrize(("role", "message"), [("k6", "no limit 'backlog'"), ("none", "No such file or directory")])
def test_a_role_without_a_backlog_or_that_is_not_there_is_refused(role: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        program_of_role(Path(__file__).parents[2] / role / "role.yaml")
