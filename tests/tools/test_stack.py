"""The stack says what the roles' declarations say: in the images, in compose.yaml and in .env.example."""

import re
from typing import Any
from urllib.parse import urlsplit

from ruamel.yaml import YAML

from lab import paths
from lab.engines.compose.containers import container_name
from lab.roles.declared_roles import ROLES
from lab.scenarios.knobs import CATALOGUE
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
