"""The stack as a stranger starts it: `docker compose up`, a page through nginx, each variable, each profile."""

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest

from formats.knob_types import format_duration
from formats.role import Boolean, Choice, DurationKnob, Integer, Knob, Role, Words
from lab.roles import readback_parser
from lab.roles.declared_roles import ROLES
from tools.stack import knobs_of, variable

from .conftest import HANG_S, ROOT, connlab, docker

# One project.
pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("stack")]

PROJECT = "connlab-stack-test"
# Beside a stack that its user has running.
PORTS = {"NGINX_PUBLISHED": "127.0.0.1:", "HAPROXY_PUBLISHED": "127.0.0.1:", "GATEWAY_PUBLISHED": "127.0.0.1:"}
PROFILES = ("haproxy", "gateway", "load", "observe", "observe-haproxy", "observe-gateway")


def compose(*arguments: str, files: tuple[Path, ...] = (), variables: Mapping[str, str] = {}) -> str:
    options = [part for file in files for part in ("--file", str(file))]
    command = ["docker", "compose", "--project-name", PROJECT, "--project-directory", str(ROOT), *options, *arguments]
    ended = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **PORTS, **variables},
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@contextmanager
def stack(*profiles: str, **variables: str) -> Iterator[None]:
    active = [part for profile in profiles for part in ("--profile", profile)]
    try:
        compose(*active, "up", "--detach", "--wait", "--no-build", variables=variables)
        yield
    finally:
        compose(
            *(part for profile in PROFILES for part in ("--profile", profile)), "down", "--timeout", "5", "--volumes"
        )


def page(service: str, path: str) -> str:
    address = compose("--profile", service, "port", service, "8080").strip()
    with urlopen(f"http://{address}{path}", timeout=60) as answer:
        return str(answer.read().decode())


def settings(role: Role) -> readback_parser.Settings:
    """What a program says of its settings, as a run reads them back."""
    spec = role.read_back
    assert spec is not None
    inside = ("--profile", role.group, "exec", "-T", role.group)
    if spec.file is not None:
        return readback_parser.parse_file(role, compose(*inside, "cat", f"/raw/{spec.file}"))
    path = str(spec.page).removeprefix("http://127.0.0.1:8081")
    ask = f"exec 3<>/dev/tcp/127.0.0.1/8081; printf 'GET {path} HTTP/1.0\\r\\n\\r\\n' >&3; sed '1,/^\\r$/d' <&3"
    return readback_parser.parse_page(role, json.loads(compose(*inside, "bash", "-c", ask)))


def other(knob: Knob) -> str:
    """A value that the knob may have and that is not its default."""
    match knob:
        case Integer():
            return str(max(int(knob.default) + 1, knob.minimum))
        case DurationKnob():
            return format_duration(int(knob.initial) + 1000)
        case Boolean():
            return "false" if knob.default else "true"
        case Choice() | Words():
            return next(value for value in knob.values if value not in ("", knob.default))
    raise AssertionError(knob)


# Beside virtual threads there is no pool to tell of, without TLS HAProxy has no line that offers HTTP/2, and nginx asks
# again for a server's name only where it keeps no connections to servers.
UNTOLD = {"backend.virtual_threads", "haproxy.http2", "nginx.resolver_valid"}


def read_back(role: Role) -> dict[str, Knob]:
    """The knobs that the stack has and that their program tells."""
    told = {name: knob for name, knob in role.knobs.items() if knob.read_back and role.knob(name) not in UNTOLD}
    offered = {name for name, _, _ in knobs_of(role)}
    return {name: knob for name, knob in told.items() if role.knob(name) in offered}


def expected(knob: Knob, text: str) -> object:
    return knob.model_copy(update={"default": _typed(knob, text)}).initial


def _typed(knob: Knob, text: str) -> object:
    if isinstance(knob, Boolean):
        return text == "true"
    return int(text) if isinstance(knob, Integer) else text


@pytest.mark.parametrize("server", ["tomcat", "jetty", "netty"])
def test_the_stack_answers_and_each_variable_of_each_program_takes_effect(server: str) -> None:
    proxies = [role for role in ROLES.values() if role.kind == "proxy"] if server == "tomcat" else [ROLES["nginx"]]
    roles = {role.group: role for role in (*proxies, ROLES["backend"].with_variant(server))}
    asked = {(name, field): other(knob) for name, role in roles.items() for field, knob in read_back(role).items()}
    variables = {variable(roles[name].knob(field)): value for (name, field), value in asked.items()}
    # A collector with the server alone: what it reads is the server's own page.
    beside = () if server == "tomcat" else ("observe",)
    with stack("haproxy", "gateway", *beside, BACKEND_SERVER=server, **variables):
        for proxy in proxies:
            assert len(page(proxy.group, "/api/delay?ms=1&bytes=3")) == 3
        for name, role in roles.items():
            found = settings(role)
            wanted = {field: expected(role.knobs[field], asked[name, field]) for field in read_back(role)}
            assert wanted, name
            assert {field: found.get(field) for field in wanted} == wanted, name
        for profile in beside:
            collector = ("--profile", profile, "exec", "-T", "collector-backend", "bash", "-c")
            compose(*collector, f"until test -s /raw/*/{server}.jsonl; do sleep 0.1; done")
            assert '"status":200' in compose(*collector, f"head -n 1 /raw/*/{server}.jsonl")


def test_a_load_and_collectors_by_profile_and_an_observation_of_the_whole_project() -> None:
    with stack("observe"):
        said = compose(
            "run", "--rm", "--no-deps", "k6", "run", "workloads/sequential.js", variables={"LOAD_REQUESTS": "7"}
        )
        assert "7 requests in" in said
        assert ", 0 failed" in said
        beside = ("--profile", "observe", "exec", "-T", "collector-nginx", "collector")
        metrics = compose(*beside, "http", "http://127.0.0.1:9645/metrics")
        assert 'instance="nginx"' in metrics
        # Its files outlive it: a second start neither writes over them nor fails.
        again = ("up", "--detach", "--wait", "--no-build", "--no-deps", "--force-recreate", "collector-nginx")
        compose("--profile", "observe", *again)
        assert len(compose(*beside[:-1], "bash", "-c", "ls -d /raw/*/samples.jsonl").split()) == 2
        seen = connlab("observe", "--compose", PROJECT, "--duration", "3s")
        assert seen.returncode == 0, seen.stderr
        # What shares a target's namespaces is not a second target.
        assert f"{PROJECT}-nginx-1 (nginx)" in seen.stdout
        assert f"{PROJECT}-backend-1 (Tomcat)" in seen.stdout
        assert (
            "collector"
            not in seen.stdout.partition("takes its collector")[2].partition("Report:")[0].partition("\n")[2]
        )


@pytest.mark.parametrize(
    ("image", "path", "status"), [("nginx", "/static.html", 200), ("haproxy", "/", 503), ("backend", "/api/delay", 200)]
)
def test_an_image_serves_with_nothing_set(image: str, path: str, status: int) -> None:
    name = f"{PROJECT}-{image}-alone"
    docker("run", "--detach", "--name", name, "--network", "none", f"connlab/{image}")
    ask = f"exec 3<>/dev/tcp/127.0.0.1/8080 && printf 'GET {path} HTTP/1.0\\r\\n\\r\\n' >&3 && head -n 1 <&3"
    try:
        said = docker("exec", name, "bash", "-c", f"until ({ask}) 2>/dev/null; do sleep 0.1; done")
        assert said.split()[1] == str(status)
    finally:
        docker("rm", "--force", name)


def test_a_collector_with_nothing_set_samples_its_own_namespace() -> None:
    name = f"{PROJECT}-collector-alone"
    docker("run", "--detach", "--name", name, "--network", "none", "--env", "CONNLAB_CAPTURE=off", "connlab/collector")
    try:
        docker("exec", name, "bash", "-c", "until test -s /raw/samples.jsonl; do sleep 0.1; done")
    finally:
        docker("rm", "--force", name)


def test_compose_builds_on_the_base_that_it_is_given(tmp_path: Path) -> None:
    """On the lab's own, as where no registry answers; under another name, so that the lab's image stays."""
    image = f"{PROJECT}-nginx"
    other_name = tmp_path / "name.yaml"
    other_name.write_text(json.dumps({"services": {"nginx": {"image": image}}}))
    files = (ROOT / "compose.yaml", other_name)
    try:
        compose("build", "nginx", files=files, variables={"CONNLAB_BASE": "connlab/base"})
        said = subprocess.run(
            ["docker", "run", "--rm", "--network", "none", image, "test"], check=False, capture_output=True, text=True
        )
        assert said.returncode == 0, said.stderr
    finally:
        subprocess.run(["docker", "rmi", "--no-prune", image], check=False, capture_output=True, timeout=60)
