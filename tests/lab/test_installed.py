"""The wheel, installed into an environment of its own and used in an empty folder: it has all that the checkout has."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from lab import paths
from tests.lab.waiting import HANG_S

pytestmark = pytest.mark.xdist_group("installed")

Connlab = Callable[..., "subprocess.CompletedProcess[str]"]


def build(kind: str, source: Path, to: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "--target", kind, "--directory", str(to)]
    subprocess.run(command, cwd=source, check=True, capture_output=True, timeout=HANG_S)
    [built] = to.iterdir()
    return built


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", paths.ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel in it, and the packages that it needs as this one has them."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=HANG_S)
    python = folder / "bin" / "python"
    install = ["--no-deps", "--no-index", "--no-compile", "--disable-pip-version-check", str(wheel)]
    subprocess.run(
        [sys.executable, "-m", "pip", "--python", str(python), "install", *install],
        check=True,
        capture_output=True,
        timeout=HANG_S,
    )
    [packages] = folder.glob("lib/python3*/site-packages")
    (packages / "others.pth").write_text(sysconfig.get_path("purelib"))
    return folder


@pytest.fixture
def connlab(environment: Path, tmp_path: Path) -> Connlab:
    """The program, in an empty folder."""
    empty = tmp_path / "empty"
    empty.mkdir()
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CONNLAB_", "PYTHON"))}
    given = kept | {"XDG_CACHE_HOME": str(tmp_path / "cache"), "CONNLAB_FLOWS": str(paths.CACHE / "bin" / "flows")}

    def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
        program = str(environment / "bin" / "connlab")
        return subprocess.run(
            [program, *arguments], cwd=empty, env=given, capture_output=True, text=True, check=False, timeout=HANG_S
        )

    return run


def test_the_wheel_of_the_sdist_is_the_wheel_of_the_checkout(wheel: Path, tmp_path: Path) -> None:
    sdist = build("sdist", paths.ROOT, tmp_path / "sdist")
    (tmp_path / "source").mkdir()
    # Python 3.11.2 knows no filter, and 3.13 warns without one.
    subprocess.run(["tar", "-xf", sdist, "-C", tmp_path / "source"], check=True, timeout=HANG_S)
    [source] = (tmp_path / "source").iterdir()
    assert contents(build("wheel", source, tmp_path / "wheel")) == contents(wheel)


def contents(wheel: Path) -> dict[str, tuple[int, int]]:
    """Each file with its checksum and its mode."""
    with zipfile.ZipFile(wheel) as archive:
        return {one.filename: (one.CRC, one.external_attr) for one in archive.infolist()}


def test_an_image_has_the_fingerprint_that_it_has_in_a_checkout(environment: Path) -> None:
    [shipped] = environment.glob("lib/python3*/site-packages/lab/shipped")
    command = ["setup/images.sh", "fingerprints"]
    ours, theirs = (
        subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, timeout=HANG_S).stdout
        for folder in (paths.ROOT, shipped)
    )
    assert theirs == ours


def test_it_lists_shows_and_checks_scenarios(connlab: Connlab) -> None:
    listed = json.loads(connlab("list", "--json").stdout)
    assert len(listed) == len(list(paths.SCENARIOS.glob("*/scenario.yaml")))
    assert connlab("show", "accept-queue-overflow").returncode == 0
    assert connlab("run", "accept-queue-overflow", "--set=no.such=1", "--check").returncode == 2
    assert connlab("run", "./shop").stderr.endswith("; 'connlab new ./shop' writes one\n")
    dry = connlab("run", "accept-queue-turns", "--dry-run")
    assert (dry.returncode, dry.stderr) == (0, "")


def test_a_new_scenario_lies_where_the_user_stands_and_can_be_checked(connlab: Connlab, tmp_path: Path) -> None:
    made = connlab("new", "shop")
    assert made.stdout.splitlines()[-1] == "run it: connlab run ./shop"
    assert "$ connlab run ./shop\n" in (tmp_path / "empty" / "shop" / "README.md").read_text()
    assert connlab("show", "./shop").returncode == 0


def test_it_reports_and_explains_a_run_from_elsewhere(connlab: Connlab, tmp_path: Path) -> None:
    shutil.copytree(paths.ROOT / "docs" / "example", tmp_path / "empty" / "example")
    reported = connlab("report", "./example")
    assert (reported.returncode, reported.stderr) == (0, "")
    assert reported.stdout.splitlines() == ["example/report.html", "next, in the browser: connlab open example"]
    page = (tmp_path / "empty" / "example" / "report.html").read_text()
    assert "make " not in page.partition("<script")[0]
    explained = connlab("explain", "./example", "--top=1")
    assert explained.stdout.splitlines()[-1] == "next, which knob would help: connlab advise example"
    assert not (tmp_path / "cache").exists()
