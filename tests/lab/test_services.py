"""A service of one's own: how a scenario declares it, what role that makes, and what is refused beforehand."""

import json
import re
from collections.abc import Callable
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any, get_args

import pytest

from analysis.evidence.rawfiles import Places
from formats.log_format import WELL_KNOWN
from lab.engines import container_settings
from lab.engines.compose import images, run_file, startup
from lab.engines.compose.docker import DockerFailed
from lab.engines.protocol import Parts
from lab.errors import BadInput, LabError
from lab.roles import readback_parser
from lab.scenarios import forecast
from lab.scenarios.resolve import resolve
from lab.scenarios.resolved import ResolvedScenario
from lab.scenarios.services import Capability
from lab.scenarios.topology import capture_mode, topology_of
from lab.series import matrices, searches
from tests.lab.engine import InMemoryDocker, InMemoryWatch
from tests.lab.support import extended

SHOP = """\
schema: 1
title: A shop
question: Who is served?
path: [k6, shop]
services:
  shop:
    image: acme/shop:1.2
    port: 9000
    ready: /health
    environment: {MODE: lab, PRICE: $5, FAST: true}
    volumes: [./conf:/etc/shop]
    depends_on: [db]
    user: "70"
    writable: [/var/cache/shop]
    capabilities: [NET_BIND_SERVICE]
    knobs:
      places: {env: SHOP_PLACES, default: 8, minimum: 1, maximum: 99, limit: connections}
      queue: {env: SHOP_QUEUE, default: 3, limit: backlog}
      threads: {default: 4, limit: threads}
      fast: {env: SHOP_FAST, default: false}
      mode: {env: SHOP_MODE, default: slow, values: [slow, quick]}
  db: {image: "postgres:17", ready: [pg_isready]}
knobs:
  shop: {places: 2}
  load: {workload: users, users: 3, path: /}
  kernel: {shop: {net.core.somaxconn: 64}}
predictions:
  - {id: served, description: All are served., expression: client.users.served == model.users_served}
"""

TMP = "/tmp:mode=1777"  # noqa: S108 # a container's own

Shop = Callable[..., ResolvedScenario]


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    """Resolve the scenario above, with parts of its text replaced."""

    def make(*overrides: str, **replaced: str) -> ResolvedScenario:
        text = SHOP
        for old, new in replaced.items():
            assert OLD[old] in text
            text = text.replace(OLD[old], new)
        home = tmp_path / "corner"
        (home / "conf").mkdir(parents=True, exist_ok=True)
        (home / "built").mkdir(exist_ok=True)
        for folder in (home, home / "built"):
            (folder / "Dockerfile").write_text("FROM --platform=linux/amd64 base:1 as Made\nFROM made\n")
        if not (home / "out").is_symlink():
            (home / "out").symlink_to(tmp_path)
        (home / "scenario.yaml").write_text(text)
        return resolve(str(home), overrides)

    return make


# What tests replace, by a word.
OLD = {
    "image": "image: acme/shop:1.2",
    "path": "path: [k6, shop]",
    "depends_on": "depends_on: [db]",
    "db": 'db: {image: "postgres:17", ready: [pg_isready]}',
    "ready": "ready: /health",
    "volumes": "[./conf:/etc/shop]",
    "places": "limit: connections",
    "queue": "limit: backlog",
    "asked": "shop: {places: 2}",
    "url": ", path: /",
    "capabilities": "[NET_BIND_SERVICE]",
    "mode": "values: [slow, quick]",
    "name": "  db:",
    "log": "    port: 9000\n",
}


def services(effective: ResolvedScenario) -> dict[str, Any]:
    made = run_file.build_run_file(
        effective, topology_of(effective), "r", Places(Path("/run")), IPv4Network("198.18.0.0/24")
    )
    return extended(made["services"])


def test_a_service_is_a_role_with_knobs_and_limits(shop: Shop) -> None:
    found = shop("shop.queue=7", "shop.instances=2")
    role = found.roles["shop"]
    assert (role.kind, role.port, role.ready) == ("server", 9000, "http://127.0.0.1:9000/health")
    assert (role.limits.connections, role.limits.backlog, role.limits.threads) == ("places", "queue", "threads")
    assert (found.values["shop.places"], found.values["shop.queue"]) == (2, 7)
    assert (found.source("shop.places"), found.source("shop.queue")) == ("scenario", "set")
    assert topology_of(found).instances["shop"] == ["shop-1", "shop-2"]
    assert topology_of(found).targets == ["http://shop-1:9000", "http://shop-2:9000"]
    assert topology_of(found).needed == ("db",)


def test_the_model_predicts_with_its_limits(shop: Shop) -> None:
    names = ("model.accept_capacity", "model.listen_backlog", "model.users_served", "model.users_failed")
    assert list(forecast.known_before_run(shop(), names).values()) == [6, 3, 3, 0]
    # Who exceeds the places waits for others, and for how long nobody declares.
    assert list(forecast.known_before_run(shop("load.users=7"), names)) == list(names[:2])
    # Without a knob the kernel's own limit counts, which is read back in the run.
    assert forecast.known_before_run(shop(queue="unit: places"), names) == {}


def test_its_container_is_confined_but_for_what_it_asks(shop: Shop, tmp_path: Path) -> None:
    made = services(shop())
    own, plain = made["shop-1"], made["db"]
    for one in (own, plain):
        assert (one["cap_drop"], one["read_only"]) == (["ALL"], True)
        assert one["security_opt"] == ["no-new-privileges:true"]
    assert (own["user"], own["cap_add"]) == ("70", ["NET_BIND_SERVICE"])
    assert own["tmpfs"] == [TMP, "/var/cache/shop:mode=1777"]
    assert (plain["user"], "cap_add" in plain, plain["tmpfs"]) == ("10001:10001", False, [TMP])
    (volume,) = own["volumes"]
    assert (volume["source"], volume["read_only"]) == (str(tmp_path / "corner" / "conf"), True)
    assert own["network_mode"] == "service:collector-shop-1"
    assert own["depends_on"] == {"db": {"condition": "service_healthy"}}
    assert plain["networks"] == {"lab": {"aliases": []}}
    assert plain["healthcheck"]["test"] == ["CMD", "pg_isready"]
    assert made["collector-shop-1"]["networks"]["lab"]["aliases"] == ["shop-1", "shop"]
    assert "collector-db" not in made


def test_no_service_may_have_all_capabilities_of_the_collector_beside_it(shop: Shop) -> None:
    # The kernel would let root in it reach the collector's files by /proc/<pid>/root.
    made = services(shop())
    collectors = [one for name, one in made.items() if name.startswith("collector-")]
    assert len(collectors) == 2
    assert not [one for one in collectors if set(one["cap_add"]) <= set(get_args(Capability))]


def test_a_folder_whose_name_has_colons_is_mounted_by_its_whole_name(shop: Shop, tmp_path: Path) -> None:
    (tmp_path / "corner" / "a:b").mkdir(parents=True)
    (volume,) = services(shop(volumes="[./a:b:/etc/shop:ro]"))["shop-1"]["volumes"]
    assert (volume["source"], volume["target"]) == (str(tmp_path / "corner" / "a:b"), "/etc/shop")


def test_what_it_needs_may_take_as_long_to_start_as_the_scenario_says(shop: Shop) -> None:
    effective = shop(depends_on="depends_on: [db]\n    ready_within: 5m")
    made = services(effective)
    assert made["db"]["healthcheck"]["start_period"] == "120000ms"
    # Its collector starts before all that it needs is ready.
    assert (
        made["collector-shop-1"]["healthcheck"]["start_period"]
        == f"{container_settings.compute_deadline_s(effective)}s"
    )


def test_its_own_time_begins_when_all_containers_have_started(
    shop: Shop, fake_docker: InMemoryDocker, tmp_path: Path
) -> None:
    effective = shop(depends_on="depends_on: [db]\n    ready_within: 20500ms")
    start(effective, tmp_path)
    first, own, last = (call.partition(" never ")[2].split() for call in fake_docker.calls if " up " in call)
    assert own == ["--wait", "--wait-timeout", "21", "collector-shop-1", "shop-1"]
    assert last == ["--wait", "--wait-timeout", "300", *first]


def listens(fake_docker: InMemoryDocker, port: int) -> None:
    """Something listens on this port of the shop, and on no other."""
    said = json.dumps({"listeners": [{"address": "::", "port": port}]})
    fake_docker.says("exec connlab-run-collector-shop-1 collector inspect", said)


def start(effective: ResolvedScenario, folder: Path, watch: InMemoryWatch | None = None) -> None:
    startup.start(Parts(effective, topology_of(effective), "r", Places(folder)), watch or InMemoryWatch())


@pytest.mark.parametrize("compose", ["fails", "does not end", "says nothing"])
def test_one_that_is_not_ready_in_its_time_is_said_and_nothing_else_is_waited_for(
    shop: Shop, fake_docker: InMemoryDocker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compose: str
) -> None:
    waits: list[object] = []

    def run_compose(_file: Path, *arguments: str, **_: object) -> str:
        if "--wait" in arguments:
            waits.append(arguments)
            if compose != "says nothing":
                raise {
                    "fails": DockerFailed([], 1, "application not healthy after 120s"),
                    "does not end": LabError("'docker compose up …' did not end within 150 s"),
                }[compose]
        return ""

    listens(fake_docker, 80)
    if compose == "says nothing":
        fake_docker.says("inspect * connlab-run-collector-shop-1 connlab-run-shop-1", "starting\n\n")
    fake_docker.says("inspect *", "healthy")
    monkeypatch.setattr(run_file, "run_compose", run_compose)
    with pytest.raises(BadInput, match="nothing listens on port 9000 of shop-1; it listens on 80"):
        start(shop(), tmp_path)
    assert len(waits) == 1


def test_a_server_of_the_lab_s_that_was_not_ready_in_its_time_starts_no_run(
    fake_docker: InMemoryDocker, tmp_path: Path
) -> None:
    fake_docker.says("inspect *", "\nstarting\n")
    made = resolve("accept-queue-overflow")
    with pytest.raises(LabError, match=r"\S+ was not ready within 300 s"):
        start(made, tmp_path)


def test_one_that_ends_as_it_starts_is_said_at_once(shop: Shop, fake_docker: InMemoryDocker, tmp_path: Path) -> None:
    fake_docker.stays("compose * --wait *")
    effective, watch = shop(), InMemoryWatch()
    watch.end("shop-1", 137)
    with pytest.raises(LabError, match="shop-1 ended with exit code 137 during its start"):
        start(effective, tmp_path, watch)


@pytest.mark.parametrize(
    ("ready", "said"),
    [
        ("/health", "http://127.0.0.1:9000/health does not answer 200"),
        ("[ask, me]", "its command 'ask me' does not end"),
        (None, "takes no connection to 127.0.0.1:9000; it listens on ::, perhaps for IPv6 alone, and the lab comes"),
    ],
)
def test_one_that_listens_and_is_not_ready_is_said_with_what_was_asked(
    shop: Shop, fake_docker: InMemoryDocker, tmp_path: Path, ready: str | None, said: str
) -> None:
    fake_docker.says("compose * --wait *", stderr="application not healthy after 120s", exit_code=1)
    listens(fake_docker, 9000)
    fake_docker.says(f"inspect * connlab-run-{'shop-1' if '[' in (ready or '') else 'collector-shop-1'}", "starting")
    fake_docker.says("inspect *", "healthy")
    effective = shop(ready=f"ready: {ready}" if ready else "")
    with pytest.raises(BadInput, match=f"shop-1 listens on port 9000, and {re.escape(said)}"):
        start(effective, tmp_path)


@pytest.mark.parametrize("path", ["path: [k6, shop]", "path: [k6, shop, db]"])
def test_what_it_needs_and_never_was_ready_is_said_before_itself(
    shop: Shop, fake_docker: InMemoryDocker, tmp_path: Path, path: str
) -> None:
    fake_docker.says("compose * --wait *", stderr="dependency failed to start", exit_code=1)
    fake_docker.says("exec connlab-run-collector-shop-1 collector inspect", '{"listeners": []}')
    fake_docker.says(
        "exec connlab-run-collector-db-1 collector inspect", '{"listeners": [{"address": "::", "port": 8080}]}'
    )
    fake_docker.says("inspect *", "starting")
    effective = shop(path=path)
    with pytest.raises(BadInput, match=r"db(-1 listens on port 8080| runs), and its command 'pg_isready' does not end"):
        start(effective, tmp_path)


def test_knobs_reach_it_by_its_own_variables(shop: Shop) -> None:
    environment = services(shop("shop.fast=true", "shop.mode=quick"))["shop-1"]["environment"]
    assert environment == {
        "MODE": "lab",
        "PRICE": "$5",
        "FAST": "true",
        "SHOP_PLACES": "2",
        "SHOP_QUEUE": "3",
        "SHOP_FAST": "true",
        "SHOP_MODE": "quick",
    }


def test_behind_a_proxy_it_is_what_the_proxy_reaches(shop: Shop) -> None:
    found = shop("shop.instances=2", path="path: [k6, nginx, shop]")
    assert services(found)["nginx"]["environment"]["CONNLAB_UPSTREAMS"] == "shop-1:9000 shop-2:9000"


def test_a_database_behind_it_is_observed_and_answers_no_request(shop: Shop) -> None:
    database = 'db: {image: "postgres:17", port: 5432, ready: [pg_isready]}'
    found = shop(path="path: [k6, nginx, shop, db]", depends_on="depends_on: []", db=database)
    topology = topology_of(found)
    assert (topology.all, topology.needed) == (["k6-1", "nginx", "shop-1", "db-1"], ())
    assert (topology.targets, topology.answering) == (["http://nginx:8080"], "shop")
    # Each hop is captured once: nginx sees both of its own.
    assert [role for role in found.scenario.path if capture_mode(found, role) != "off"] == ["nginx", "db"]
    made = services(found)
    assert made["shop-1"]["depends_on"] == {"db-1": {"condition": "service_healthy"}}
    assert made["collector-db-1"]["networks"]["lab"]["aliases"] == ["db-1", "db"]
    assert made["collector-db-1"]["environment"]["CONNLAB_READY_URL"] == "tcp://127.0.0.1:5432"


@pytest.mark.parametrize("path", ["[k6, shop, backend]", "[k6, nginx, shop, backend]", "[k6, shop, nginx, backend]"])
def test_a_service_stands_anywhere_on_the_path(shop: Shop, path: str) -> None:
    made = services(shop(path=f"path: {path}", depends_on="depends_on: [backend, db]"))
    assert made["shop-1"]["depends_on"] == {
        "db": {"condition": "service_healthy"},
        # That of a role of the lab's own is healthy once the role is ready.
        "collector-backend-1": {"condition": "service_healthy"},
        **({"collector-nginx": {"condition": "service_healthy"}} if "shop, nginx" in path else {}),
    }
    # Its neighbours' names lead to them.
    assert made["collector-backend-1"]["networks"]["lab"]["aliases"] == ["backend-1", "backend"]


def test_where_a_service_runs_beside_the_path_each_server_captures_who_comes(shop: Shop) -> None:
    found = shop(path="path: [k6, nginx, shop]", depends_on="depends_on: [db]")
    assert [role for role in found.scenario.path if capture_mode(found, role) != "off"] == ["nginx", "shop"]


def test_what_the_model_predicts_is_about_the_server_that_answers(shop: Shop) -> None:
    found = shop(path="path: [k6, shop, db]")
    assert forecast.known_before_run(found, ("model.accept_capacity", "model.users_served")) == {
        "model.accept_capacity": 2 + 3 + 1,
        "model.users_served": 3,
    }
    assert [role for role in found.scenario.path if capture_mode(found, role) != "off"] == ["shop"]


def test_the_manifest_has_it_as_a_role_and_records_each_loosening(shop: Shop) -> None:
    declared = shop().registry.roles["shop"].as_written()
    assert declared["loosened"] == {
        "user": "70",
        "writable": ["/var/cache/shop"],
        "capabilities": ["NET_BIND_SERVICE"],
    }
    assert json.loads(json.dumps(declared)) == declared


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("shop.threads=5", "shop.threads must be at most 4, not 5"),
        ("shop.places=100", "shop.places must be at most 99, not 100"),
        ("shop.plases=1", "unknown knob 'shop.plases'; did you mean 'shop.places'?"),
        ("store.places=1", "unknown group of knobs 'store'"),
    ],
)
def test_a_setting_that_cannot_be_is_refused(shop: Shop, override: str, said: str) -> None:
    with pytest.raises(BadInput) as refused:
        shop(override)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("replaced", "said"),
    [
        ({"asked": "shop: {plases: 2}"}, "scenario.yaml:24: unknown knob 'shop.plases'; did you mean 'shop.places'?"),
        ({"path": "path: [k6, shob]"}, "unknown role 'shob'; did you mean 'shop'?"),
        (
            {"depends_on": "depends_on: [cache]"},
            "scenario.yaml:12: shop depends on 'cache', and no service has that name",
        ),
        ({"db": "db: {image: a, depends_on: [shop]}"}, "shop and db depend on each other"),
        (
            {"depends_on": "depends_on: [backend]"},
            "shop depends on backend, one of the lab's own roles, and it is not on the path; put backend on the path",
        ),
        (
            {"path": "path: [k6, backend, db]", "asked": "backend: {max_connections: 2}"},
            "on the path db comes after backend, but backend connects to no other server",
        ),
        ({"db": "db: {image: a, ready: /up}"}, "db is not on the path, so it has no collector that could ask for /up"),
        ({"image": "tls: false"}, "a service takes exactly one of image, build, compose and cluster_service"),
        ({"image": "build: {context: ., arg: [1]}"}, "unknown key 'services.shop.build.arg'; did you mean 'args'"),
        ({"image": "build: 7"}, "services.shop.build takes"),
        ({"image": "build: .."}, "scenario.yaml:7: the build of shop leads out of the scenario's folder; copy what"),
        ({"image": "build: ./out"}, "scenario.yaml:7: the build of shop leads out of the scenario's folder"),
        ({"image": "build: {context: ., dockerfile: ../x}"}, "the build of shop leads out of the scenario's folder"),
        ({"image": "image: --help"}, "scenario.yaml:7: services.shop.image: '--help' is not an image's name"),
        ({"volumes": "[./out:/etc/shop]"}, "./out:/etc/shop leads out of the scenario's folder"),
        ({"db": "db: {image: a, environment: {A=B: c}}"}, "services.db.environment.A=B: 'A=B' cannot be the name"),
        ({"mode": "values: [slow]"}, "services.shop.knobs.mode"),
        ({"image": "build: ./conf"}, "scenario.yaml:7: there is no Dockerfile in ./conf; the engine builds"),
        ({"image": "build: {context: ., dockerfile: web}"}, "scenario.yaml:7: there is no web in ."),
        ({"image": "build: {context: ./built, target: slim}"}, "scenario.yaml:7: the Dockerfile has no stage 'slim'"),
        ({"image": "build: ./nowhere"}, "scenario.yaml:7: there is no folder ./nowhere; give the Dockerfile's"),
        ({"volumes": "[../x:/etc/shop]"}, "scenario.yaml:11: ../x:/etc/shop leads out of the scenario's folder"),
        ({"volumes": "[./none:/etc/shop]"}, "there is no ./none in the scenario's folder"),
        ({"volumes": "[./conf:/etc/shop:rw]"}, "the service can only read a volume"),
        ({"capabilities": "[SYS_ADMIN]"}, "scenario.yaml:15"),
        ({"queue": "limit: connections"}, "two of its knobs have the same limit"),
        ({"mode": "unit: s"}, "a knob whose default is text needs 'values', the texts that it can be"),
        ({"url": ""}, "which only the lab's own backend answers, and not shop; set load.path, such as /"),
        ({"name": "  nginx: {image: a}\n  db:"}, "the lab itself uses the name 'nginx'"),
        ({"name": "  holder-db: {image: a}\n  db:"}, "the lab itself uses the name 'holder-db'"),
        ({"name": "  collector-shop-1: {image: a}\n  db:"}, "the lab itself uses the name 'collector-shop-1'"),
        ({"name": "  shop-1: {image: a}\n  db:"}, "the lab itself uses the name 'shop-1'"),
        ({"name": "  k6-2: {image: a}\n  db:"}, "the lab itself uses the name 'k6-2'"),
    ],
)
def test_what_cannot_work_is_refused(shop: Shop, replaced: dict[str, str], said: str) -> None:
    with pytest.raises(BadInput) as refused:
        shop(**replaced)
    assert said in str(refused.value)


_LOG = "    log: {file: /var/log/shop/access.log, format: caddy}\n"


def test_one_that_is_like_a_proxy_stands_in_front_of_a_server_and_brings_its_log(shop: Shop, tmp_path: Path) -> None:
    found = shop(path="path: [k6, shop, backend]", log=f"    like: proxy\n{_LOG}")
    role = found.registry.roles["shop"]
    assert (role.kind, list(role.logs)) == ("proxy", ["access.log"])
    assert role.logs["access.log"] == WELL_KNOWN["caddy"]
    made = run_file.build_run_file(found, topology_of(found), "r", Places(tmp_path), IPv4Network("198.18.7.0/24"))
    mounts = {one["target"]: one for one in made["services"]["shop-1"]["volumes"]}
    assert mounts["/var/log/shop"]["source"] == str(Places(tmp_path).role("shop-1"))
    assert "read_only" not in mounts["/var/log/shop"]


@pytest.mark.parametrize(
    ("log", "said"),
    [
        ("{format: json, fields: {status: s}}", "a log needs the fields status and time"),
        ("{file: access.log, format: caddy}", "'access.log' is not a log: write stdout, or its whole path"),
        ("{file: /var/cache/shop/a.log, format: caddy}", "the log's folder /var/cache/shop is writable already"),
        ("{file: /var/log/shop/container.log, format: caddy}", "a log cannot be named container.log"),
        ("{format: caddy, pattern: x}", "a log takes either 'format' or 'pattern'"),
        ("{pattern: '(?P<time>('}", "is not a regular expression"),
        ("{format: cady}", "did you mean 'caddy'"),
    ],
)
def test_a_log_that_cannot_be_read_is_refused_with_its_place(shop: Shop, log: str, said: str) -> None:
    with pytest.raises(BadInput) as caught:
        shop(log=f"    port: 9000\n    log: {log}\n")
    assert said in str(caught.value)
    assert "scenario.yaml:" in str(caught.value)


def test_its_knobs_are_searched_and_are_axes(shop: Shop, tmp_path: Path) -> None:
    home = str(shop().place.home)
    asked = searches.Asked(home, "shop.places", "client.requests.failed == 0", "1", "9", None)
    assert searches.plan_search(asked, []).plan.cells
    with pytest.raises(BadInput, match=r"unknown knob 'shop\.plases'; did you mean 'shop\.places'"):
        searches.plan_search(searches.Asked(home, "shop.plases", "client.requests.failed == 0", "1", "9", None), [])
    grid = tmp_path / "grid.yaml"
    grid.write_text(
        "schema: 1\ntitle: t\nexperiment: workshop\nquestion: q?\nscenarios: [./corner]\naxes: {shop.places: [1, 2]}\n"
    )
    planned = matrices.plan_matrix(str(grid))
    assert [one.resolved.values["shop.places"] for one in planned.cells.values()] == [1, 2]
    assert (planned.roles, [one.slug for one in planned.with_services]) == ({"k6"}, ["corner"])


def test_an_image_that_cannot_be_had_is_said_before_anything_starts(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def docker(*arguments: str, timeout_s: float = 60) -> str:
        assert timeout_s
        raise DockerFailed(["docker", *arguments], 1, "Error: pull access denied for acme/shop")

    monkeypatch.setattr(images, "docker", docker)
    with pytest.raises(BadInput) as refused:
        images.service_image_ids(shop(depends_on="depends_on: []"))
    said = (
        "scenario.yaml:6: the image acme/shop:1.2 of shop is not here, and cannot be pulled: Error: pull access denied"
    )
    assert said in str(refused.value)
    assert "'docker load'" in str(refused.value)


_NOT_HAD = "ERROR: failed to solve: failed to resolve source metadata for "
_BUILDS_ON = " its Dockerfile builds on python:3.10-alpine, which is not here, and cannot be pulled; load it"


@pytest.mark.parametrize(
    ("stderr", "said"),
    [
        (f"{_NOT_HAD}docker.io/library/python:3.10-alpine: failed to do request: no such host", _BUILDS_ON),
        (
            "lookup deb.example: no such host",
            "\n  lookup deb.example: no such host; a step fetches what cannot be reached",
        ),
        ("ERROR: a step failed", "\n  ERROR: a step failed"),
    ],
)
def test_an_image_that_cannot_be_built_is_said_with_a_way_on_where_no_registry_answers(
    shop: Shop, fake_docker: InMemoryDocker, tmp_path: Path, stderr: str, said: str
) -> None:
    (tmp_path / "corner" / "app").mkdir(parents=True)
    (tmp_path / "corner" / "app" / "Dockerfile").touch()
    fake_docker.says("buildx build *", stderr=stderr, exit_code=1)
    with pytest.raises(BadInput, match=r"scenario\.yaml:7: the image of shop cannot be built") as refused:
        images.service_image_ids(shop(image="build: ./app", depends_on="depends_on: []"))
    assert str(refused.value).partition("from ./app:")[2].startswith(said)


def test_a_dockerfile_is_built_where_the_program_that_would_read_it_cannot_be_pulled(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "corner" / "app").mkdir(parents=True)
    dockerfile = tmp_path / "corner" / "app" / "Dockerfile"
    dockerfile.write_text("# syntax=docker/dockerfile:1.4\n# escape=`\nFROM acme/base\n")
    built = []

    def docker(*arguments: str, **_: object) -> str:
        if arguments[:2] == ("buildx", "build"):
            file = Path(arguments[arguments.index("--file") + 1]) if "--file" in arguments else dockerfile
            built.append(file.read_text())
            if file == dockerfile:
                raise DockerFailed(["docker"], 1, f"{_NOT_HAD}docker.io/docker/dockerfile:1.4: no such host")
        return "sha256:1"

    monkeypatch.setattr(images, "docker", docker)
    images.service_image_ids(shop(image="build: ./app", depends_on="depends_on: []"))
    assert built[-1] == "# escape=`\nFROM acme/base\n"
    dockerfile.write_text("FROM acme/base\n")
    with pytest.raises(BadInput, match="cannot be built"):
        images.service_image_ids(shop(image="build: ./app", depends_on="depends_on: []"))


def test_a_knob_is_read_back_where_the_scenario_says(shop: Shop) -> None:
    told = "limit: connections, read_back: {page: /env, at: max.value}"
    role = shop(places=told, mode="values: [slow, quick], read_back: {page: /env, at: mode}").roles["shop"]
    assert readback_parser.own_pages(role) == ["http://127.0.0.1:9000/env"]
    page = {"max": {"value": "8"}, "mode": "slow"}
    assert readback_parser.parse_own_pages(role, {"http://127.0.0.1:9000/env": page}) == {"places": 8, "mode": "slow"}
    for other in ({}, None, {"max": 8, "mode": "slow"}, {"max": {"value": "many"}, "mode": None}):
        with pytest.raises(readback_parser.MissingSettings, match=r"mode|places"):
            readback_parser.parse_own_pages(
                role, {"http://127.0.0.1:9000/env": other | {"mode": None} if other else other}
            )
    with pytest.raises(BadInput, match="by plain HTTP alone"):
        shop(places=told, image="image: a\n    tls: true")


def test_a_scenario_says_how_its_image_is_built(shop: Shop) -> None:
    shop(image="build: {context: ., target: '1'}")
    effective = shop(image="build: {context: ., target: made, args: {DEBUG: true}}")
    built = effective.registry.services["shop"].build
    assert built is not None
    assert (built.context, built.args) == (".", {"DEBUG": True})


def test_a_script_of_one_s_own_asks_a_service_for_what_it_likes(shop: Shop) -> None:
    home = shop().place.home
    (home / "buy.js").write_text("export default function () {}\n")
    file = home / "scenario.yaml"
    text = file.read_text().replace("  load: {workload: users, users: 3, path: /}\n", "")
    text = text.replace("predictions:", "load: {script: ./buy.js}\npredictions:")
    file.write_text(text.replace("client.users.served == model.users_served", "client.requests.failed == 0"))
    assert resolve(str(home)).scenario.path == ["k6", "shop"]
