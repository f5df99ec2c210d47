"""A scenario's Compose files: what of them takes part in a run, what is left out with a line, what is refused."""

import json
import re
import shutil
from collections.abc import Callable, Mapping
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

import pytest

from analysis.evidence.rawfiles import Places
from lab.engines.compose import images
from lab.engines.compose.run_file import build_run_file, run_compose, write_run_file
from lab.errors import BadInput, LabError
from lab.scenarios.resolve import resolve
from lab.scenarios.resolved import ResolvedScenario
from lab.scenarios.topology import topology_of
from tests.lab.support import extended

pytestmark = pytest.mark.skipif(shutil.which("docker") is None, reason="Docker Compose itself reads these files")

SCENARIO = """\
schema: 1
title: t
question: q?
path: [k6, web]
compose: ./compose.yaml
knobs: {load: {path: /}}
predictions: [{id: one, description: s, expression: client.requests.failed == 0}]
"""

Project = Callable[..., ResolvedScenario]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Resolve a scenario beside a Compose file and other files, with parts of its text replaced."""

    def make(compose: str, *changes: tuple[str, str], files: Mapping[str, str] = {}) -> ResolvedScenario:
        home = tmp_path / "shop"
        for name, text in {"compose.yaml": compose, **files}.items():
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).write_text(text)
        text = SCENARIO
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        (home / "scenario.yaml").write_text(text)
        return resolve(str(home))

    return make


def web(text: str) -> str:
    return f"services:\n  web: {{image: acme/web, expose: [80], {text}}}\n"


def run_services(found: ResolvedScenario) -> dict[str, Any]:
    made = build_run_file(found, topology_of(found), "r", Places(Path("/run")), IPv4Network("198.18.0.0/24"))
    return extended(made["services"])


# What becomes of each feature, as docs/compatibility.md may list it: the file, and what the lab makes of the service.
TAKEN: dict[str, tuple[str, dict[str, Any]]] = {
    "entrypoint": ("entrypoint: /start --now", {"entrypoint": ["/start", "--now"]}),
    "command as text": ("command: 'serve \"a b\" $$HOME'", {"command": ["serve", "a b", "$HOME"]}),
    "environment": ("environment: [A=b, 'C=${N:-d}']", {"environment": {"A": "b", "C": "d"}}),
    "user": ("user: '70'", {"user": "70"}),
    "user of the image": ("working_dir: /app", {"user": "image", "working_dir": "/app"}),
    "read_only": ("read_only: true", {"read_only": True}),
    "tmpfs": ("tmpfs: '/run:size=5m'", {"writable": ["/run"]}),
    "named volume": ("volumes: ['/data', './compose.yaml:/c:ro']", {"volumes": ["/data", "./compose.yaml:/c"]}),
    "shm_size": ("shm_size: 64m", {"shm_size": "67108864"}),
    "sysctls": ("sysctls: [net.core.somaxconn=99]", {"sysctls": {"net.core.somaxconn": "99"}}),
    "ulimits": ("ulimits: {nofile: 65536}", {"ulimits": {"nofile": 65536}}),
    "cap_drop": ("cap_drop: [ALL], cap_add: [CHOWN]", {"capabilities": ["CHOWN"]}),
    "init": ("init: true", {"init": True}),
    "stop_signal": ("stop_signal: SIGINT", {"stop_signal": "SIGINT"}),
    "healthcheck": ("healthcheck: {test: check me}", {"ready": ["/bin/sh", "-c", "check me"]}),
    "healthcheck as a list": ("healthcheck: {test: [CMD, check]}", {"ready": ["check"]}),
    "healthcheck that is none": ("healthcheck: {disable: true}", {"ready": None}),
    "extra_hosts": ("extra_hosts: ['a:192.0.2.7']", {"extra_hosts": {"a": "192.0.2.7"}}),
    "container_name": ("container_name: the_web", {"aliases": ["the_web"]}),
    "replicas": ("deploy: {replicas: 3}", {"instances": 3}),
    "port": ("ports: ['8080:3000']", {"port": 3000}),
}


@pytest.mark.parametrize("name", TAKEN)
def test_a_service_runs_as_its_file_says(project: Project, name: str) -> None:
    text, expected = TAKEN[name]
    service = project(web(text)).registry.services["web"]
    assert {key: getattr(service, key) for key in expected} == expected


LEFT_OUT = {
    "keys without a use": (
        "restart: always, labels: [a=b], ports: ['80:80']",
        "no use for them: labels .*ports .*rest",
    ),
    "privileged": ("privileged: true", r"compose\.yaml:2: web: privileged is left out: a run has nothing privileged"),
    "host network": ("network_mode: host", "web: network_mode is left out: it has a network namespace of its own"),
    "the host's processes": ("pid: host", "web: pid is left out"),
    "devices": ("devices: [/dev/kvm]", "web: devices is left out: a run has no devices of this machine"),
    "the engine's socket": ("volumes: ['/var/run/docker.sock:/s']", "the engine's socket is left out"),
    "a mount of the machine": ("volumes: ['/etc:/e']", "web: /etc is left out: it lies outside .*; copy it into shop/"),
    "a mount of the user's": ("volumes: ['~/.ssh:/e']", r"web: /~/\.ssh is left out: it lies outside"),
    "a folder that is not there": ("volumes: ['./none:/e']", "so /e is empty"),
    "a capability": ("cap_add: [SYS_ADMIN]", "the capability SYS_ADMIN is left out: a run does not give it"),
    "a security option": ("security_opt: ['seccomp:unconfined']", "seccomp:unconfined is left out"),
    "the gateway": ("extra_hosts: ['host.docker.internal:host-gateway']", "a run has no way to host-gateway"),
    "a variable of the shell": ("environment: [TOKEN]", r"variables of your shell are left out: TOKEN \(web\)"),
    "a variable without a value": (
        "environment: ['A=${TOKEN}']",
        "these variables have no value, and are empty: TOKEN",
    ),
}


@pytest.mark.parametrize("name", LEFT_OUT)
def test_what_has_no_place_in_a_run_is_left_out_with_a_line(
    project: Project, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("TOKEN", "of the shell")
    text, said = LEFT_OUT[name]
    found = project(web(text))
    assert re.search(said, "\n".join(found.registry.notices))
    (service,) = [one for one in run_services(found).values() if one["image"] == "acme/web"]
    assert "of the shell" not in json.dumps(service)
    assert not {"privileged", "devices", "ipc"} & set(service)
    assert not [one for one in service["volumes"] if one["type"] == "bind"]
    assert "SYS_ADMIN" not in service.get("cap_add", [])
    assert service["security_opt"] == ["no-new-privileges:true"]


REFUSED = {
    "broken YAML": ("services:\n  web: {image: a,,}\n", r"compose\.yaml:2: broken YAML"),
    "an unknown key": (web("imagee: a"), r"compose\.yaml:2: Docker Compose refuses it: .*imagee is not allowed"),
    "a required variable": (
        web("command: '${A:?needed}'"),
        r"compose\.yaml:2: .*variable A is missing a value: needed",
    ),
    "no image": ("services:\n  web: {command: a}\n", "neither an image nor a build context"),
    "a base elsewhere": (web("extends: {file: ../b.yaml, service: b}"), r"\.\./b\.yaml leads out of the folder"),
    "an include elsewhere": (f"include: [/etc/passwd]\n{web('init: true')}", "/etc/passwd leads out of the folder"),
    "by an anchor": (
        f"x-all: &all {{env_file: /etc/passwd}}\n{web('<<: *all')}",
        r"compose\.yaml:1: /etc/passwd leads out of the folder",
    ),
    "by a variable": (web("env_file: '${UP}secret.env'"), r"\$\{UP\}secret\.env leads out of the folder"),
    "no such service": (
        "services:\n  wep: {image: a}\n",
        r"scenario\.yaml:4: .*has no service 'web'; did you mean 'wep'",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_run_is_refused_with_its_place(project: Project, tmp_path: Path, name: str) -> None:
    for file in ("secret.env", "b.yaml"):
        (tmp_path / file).write_text("SECRET=1\n")
    text, said = REFUSED[name]
    with pytest.raises(BadInput, match=said):
        project(text, files={".env": "UP=../\n"})


def test_a_link_leads_no_further_than_its_folder(project: Project, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("SECRET=1\n")
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "link").symlink_to(tmp_path / "secret")
    with pytest.raises(BadInput, match="link leads out of the folder"):
        project(web("env_file: ./link"))
    assert "link is left out" in "\n".join(project(web("volumes: ['./link:/e']")).registry.notices)
    (tmp_path / "shop" / ".env").symlink_to(tmp_path / "secret")
    with pytest.raises(BadInput, match=r"\.env is a link to another folder"):
        project(web("init: true"))


def test_files_variables_bases_and_profiles_are_read_as_compose_reads_them(project: Project) -> None:
    found = project(
        "include: [more/db.yaml]\nx-base: &base {environment: {A: '${TAG}'}}\nservices:\n"
        "  web: {<<: *base, extends: {file: base.yaml, service: any}, env_file: web.env, profiles: [never],\n"
        "    depends_on: {db: {condition: service_healthy}}}\n",
        files={
            ".env": "TAG=1.2\n",
            "web.env": "B=two\n",
            "base.yaml": "services: {any: {image: 'acme/web:${TAG}', expose: [81]}}\n",
            "more/db.yaml": "services: {db: {image: postgres, healthcheck: {test: pg_isready}}}\n",
        },
    )
    service = found.registry.services["web"]
    assert (service.image, service.port, service.environment) == ("acme/web:1.2", 81, {"A": "1.2", "B": "two"})
    assert run_services(found)["web-1"]["depends_on"] == {"db": {"condition": "service_healthy"}}


def test_an_example_of_variables_stands_for_the_env_file_that_is_missing(project: Project) -> None:
    found = project(web("environment: ['A=${TAG}']"), files={"env.example": "TAG=7\n"})
    assert found.registry.services["web"].environment == {"A": "7"}
    assert "the values of variables are those of env.example" in found.registry.notices[0]


def test_files_that_compose_merges_are_one_project(project: Project) -> None:
    more = ("compose: ./compose.yaml", "compose: [./compose.yaml, ./more.yaml]")
    found = project(web("init: true"), more, files={"more.yaml": "services: {web: {image: acme/other}}\n"})
    assert found.registry.services["web"].image == "acme/other"


SHOP = """\
services:
  web: {image: acme/web, ports: ["80:3000"], depends_on: [queue], networks: {a: {aliases: [www]}}}
  backend: {build: ./app, environment: {DB: "postgres://db:5432/x"}, secrets: [key], configs: [list]}
  db: {image: "postgres:17", volumes: ["data:/var/lib/postgresql"]}
  queue: {image: redis, depends_on: {first_run: {condition: service_completed_successfully}}}
  first_run: {image: acme/job}
  other: {image: acme/other, volumes: ["data:/d"]}
volumes: {data: {}}
networks: {a: {}}
secrets: {key: {file: ./key.txt}}
configs: {list: {content: "a $$b"}}
"""
APP = {"app/Dockerfile": "FROM base:1\nEXPOSE 8000\n", "key.txt": "k"}


def test_a_whole_project_is_a_path(project: Project) -> None:
    found = project(SHOP, ("[k6, web]", "[k6, web, backend, db]"), files=APP)
    own = found.registry.services
    assert found.scenario.path == ["k6", "web", "backendservice", "db"]
    assert [own[name].port for name in found.scenario.path[1:]] == [3000, 8000, 5432]
    # Each asks the one behind it, and what a service needs comes along.
    assert (own["web"].depends_on, own["backendservice"].depends_on) == (["queue", "backendservice"], ["db"])
    assert topology_of(found).needed == ("first-run", "queue")
    said = "\n".join(found.registry.notices)
    assert "the service backend is called backendservice here" in said
    assert "not part of the run: other" in said


def test_a_file_or_a_dockerfile_that_is_not_there_has_its_line(project: Project) -> None:
    with pytest.raises(BadInput, match=r"compose\.yaml:3: there is no Dockerfile in app; the engine builds"):
        project("services:\n  web:\n    build: ./app\n    ports: ['80:3000']\n", files={"app/x": ""})
    with pytest.raises(BadInput, match=r"no Compose file \./compose\.yml; did you mean 'compose\.yaml'"):
        project(SHOP, ("./compose.yaml", "./compose.yml"), files=APP)


def test_a_run_s_file_has_names_volumes_and_files_of_the_project(project: Project, tmp_path: Path) -> None:
    found = project(SHOP, ("[k6, web]", "[k6, web, backend, db]"), files=APP)
    content = build_run_file(found, topology_of(found), "r", Places(tmp_path), IPv4Network("198.18.0.0/24"))
    file = tmp_path / "compose.run.yaml"
    write_run_file(content, file)
    whole = json.loads(run_compose(file, "config", "--format", "json"))
    made = whole["services"]
    assert made["collector-backendservice-1"]["networks"]["lab"]["aliases"] == [
        "backendservice-1",
        "backendservice",
        "backend",
    ]
    assert made["collector-web-1"]["networks"]["lab"]["aliases"] == ["web-1", "web", "www"]
    assert made["first-run"]["networks"]["lab"]["aliases"] == ["first_run"]
    assert made["queue"]["depends_on"]["first-run"]["condition"] == "service_completed_successfully"
    assert made["db-1"].get("read_only", False) is False
    assert ("data", "/var/lib/postgresql") in [(one.get("source"), one["target"]) for one in made["db-1"]["volumes"]]
    assert whole["volumes"]["data"]["labels"] == {"connlab.run": "r"}
    mounted = {one["target"] for one in made["backendservice-1"]["volumes"]}
    assert "/run/secrets/key" in mounted
    (config,) = made["backendservice-1"]["configs"]
    assert (config["target"], whole["configs"][config["source"]]["content"]) == ("/list", "a $$b")


def test_the_scenario_adds_to_a_service_of_the_project(project: Project) -> None:
    more = "services:\n  web: {port: 81, environment: {A: b}, knobs: {n: {env: N, default: 3}}, depends_on: [other]}\n"
    found = project(SHOP, ("knobs:", f"{more}  db: {{ready: [pg_isready]}}\nknobs:"), files=APP)
    service = found.registry.services["web"]
    assert (service.port, service.image, service.environment) == (81, "acme/web", {"A": "b"})
    assert (found.values["web.n"], service.depends_on) == (3, ["other"])
    assert found.registry.services["other"].image == "acme/other"
    with pytest.raises(BadInput, match=r"scenario\.yaml:7: services\.web\.port must be at least 1"):
        project(SHOP, ("knobs:", "services:\n  web: {port: 0}\nknobs:"), files=APP)


def test_a_service_that_the_scenario_declares_itself_stands_in_place_of_the_project_s(project: Project) -> None:
    more = ("knobs:", "services: {queue: {image: acme/queue}}\nknobs:")
    registry = project(SHOP, more, files=APP).registry
    assert (registry.services["queue"].image, set(registry.services)) == ("acme/queue", {"web", "queue"})
    assert "nothing of the service queue is taken" in "\n".join(registry.notices)


def test_one_service_of_a_file_above_the_scenario_is_named_in_services(tmp_path: Path) -> None:
    home = tmp_path / "shop" / "lab"
    home.mkdir(parents=True)
    (tmp_path / "shop" / "app").mkdir()
    (tmp_path / "shop" / "app" / "Dockerfile").write_text("FROM base:1\n")
    compose = "services: {web: {build: ./app, image: acme/web, volumes: ['./app:/a'], ports: ['80:80']}}\n"
    (tmp_path / "shop" / "compose.yaml").write_text(compose)
    service = "services: {web: {compose: ../compose.yaml, service: web}}"
    (home / "scenario.yaml").write_text(SCENARIO.replace("compose: ./compose.yaml", service))
    found = resolve(str(home)).registry.services["web"]
    assert found.build is not None
    assert (found.build.context, found.volumes, found.port) == ("../app", ["../app:/a"], 80)
    ignoring = service.replace("service: web", "service: web, ignore: [build, ports]")
    (home / "scenario.yaml").write_text(SCENARIO.replace("compose: ./compose.yaml", ignoring))
    found = resolve(str(home)).registry.services["web"]
    assert (found.build, found.image, found.port) == (None, "acme/web", 8080)


def test_a_generator_stands_before_a_whole_project(project: Project) -> None:
    load = ("knobs: {load: {path: /}}", "load: {jmeter: '-t a.jmx -l /raw/a', results: {file: a, format: jmeter}}")
    found = project(SHOP, ("[k6, web]", "[jmeter, web]"), load, files={**APP, "a.jmx": ""})
    assert found.scenario.path == ["jmeter", "web"]


PROXY = """\
services:
  front: {image: "nginx:1.29", volumes: ["./front.conf:/etc/nginx/conf.d/default.conf"], ports: ["80:80"]}
  web: {image: acme/web}
  web2: {image: acme/web}
  files: {image: acme/files}
"""
FRONT = {
    "front.conf": "upstream all { server web:3000; server web2:3000; }\n"
    "server { listen 80; location / { proxy_pass http://all; } location /f { proxy_pass http://files:81; } }\n"
}
THROUGH_FRONT = ("[k6, web]", "[k6, front, web]")


def test_a_proxy_whose_configuration_the_scenario_s_folder_lacks_runs_itself_and_says_so(tmp_path: Path) -> None:
    home = tmp_path / "shop" / "lab"
    home.mkdir(parents=True)
    (tmp_path / "shop" / "compose.yaml").write_text(PROXY.replace("acme/web}", "acme/web, expose: [3000]}", 1))
    (tmp_path / "shop" / "front.conf").write_text(FRONT["front.conf"])
    text = SCENARIO.replace("./compose.yaml", "../compose.yaml").replace(*THROUGH_FRONT)
    (home / "scenario.yaml").write_text(text)
    found = resolve(str(home))
    assert found.scenario.path == ["k6", "front", "web"]
    assert "../front.conf lies outside of the scenario's folder" in "\n".join(found.registry.notices)


def test_a_proxy_with_its_configuration_is_the_lab_s(project: Project) -> None:
    found = project(PROXY, THROUGH_FRONT, files=FRONT)
    own = found.registry.services
    assert found.scenario.path == ["k6", "nginx", "web"]
    assert found.scenario.configurations["nginx"].config == "./front.conf"
    assert found.roles["nginx"].port == 80
    # The port is the one that the proxy asks for; two that are alike in one upstream are two instances.
    assert (own["web"].port, own["web"].instances) == (3000, 2)
    # What else it leads to stays what it is.
    assert found.scenario.configurations["nginx"].hosts == {"files": "files"}
    assert (own["files"].port, topology_of(found).needed) == (81, ("files",))
    assert "files" in run_services(found)["nginx"]["depends_on"]
    said = "\n".join(found.registry.notices)
    assert "the lab's nginx stands for front, with ./front.conf" in said
    assert "web2 of the same upstream and image: instances of web" in said
    assert "not part of the run" not in said


def test_a_proxy_s_hosts_name_a_next_service_that_has_another_name_here(project: Project) -> None:
    compose = PROXY.replace("web: {", "web_app: {").replace("  web2: {image: acme/web}\n", "")
    front = (
        "server { listen 80; location / { proxy_pass http://web_app:3000; } location /f { proxy_pass http://files; }"
    )
    front += " location /x { proxy_pass http://gone:82; } }\n"
    through = ("[k6, web]", "[k6, front, web_app]\nnginx: {hosts: {gone: files}}")
    found = project(compose, through, files={"front.conf": front})
    assert found.scenario.path == ["k6", "nginx", "webapp"]
    hosts = found.scenario.configurations["nginx"].hosts
    assert hosts == {"files": "files", "web_app": "webapp", "gone": "files"}


def test_a_proxy_that_is_built_or_filled_in_is_recognised_too(project: Project) -> None:
    build = "{build: ./p, environment: [WEB=web:3000]}"
    files = {"p/Dockerfile": "FROM nginx:1\nCOPY c /etc/nginx/conf.d/default.conf\n"}
    files["p/c"] = "server { listen 81; location / { proxy_pass http://$WEB; } }\n"
    text = f"services:\n  front: {build}\n  web: {{image: acme/web}}\n"
    found = project(text, THROUGH_FRONT, files=files)
    assert (found.roles["nginx"].port, found.registry.services["web"].port) == (81, 3000)
    # Pages that its image alone has are nothing for the lab's.
    files["p/Dockerfile"] += "COPY . /usr/share/nginx/html\n"
    found = project(text.replace("}\n", ", expose: [81]}\n", 1), THROUGH_FRONT, files=files)
    assert found.scenario.path == ["k6", "front", "web"]


def test_without_a_docker_client_it_is_said_what_is_missing(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    with pytest.raises(LabError, match="there is no docker client here, and 'docker compose config' reads") as said:
        project(web("init: true, command: other"))
    assert "install" in str(said.value.hint)


def test_an_image_is_built_with_the_file_s_arguments_and_stage(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = "{context: ./app, dockerfile: Dockerfile.web, target: slim, args: [JAR=app.jar, 'SLIM=${SLIM:-1}']}"
    found = project(
        f"services: {{web: {{expose: [80], build: {build}}}}}\n", files={"app/Dockerfile.web": "FROM base:1 AS slim\n"}
    )
    calls: list[tuple[str, ...]] = []

    def docker(*arguments: str, **_: object) -> str:
        calls.append(arguments)
        return "sha256:1"

    monkeypatch.setattr(images, "docker", docker)
    images.service_image_ids(found)
    (built,) = [call for call in calls if call[:2] == ("buildx", "build")]
    app = str((found.place.home / "app").resolve())
    assert (built[-1], built[built.index("--file") + 1]) == (app, f"{app}/Dockerfile.web")
    assert built[built.index("--target") + 1] == "slim"
    assert [one for one in built if one.startswith("--build-arg")] == ["--build-arg=JAR=app.jar", "--build-arg=SLIM=1"]


def test_the_lab_s_form_says_what_is_wrong_at_the_file_s_line(project: Project) -> None:
    with pytest.raises(BadInput, match=r"compose\.yaml:2: .*'a b' is not a folder in the container"):
        project(web("tmpfs: 'a b'"))
