"""The lab has one version and one licence, NOTICE names what is not its own, and what builds fetch has a checksum."""

import hashlib
import json
import re
import subprocess
import tomllib
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from lab import paths
from lab.cli import main
from lab.runs import machine
from tests.lab.support import FakeDocker

PROJECT = tomllib.loads((paths.ROOT / "pyproject.toml").read_text())["project"]
VERSION: str = PROJECT["version"]
POM = "{http://maven.apache.org/POM/4.0.0}"
# The digest of the text as the Apache Software Foundation publishes it.
APACHE_2_0 = "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"

VENDORED = sorted(file for file in paths.ROOT.glob("analysis/*/vendor/*") if file.is_file())
BACKEND = paths.ROOT / "backend"
SUMS = BACKEND / ".mvn" / "checksums" / "checksums.sha256"
POST_PROCESSOR = "-Daether.artifactResolver.postProcessor.trustedChecksums"


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
    subprocess.run([paths.SETUP / "images.sh", "nginx"], check=True, capture_output=True, timeout=60)
    [build] = [call for call in docker_program.calls if "--tag connlab/nginx " in call]
    assert re.search(
        rf"--label connlab.source=[0-9a-f]{{16}} --label org.opencontainers.image.version={VERSION} ", build
    )


def test_the_licence_is_the_whole_text_as_published() -> None:
    assert hashlib.sha256((paths.ROOT / "LICENSE").read_bytes()).hexdigest() == APACHE_2_0


@pytest.mark.parametrize("file", VENDORED, ids=lambda file: file.name)
def test_notice_names_every_vendored_file(file: Path) -> None:
    assert str(file.relative_to(paths.ROOT)) in (paths.ROOT / "NOTICE").read_text()


def test_notice_repeats_the_notice_of_what_is_vendored() -> None:
    notice = (paths.ROOT / "NOTICE").read_text()
    for file in paths.ROOT.glob("analysis/*/vendor/*.NOTICE"):
        assert [line for line in file.read_text().splitlines() if line not in notice] == []


@pytest.mark.parametrize("dockerfile", sorted(paths.ROOT.glob("*/Dockerfile")), ids=lambda file: file.parent.name)
def test_a_role_s_image_says_under_which_licences_it_is(dockerfile: Path) -> None:
    [said] = re.findall(r'(?m)^LABEL org\.opencontainers\.image\.licenses="(.*)"$', dockerfile.read_text())
    links_k6 = dockerfile.parent.name == "k6"
    assert said == "AGPL-3.0-only" if links_k6 else said.startswith("Apache-2.0 AND ")


def test_maven_refuses_what_has_no_checksum_or_another_one() -> None:
    """Maven itself was seen to refuse both; it reads these options wherever it is called in the backend's folder."""
    options = (BACKEND / ".mvn" / "maven.config").read_text().split()
    assert {"--strict-checksums", f"{POST_PROCESSOR}=true", f"{POST_PROCESSOR}.failIfMissing=true"} <= set(options)
    assert not [option for option in options if "record" in option]
    dockerfile = (BACKEND / "Dockerfile").read_text()
    assert dockerfile.index("COPY .mvn .mvn") < dockerfile.index("mvn --batch-mode")


def test_the_checksums_are_of_artifacts_and_name_no_host() -> None:
    lines = SUMS.read_text().splitlines()
    assert all(re.fullmatch(r"[0-9a-f]{64}  [\w.+-]+(/[\w.+-]+)+\.(pom|jar)", line) for line in lines)
    names = [line.split()[1] for line in lines]
    assert len(set(names)) == len(names) > 100
    parent = r"<artifactId>spring-boot-starter-parent</artifactId>\s*<version>(.+?)</version>"
    version = re.search(parent, (BACKEND / "pom.xml").read_text())
    assert version is not None
    boot = "org/springframework/boot/spring-boot-starter-parent"
    assert f"{boot}/{version[1]}/spring-boot-starter-parent-{version[1]}.pom" in names, "run: make checksums"
