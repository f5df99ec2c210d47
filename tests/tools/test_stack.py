"""The stack says what the roles' declarations say: in the images, in compose.yaml and in .env.example."""

import os
import re
import subprocess
from typing import Any
from urllib.parse import urlsplit

import pytest
from ruamel.yaml import YAML

from lab import paths
from lab.engines.compose.containers import container_name
from lab.roles.declared_roles import ROLES
from lab.scenarios.knobs import CATALOGUE, Knobs, environment
from tools import stack


def services() -> dict[str, dict[str, Any]]:
    return dict(YAML(typ="safe", pure=True).load(paths.COMPOSE_FILE.read_bytes())["services"])


def test_images_compose_file_and_example_have_what_the_declarations_say() -> None:
    stale = [file for file, text in stack.generated().items() if not file.is_file() or file.read_text() != text]
    assert stale == [], "make them again: .venv/bin/python -m tools.stack"


def test_each_setting_of_a_program_is_a_variable_of_its_knob_s_name() -> None:
    text = paths.COMPOSE_FILE.read_text()
    example = (paths.ROOT / ".env.example").read_text()
    wanted = {
        stack.variable(name)
        for role in ROLES.values()
        for name, knob in CATALOGUE.items()
        if knob.group == role.group and knob.env is not None
    }
    # The stack's k6 is given its workload as an argument.
    wanted -= {"LOAD_WORKLOAD", "LOAD_DASHBOARD"}
    # The stack has no CA.
    wanted = {one for one in wanted if "_TLS" not in one}
    assert "BACKEND_ACCEPT_COUNT" in wanted
    assert wanted <= set(re.findall(r"\$\{(\w+)", text))
    assert set(re.findall(r"\$\{(\w+)", text)) <= set(re.findall(r"^#(\w+)=", example, re.MULTILINE))


def test_a_program_is_ready_when_its_declaration_says_so() -> None:
    asked = {
        name: service["healthcheck"]["test"][-1]
        for name, service in services().items()
        if name in ROLES and "healthcheck" in service
    }
    assert asked == {name: urlsplit(role.ready).path for name, role in ROLES.items() if role.ready}


def test_every_role_has_a_service_that_its_runs_extend() -> None:
    found = {name: service for name, service in services().items() if service.get("profiles") == ["run"]}
    assert {f"run-{role}" for role in (*ROLES, "collector", "service", "holder")} == set(found)
    for name, service in found.items():
        assert service["cap_drop"] == ["ALL"], name
        assert service["read_only"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        # Nothing of the stack may reach a run: no port, no variable of the shell, no other network.
        assert not {"ports", "environment", "networks", "depends_on", "build"} & set(service), name
        assert ("cap_add" in service) == (name == "run-collector"), name


def test_the_stack_is_reached_from_its_own_machine_alone_and_through_a_proxy() -> None:
    published = {name: service["ports"] for name, service in services().items() if "ports" in service}
    assert set(published) == {name for name, role in ROLES.items() if role.kind == "proxy"}
    assert all(":-127.0.0.1:" in port for ports in published.values() for port in ports)
    assert all(
        service["networks"] == ["lab"]
        for name, service in services().items()
        if "networks" in service and name not in published
    )


def test_no_container_of_a_run_has_the_name_of_one_of_the_stack() -> None:
    # Compose names them connlab-<service>-<number>; `backend-1` is an instance of a run, too.
    started = [name for name, service in services().items() if service.get("profiles") != ["run"]]
    of_stack = {f"connlab-{name}-{number}" for name in started for number in (1, 2, 3)}
    of_run = {container_name(f"{before}{name}-1") for name in services() for before in ("", "collector-")}
    assert of_stack & of_run == set()


def test_who_builds_by_compose_has_the_lab_s_compilers() -> None:
    toolchain = (paths.SETUP / "toolchain.Dockerfile").read_text()
    release = re.search(r"GOTOOLCHAIN=(\S+)", toolchain)
    assert release is not None
    for image in ("collector", "gateway", "k6"):
        assert f"GOTOOLCHAIN={release[1]} " in (paths.ROOT / image / "Dockerfile").read_text(), image
    packages = "openjdk-25-jdk-headless maven"
    assert packages in toolchain
    assert packages in (paths.ROOT / "backend/Dockerfile").read_text()


def start(role: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Start a role's container as far as its knobs, with these beside the defaults of its image."""
    given = {**environment(Knobs(), ROLES[role].group), **variables}
    command = [str(paths.ROOT / role / "check-knobs"), "env"]
    return subprocess.run(
        command, env={"PATH": os.environ["PATH"], **given}, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("role", ROLES)
def test_a_program_gets_what_a_run_would_give_it_from_the_stack_s_defaults(role: str) -> None:
    written = {
        name: default
        for name, value in stack.stack_environment(role).items()
        if (default := re.sub(r"^\$\{\w+:?-(.*)\}$", r"\1", value)) != value
    }
    ended = start(role, **written)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert set(environment(Knobs(), ROLES[role].group).items()) <= {
        tuple(line.split("=", 1)) for line in ended.stdout.splitlines()
    }


@pytest.mark.parametrize(
    ("role", "name", "value"),
    [
        ("nginx", "PROXY_CONNECTION", "keep-alive"),
        ("nginx", "PROXY_CONNECTION", ""),
        ("nginx", "WORKER_PROCESSES", "auto"),
        ("nginx", "PROXY_NEXT_UPSTREAM", "off"),
        ("nginx", "PROXY_NEXT_UPSTREAM", "timeout http_503"),
        ("nginx", "FAIL_TIMEOUT", "24h"),
        ("haproxy", "POOL_MAX_CONN", "-1"),
        ("backend", "ACCEPT_COUNT", "1000000"),
        ("k6", "PATH", "/a-b/c.d_e~f"),
    ],
)
def test_a_program_starts_with_what_its_declaration_allows(role: str, name: str, value: str) -> None:
    ended = start(role, **{f"CONNLAB_{name}": value})
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize(
    ("role", "name", "value", "takes"),
    [
        ("nginx", "PROXY_CONNECTION", "nothing", "one of: close, keep-alive, or empty"),
        ("nginx", "WORKER_PROCESSES", "many", "from 1 to 64, or auto"),
        ("nginx", "MULTI_ACCEPT", "on", "true or false"),
        ("nginx", "FAIL_TIMEOUT", "1500ms", "a duration of at least 1s, a multiple of 1s, such as 10s"),
        ("nginx", "PROXY_NEXT_UPSTREAM", "off error", "some of: error, "),
        ("nginx", "PROXY_NEXT_UPSTREAM", "sometimes", "some of: error, "),
        ("nginx", "PROXY_NEXT_UPSTREAM", "", "some of: error, "),
        ("haproxy", "POOL_MAX_CONN", "-2", "from -1 to 1000000"),
        ("backend", "ACCEPT_COUNT", "0", "from 1 to 1000000"),
        ("backend", "ACCEPT_COUNT", "1000001", "from 1 to 1000000"),
        ("backend", "ACCEPT_COUNT", "", "from 1 to 1000000"),
        ("backend", "KEEP_ALIVE_TIMEOUT", "20", "a duration of at least 1ms, such as 20s"),
        ("backend", "KEEP_ALIVE_TIMEOUT", "0s", "a duration of at least 1ms, such as 20s"),
        ("backend", "KEEP_ALIVE_TIMEOUT", "25h", "a duration of at least 1ms, such as 20s"),
        ("gateway", "DISABLE_KEEP_ALIVES", "1", "true or false"),
        ("k6", "PATH", "a b", "begins with /"),
    ],
)
def test_a_program_refuses_what_its_declaration_does_not_allow(role: str, name: str, value: str, takes: str) -> None:
    ended = start(role, **{f"CONNLAB_{name}": value})
    shown = stack.variable(f"{ROLES[role].group}.{name.lower()}")
    assert ended.returncode == 2
    assert ended.stderr.startswith(
        f"{role}: {shown} (in the container: CONNLAB_{name}): '{value}' is not valid; {takes}"
    )
    assert ended.stderr.count("\n") == 1


def test_a_program_names_all_that_it_refuses_each_in_one_line() -> None:
    ended = start("backend", CONNLAB_ACCEPT_COUNT="1\n2", CONNLAB_THREADS_MAX="many")
    assert [line.partition(" (")[0] for line in ended.stderr.splitlines()] == [
        "backend: BACKEND_ACCEPT_COUNT",
        "backend: BACKEND_THREADS_MAX",
    ]


@pytest.mark.parametrize(
    ("server", "name", "value", "of"),
    [
        ("tomcat", "JETTY_THREADS_MAX", "9", "jetty"),
        ("jetty", "ACCEPT_COUNT", "1", "tomcat"),
        ("netty", "VIRTUAL_THREADS", "true", "tomcat or jetty"),
    ],
)
def test_a_program_refuses_a_setting_that_another_variant_has(server: str, name: str, value: str, of: str) -> None:
    ended = start("backend", CONNLAB_SERVER=server, **{f"CONNLAB_{name}": value})
    assert ended.returncode == 2
    assert ended.stderr == (
        f"backend: BACKEND_{name} (in the container: CONNLAB_{name}): '{value}' has no effect with"
        f" BACKEND_SERVER={server}; leave it out, or set BACKEND_SERVER to {of}\n"
    )


@pytest.mark.parametrize("server", ["tomcat", "jetty", "netty"])
def test_a_program_starts_as_each_variant_and_its_collector_reads_that_variant_s_page(server: str) -> None:
    ended = start("backend", CONNLAB_SERVER=server, CONNLAB_KEEP_ALIVE_TIMEOUT="20s")
    assert (ended.returncode, ended.stderr) == (0, "")
    read = services()["collector-backend"]["environment"]["CONNLAB_SCRAPE"]
    (page,) = ROLES["backend"].with_variant(server).scrape.items()
    assert re.sub(r"\$\{BACKEND_SERVER:-tomcat\}", server, read) == f"{page[0]}={page[1].url}"
