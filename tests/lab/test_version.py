"""The lab has one version: pyproject.toml says it, and what cannot be made from it agrees."""

import json
import re
import subprocess
import tomllib
from xml.etree import ElementTree as ET

import pytest

from lab import paths
from lab.cli import main
from lab.runs import machine
from tests.lab.support import FakeDocker

PROJECT = tomllib.loads((paths.ROOT / "pyproject.toml").read_text())["project"]
VERSION: str = PROJECT["version"]
POM = "{http://maven.apache.org/POM/4.0.0}"


def test_the_command_line_and_a_run_s_manifest_say_it(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert (ended.value.code, capsys.readouterr().out) == (0, f"connlab {VERSION}\n"), "run: setup/python.sh dev"
    assert machine.lab_version().version == VERSION


def test_the_backend_s_project_repeats_version_and_licence() -> None:
    pom = ET.parse(paths.ROOT / "backend" / "pom.xml").getroot()  # noqa: S314 # our own file
    assert (pom.findtext(f"{POM}version"), pom.findtext(f"{POM}licenses/{POM}license/{POM}name")) == (
        VERSION,
        PROJECT["license"],
    )


def test_the_changelog_begins_with_it() -> None:
    newest = re.search(r"(?m)^## (\S+)", (paths.ROOT / "CHANGELOG.md").read_text())
    assert newest is not None
    assert newest[1] == VERSION


@pytest.mark.parametrize("room", ["k6", "tests/pages"])
def test_packages_that_nobody_publishes_have_no_version_of_their_own(room: str) -> None:
    package = json.loads((paths.ROOT / room / "package.json").read_text())
    assert (package["private"], package["license"], "version" in package) == (True, PROJECT["license"], False)


def test_an_image_is_labelled_with_it(docker_program: FakeDocker) -> None:
    docker_program.says('"image inspect"*connlab/base', "sha256:base")
    subprocess.run([paths.SETUP / "images.sh", "nginx"], check=True, capture_output=True, timeout=60)
    [build] = [call for call in docker_program.calls if call.startswith("buildx build ")]
    assert re.search(
        rf"--label connlab.source=[0-9a-f]{{16}} --label org.opencontainers.image.version={VERSION} ", build
    )
