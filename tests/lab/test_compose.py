"""What a run's file changes of compose.yaml. That Compose accepts it is `connlab check-compose`'s to show."""

import json
import shutil
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from analysis.evidence.rawfiles import Places
from lab import compose_check, paths
from lab.engines.compose.docker import DockerFailed
from lab.engines.compose.run_file import build_run_file, run_compose, write_run_file
from lab.scenarios.knobs import Knobs, environment
from lab.scenarios.resolve import resolve
from lab.scenarios.topology import topology_of
from lab.series import arms
from tests.lab.engine import InMemoryDocker
from tests.lab.support import MINIMAL, THROUGH_NGINX, Make, Write, extended, yaml_with
from tests.lab.test_series_arms import ARMS


def services(make: Make, *overrides: str, text: str = MINIMAL) -> dict[str, Any]:
    return extended(added_to_all(make, *overrides, text=text)["services"])


def added_to_all(make: Make, *overrides: str, text: str = MINIMAL) -> dict[str, Any]:
    effective = make(*overrides, text=text)
    return build_run_file(
        effective, topology_of(effective), "run-1", Places(Path("/run-1")), IPv4Network("198.18.7.0/24")
    )


def test_sysctls_are_set_on_the_namespace_holder_alone(effective: Make) -> None:
    added = services(effective, "kernel.k6.net.ipv4.tcp_syn_retries=3")
    assert added["collector-k6-1"]["sysctls"] == {"net.ipv4.tcp_syn_retries": "3"}
    assert [name for name, service in added.items() if "sysctls" in service] == ["collector-k6-1"]


def test_each_container_is_given_its_own_raw_files_and_nothing_else_of_the_run(effective: Make) -> None:
    mounts = {
        name: [(mount["source"], mount["target"]) for mount in service["volumes"]]
        for name, service in services(effective).items()
    }
    assert mounts == {
        "k6-1": [("/run-1/raw/k6-1/role", "/raw")],
        "collector-k6-1": [("/run-1/raw/k6-1/collector", "/raw")],
        "backend-1": [("/run-1/raw/backend-1/role", "/raw")],
        "collector-backend-1": [("/run-1/raw/backend-1/collector", "/raw")],
    }


@pytest.mark.parametrize(("uid", "groups"), [(0, None), (1234, ["5678"])])
def test_containers_join_the_group_of_a_lab_that_cannot_give_files_away(
    effective: Make, monkeypatch: pytest.MonkeyPatch, uid: int, groups: list[str] | None
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: uid)
    monkeypatch.setattr("os.getegid", lambda: 5678)
    assert [service.get("group_add") for service in services(effective).values()] == [groups] * 4


NEEDING = """\
services:
  shop: {image: "acme/shop:1", knobs: {threads: {env: THREADS, default: 500, limit: threads}}, depends_on: [db]}
  db: {image: "postgres:17", memory_mb: 3000}
"""
OF_BACKEND = "  backend:\n    accept_count: 1\n"
WITH_SERVICES = NEEDING + yaml_with(
    MINIMAL, {"[k6, backend]": "[k6, shop]", OF_BACKEND: "", "users: 3": "users: 3\n    path: /"}
)


def test_every_container_bears_its_run_and_has_limits_of_memory_and_processes(effective: Make) -> None:
    for text in (MINIMAL, THROUGH_NGINX, WITH_SERVICES):
        for name, service in services(effective, text=text).items():
            assert service["labels"] == {"connlab.run": "run-1"}, name
            assert int(service["mem_limit"].removesuffix("m")) >= 1024, name
            assert service["pids_limit"] >= 256, name


def test_the_limits_grow_with_what_is_asked_for(effective: Make) -> None:
    few, many = services(effective), services(effective, "load.users=16000", "backend.heap_mb=4096")
    for name in ("k6-1", "backend-1"):
        assert few[name]["mem_limit"] == "2048m"
    # Twice 147 MiB, and 420 KiB for each user.
    assert many["k6-1"]["mem_limit"] == f"{2 * (147 + (16_000 * 420 >> 10))}m"
    # Twice 245 MiB and the heap, and a mebibyte for each of 200 threads.
    assert many["backend-1"]["mem_limit"] == f"{2 * (245 + 4096) + 200}m"
    assert services(effective, "backend.threads_max=8000")["backend-1"]["pids_limit"] == 4096 + 8000
    own = services(effective, text=WITH_SERVICES)
    assert (own["shop-1"]["pids_limit"], own["db"]["mem_limit"]) == (4096 + 500, "6000m")


def test_every_container_ends_by_itself_if_nobody_stops_it(effective: Make) -> None:
    """A collector knows when; everything else shares the processes of one that does, and ends with it."""
    added = services(effective, "load.max_duration=10m", text=WITH_SERVICES)
    for name, service in added.items():
        if name.startswith("collector-"):
            assert int(service["environment"]["CONNLAB_DEADLINE_S"]) > 600
        elif name.startswith("holder-"):
            assert service["command"][:2] == ["hold", "--for"]
            assert int(service["command"][2].removesuffix("s")) > 600
        else:
            assert service["pid"].removeprefix("service:") in added


def test_each_hop_is_captured_once_where_its_server_is(effective: Make) -> None:
    direct, proxied = services(effective), services(effective, text=THROUGH_NGINX)

    def modes(added: dict[str, Any]) -> dict[str, str]:
        return {name: one["environment"]["CONNLAB_CAPTURE"] for name, one in added.items() if "collector" in name}

    assert modes(direct) == {"collector-k6-1": "off", "collector-backend-1": "headers"}
    assert modes(proxied) == {"collector-k6-1": "off", "collector-nginx": "headers", "collector-backend-1": "off"}
    action = "actions:\n  - {at: 1s, do: filter, instance: backend-1, answer: none, for: 1s}\n"
    filtered = services(
        effective, text=THROUGH_NGINX.replace("users: 3", "users: 3\n    calls: 99\n    think_time: 1s") + action
    )
    assert modes(filtered) == {"collector-k6-1": "off", "collector-nginx": "headers", "collector-backend-1": "headers"}


def test_only_a_run_with_kernel_events_gives_its_collectors_the_right_to_them(effective: Make) -> None:
    without, asked = services(effective), services(effective, "capture.events=kernel")
    for name, rights in (("collector-k6-1", ["BPF", "PERFMON"]), ("collector-backend-1", ["BPF", "PERFMON"])):
        assert asked[name]["cap_add"][-2:] == rights
        assert not set(without[name]["cap_add"]) & set(rights)
        assert asked[name]["environment"]["CONNLAB_EVENTS"] == "kernel"
    assert all("BPF" not in one.get("cap_add", ()) for name, one in asked.items() if "collector" not in name)


def test_further_clients_are_made_after_the_first(effective: Make) -> None:
    added = services(effective, "load.instances=3")
    client, holder = added["k6-3"], added["collector-k6-3"]
    assert client["image"] == "connlab/k6"
    assert client["network_mode"] == "service:collector-k6-3"
    assert client["environment"]["CONNLAB_INSTANCE"] == "k6-3"
    assert client["environment"]["CONNLAB_SEGMENT"] == "2/3:1"
    assert holder["networks"] == {"lab": {"aliases": ["k6-3"]}}
    assert holder["environment"]["CONNLAB_ROLE"] == "k6-3"
    assert holder["environment"]["CONNLAB_RATE_HZ"] == "10"
    assert holder["cap_drop"] == ["ALL"]


def test_the_gateway_has_its_knobs_and_every_backend_and_captures_both_hops(effective: Make) -> None:
    text = yaml_with(MINIMAL, {"[k6, backend]": "[k6, gateway, backend]"})
    added = services(effective, "backend.instances=2", "gateway.idle_conn_timeout=5s", text=text)
    found = added["gateway"]["environment"]
    assert found["CONNLAB_UPSTREAMS"] == "backend-1:8080 backend-2:8080"
    assert found["CONNLAB_IDLE_CONN_TIMEOUT"] == "5000ms"
    assert found.keys() - {"CONNLAB_UPSTREAMS"} == environment(Knobs(), "gateway").keys()
    assert added["k6-1"]["environment"]["CONNLAB_TARGETS"] == "http://gateway:8080"
    assert added["collector-gateway"]["environment"]["CONNLAB_CAPTURE"] == "headers"
    assert added["collector-backend-1"]["environment"]["CONNLAB_CAPTURE"] == "off"


def test_a_second_address_of_nginx_is_known_to_every_client_and_kept_from_others(effective: Make) -> None:
    whole = added_to_all(effective, "nginx.addresses=2", "load.instances=2", text=THROUGH_NGINX)
    added = whole["services"]
    assert added["collector-nginx"]["environment"]["CONNLAB_ADDRESSES"] == "198.18.7.254/24"
    assert "CONNLAB_ADDRESSES" not in added["nginx"]["environment"]
    for client in ("k6-1", "k6-2"):
        assert added[client]["environment"]["CONNLAB_TARGETS"] == "http://nginx:8080 http://nginx-second:8080"
        assert added[f"collector-{client}"]["extra_hosts"] == ["nginx-second=198.18.7.254"]
    [config] = whole["networks"]["lab"]["ipam"]["config"]
    assert config == {"subnet": "198.18.7.0/24", "aux_addresses": {"nginx-second": "198.18.7.254"}}


def test_with_one_address_each_the_engine_chooses_the_subnet(effective: Make) -> None:
    whole = added_to_all(effective, text=THROUGH_NGINX)
    assert "ipam" not in whole["networks"]["lab"]
    assert not any("extra_hosts" in service for service in whole["services"].values())


def test_the_file_is_yaml_that_says_the_same(effective: Make, tmp_path: Path) -> None:
    file = tmp_path / "compose.run.yaml"
    content = {"services": services(effective, "load.instances=2")}
    write_run_file(content, file)
    assert YAML(typ="safe", pure=True).load(file.read_bytes()) == content


def texts(value: object) -> set[str]:
    """Every text in a document, keys too."""
    inner: list[Any] = (
        [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, list) else []
    )
    return {value} if isinstance(value, str) else set().union(*map(texts, inner))


HOSTILE = 'a$HOME/${SECRET}/${SECRET:-x}/$$HOME/$/$(id)/\\/"/\t/\x7f/\x85/\u2028/\ufeff/\U0001f600/#: {[<%!'


@pytest.mark.skipif(shutil.which("docker") is None, reason="Compose itself reads the file")
def test_what_reaches_compose_is_what_was_written_whatever_the_shell_sets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "of the shell")
    # A checkout, too, may lie in a folder of any name.
    checkout = tmp_path / "$HOME/a:b,c ${SECRET}"
    checkout.mkdir(parents=True)
    compose_file = shutil.copy(paths.COMPOSE_FILE, checkout)
    monkeypatch.setattr("lab.paths.COMPOSE_FILE", compose_file)
    folder = "x${N-..}/$HOME:a,b"
    home = tmp_path / "check$out" / "shop"
    (home / folder).mkdir(parents=True)
    (home / "own.js").touch()
    own: dict[str, Any] = {
        "ready": ["test", HOSTILE],
        "command": [HOSTILE],
        "environment": {"NAME": HOSTILE, "OCTAL": "0777", "YES": "yes", "NOTHING": "", "a.b-c": "~", "N$HOME": "a"},
        "volumes": ["./x${N-..}:/etc/$HOME"],
        "writable": ["/var/$HOME/${SECRET}"],
        "user": "$SECRET",
    }
    path = {"schema": 1, "title": "t", "question": "q", "path": ["k6", "shop"]}
    parts = {
        "services": {
            "shop": {**own, "image": "acme/${SECRET:-shop}", "depends_on": ["db"]},
            "db": {**own, "image": "acme/$SECRET"},
        },
        "load": {"script": "./own.js", "environment": {"GIVEN": HOSTILE}},
        "predictions": [{"id": "one", "description": "s", "expression": "client.requests.failed == 0"}],
    }
    # YAML knows no pairs of halves.
    (home / "scenario.yaml").write_text(json.dumps({**path, **parts}).replace("\\ud83d\\ude00", "\\U0001f600"))
    found = resolve(str(home))
    file = tmp_path / "compose.run.yaml"
    content = build_run_file(found, topology_of(found), "r", Places(tmp_path / "$HOME"), IPv4Network("198.18.7.0/24"))
    write_run_file(content, file)
    # What it prints can be given to it again: it doubles each dollar sign.
    config = json.loads(run_compose(file, "config", "--format", "json"))
    told = {one.replace("$$", "$") for one in texts(config)}
    written = {one for one in texts(content) if "$" in one} - {str(compose_file)}
    assert len(written) >= 9
    assert written - told == set()
    others = {"OCTAL": "0777", "YES": "yes", "NOTHING": "", "a.b-c": "~"}
    assert others.items() <= config["services"]["shop-1"]["environment"].items()


@pytest.mark.skipif(shutil.which("docker") is None, reason="Compose itself reads the file")
def test_a_run_s_containers_have_what_compose_yaml_gives_and_nothing_of_the_stack_s(
    effective: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Variables of the stack, as its user may have them in the shell.
    monkeypatch.setenv("BACKEND_ACCEPT_COUNT", "77")
    monkeypatch.setenv("NGINX_PUBLISHED", "0.0.0.0:80")
    file = tmp_path / "compose.run.yaml"
    for text in (THROUGH_NGINX, WITH_SERVICES):
        content = added_to_all(effective, text=text)
        write_run_file(content, file)
        config = json.loads(run_compose(file, "config", "--format", "json"))
        assert set(config["services"]) == set(content["services"])
        for name, service in config["services"].items():
            assert (service["cap_drop"], service["read_only"]) == (["ALL"], True), name
            assert service["security_opt"] == ["no-new-privileges:true"], name
            assert not {"ports", "build"} & set(service), name
            assert set(service.get("networks") or {}) <= {"lab"}, name
            assert ("healthcheck" in service) == name.startswith("collector-"), name
            least = ["NET_RAW", "WAKE_ALARM"] if name.startswith("collector-") else []
            # To add an address, or to make links, takes more.
            assert service.get("cap_add", []) == [*least, *content["services"][name].get("cap_add", [])], name
            added = content["services"][name].get("environment", {})
            assert {key: value.replace("$$", "$") for key, value in service.get("environment", {}).items()} == added, (
                name
            )
        assert [config["networks"][name]["internal"] for name in config["networks"]] == [True]


def test_compose_checks_each_different_file_of_scenarios_and_their_arms_once(
    write_scenario: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_scenario(MINIMAL + ARMS, "with-arms")
    for slug in ("one", "its-like"):
        write_scenario(slug=slug)
    checked: dict[str, set[str]] = {}

    def see(file: Path, *arguments: str) -> None:
        assert arguments[-2:] == ("config", "--quiet")
        named = YAML(typ="safe", pure=True).load(file.read_bytes())["services"]
        checked[file.stem] = {service for service in named if not service.startswith("collector-")}

    monkeypatch.setattr("lab.engines.compose.run_file.run_compose", see)
    runs = [one for slug in ("with-arms", "one", "its-like") for one in arms.resolve_variants(resolve(slug))]
    assert compose_check.check(runs) == 3
    assert checked == {
        "0-with-arms-keep-alive": {"k6-1", "backend-1"},
        "1-with-arms-no-keep-alive": {"k6-1", "backend-1"},
        "2-with-arms-proxied": {"k6-1", "nginx", "backend-1"},
    }


def test_what_compose_refuses_is_reported(write_scenario: Write, fake_docker: InMemoryDocker) -> None:
    fake_docker.says("compose *2-one-proxied.yaml*", stderr="services.nginx is not valid", exit_code=15)
    write_scenario(MINIMAL + ARMS)
    with pytest.raises(DockerFailed, match=r"services\.nginx is not valid"):
        compose_check.check(arms.resolve_variants(resolve("one")))


def test_the_lab_s_own_scenarios_are_checked_arm_by_arm_and_with_several_clients(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("lab.scenarios.places.slugs", lambda *_: ["accept-queue-healthy", "keep-alive-paths"])
    runs = compose_check.all_runs()
    assert {(one.slug, " ".join(one.scenario.path), len(topology_of(one).clients)) for one in runs} == {
        ("accept-queue-healthy", "k6 backend", 1),
        ("accept-queue-healthy", "k6 backend", 3),
        ("keep-alive-paths", "k6 nginx backend", 1),
        ("keep-alive-paths", "k6 backend", 1),
    }
