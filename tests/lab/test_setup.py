"""The set-up's scripts, in a copy and with programs that only pretend: how they end, and what they leave."""

import hashlib
import os
import platform
import shutil
import signal
import subprocess
import threading
from pathlib import Path

import pytest

from lab import paths
from lab.engines.compose import images
from lab.signals import Interrupted
from tests.lab.support import FakeDocker
from tests.lab.waiting import APT_GET, HANG_S, end_by, is_at_work, run_program, wait_until, write_program


def script(folder: Path, *lines: str) -> Path:
    """A script as those of the set-up are, whose long command is `work`: it says who it is and would work for long."""
    head = ("#!/usr/bin/env bash", "set -euo pipefail", f"source {paths.SETUP}/lib.sh")
    work = f"work() {{ sleep 600 & echo $! >{folder}/pid.part; mv {folder}/pid.part {folder}/pid; wait; }}"
    return write_program(folder / "script.sh", "\n".join([*head, work, *lines, ""]))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_set_up_with_all_that_it_has_started(tmp_path: Path, number: signal.Signals) -> None:
    file = script(tmp_path, f"trap 'touch {tmp_path}/cleared' EXIT", "quietly 'long work' work", "say 'after it'")
    code, said = end_by(number, (tmp_path / "pid").exists, file)
    assert code == 4
    assert "connlab set-up: long work: interrupted; the log is in /" in said
    assert "after it" not in said
    assert (tmp_path / "cleared").exists()
    wait_until(lambda: not is_at_work(int((tmp_path / "pid").read_text())))


def test_a_signal_after_the_long_work_is_nobody_s_to_answer(tmp_path: Path) -> None:
    ended = run_program(script(tmp_path, "quietly 'short work' true", "kill -TERM $$"))
    assert ended.returncode == -signal.SIGTERM
    assert "short work: done" in ended.stderr


def test_an_interrupted_build_of_images_ends_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(tmp_path, "quietly 'long work' work").rename(tmp_path / "images.sh")
    monkeypatch.setattr(paths, "SETUP", tmp_path)

    def interrupt(_number: int, _frame: object) -> None:
        raise Interrupted

    def interrupt_the_work() -> None:
        wait_until((tmp_path / "pid").exists)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGALRM)

    before = signal.signal(signal.SIGALRM, interrupt)
    interrupter = threading.Thread(target=interrupt_the_work)
    try:
        interrupter.start()
        with pytest.raises(Interrupted):
            images.build_images(["backend"])
    finally:
        interrupter.join()
        signal.signal(signal.SIGALRM, before)
    wait_until(lambda: not is_at_work(int((tmp_path / "pid").read_text())))


# --- the Python environment ----------------------------------------------------------------------------------

PYTHON = """#!/usr/bin/env bash
echo "$*" >>called
case "$*" in
  *version_info*) cat "${0%/*}/version" ;;
  *ensurepip*) [[ ! -e without-ensurepip ]] ;;
  "-m venv "*) mkdir -p "$3/bin"; cp "$0" "$3/bin/python" ;;
  *" --requirement "*) echo "${@: -1}" >>installed; [[ ! -e slow ]] || sleep 0.5; [[ ! -e offline ]] ;;
  *" --editable ."*) printf '#!/bin/sh\\n' >.venv/bin/connlab; chmod +x .venv/bin/connlab ;;
esac
"""


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tree with the set-up of the Python environment, and a Python that writes down what it is to install."""
    folder = tmp_path / "tree"
    (folder / "setup").mkdir(parents=True)
    for name in ("lib.sh", "python.sh"):
        shutil.copy(paths.SETUP / name, folder / "setup")
    for name in ("requirements.lock", "requirements-dev.lock", "pyproject.toml"):
        (folder / name).write_text(name)
    write_program(tmp_path / "bin" / "python3", PYTHON)
    (tmp_path / "bin" / "version").write_text("(3, 11)")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    return folder


def set_up(tree: Path, *arguments: str) -> int:
    return run_program(tree / "setup" / "python.sh", *arguments).returncode


def installed(tree: Path) -> list[str]:
    return (tree / "installed").read_text().splitlines()


def test_what_is_fresh_is_not_made_again(tree: Path) -> None:
    assert [set_up(tree), set_up(tree), set_up(tree, "dev"), set_up(tree, "dev"), set_up(tree)] == [0] * 5
    assert installed(tree) == ["requirements.lock", "requirements-dev.lock"]
    assert sorted(file.name for file in (tree / ".cache").iterdir()) == ["python.lock"]


def test_a_copy_of_the_tree_and_another_python_have_an_environment_of_their_own(tree: Path, tmp_path: Path) -> None:
    assert set_up(tree) == 0
    copy = tmp_path / "copy"
    shutil.copytree(tree, copy)
    (copy / "installed").unlink()
    assert set_up(copy) == 0
    assert installed(copy) == ["requirements.lock"]
    (tmp_path / "bin" / "version").write_text("(3, 12)")
    assert set_up(tree) == 0
    assert installed(tree) == ["requirements.lock"] * 2


def test_two_set_ups_at_once_make_one_environment(tree: Path) -> None:
    (tree / "slow").touch()
    command = [tree / "setup" / "python.sh"]
    with (
        subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as one,
        subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as two,
    ):
        said = one.communicate(timeout=HANG_S)[1] + two.communicate(timeout=HANG_S)[1]
    assert (one.returncode, two.returncode, installed(tree)) == (0, 0, ["requirements.lock"])
    assert "waiting for another set-up" in said


@pytest.mark.parametrize(("prefix", "asked"), [("127.0.0.1:5000/lab", ["pull"]), ("", [])])
def test_a_new_machine_pulls_images_while_the_packages_are_installed(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prefix: str, asked: list[str]
) -> None:
    write_program(tmp_path / "bin" / "docker", "#!/bin/sh\n")
    write_program(tree / "setup" / "images.sh", "#!/bin/sh\necho $1 >>pulled; exit 1\n")
    monkeypatch.setenv("CONNLAB_IMAGES", prefix)
    assert [set_up(tree), set_up(tree)] == [0, 0]
    log = tree / "pulled"
    assert (log.read_text().split() if log.exists() else []) == asked


def test_a_failed_installation_leaves_the_old_environment(tree: Path) -> None:
    assert set_up(tree) == 0
    (tree / ".venv" / "mark").touch()
    (tree / "requirements.lock").write_text("newer")
    (tree / "offline").touch()
    assert set_up(tree) == 4
    assert (tree / ".venv" / "mark").exists()
    (tree / "offline").unlink()
    assert set_up(tree) == 0
    assert not (tree / ".venv" / "mark").exists()


def test_a_killed_installation_loses_nothing_that_a_failed_one_would_keep(tree: Path) -> None:
    assert set_up(tree) == 0
    (tree / ".venv" / "mark").touch()
    (tree / ".cache" / ".venv.old").parent.mkdir(exist_ok=True)
    (tree / ".venv").rename(tree / ".cache" / ".venv.old")
    (tree / ".venv").mkdir()
    (tree / "offline").touch()
    assert set_up(tree, "dev") == 4
    assert (tree / ".venv" / "mark").exists()
    (tree / ".venv").rename(tree / ".cache" / ".venv.old")
    assert set_up(tree) == 0
    assert installed(tree) == ["requirements.lock", "requirements-dev.lock"]


@pytest.fixture
def kit(tree: Path) -> Path:
    """What `make load` leaves of a kit."""
    folder = tree / ".cache" / "kit" / "python"
    folder.mkdir(parents=True)
    (folder / "pip-23.0.1-py3-none-any.whl").touch()
    (folder / "requirements.lock").write_text("requirements.lock")
    (folder / "version").write_text("(3, 11)\n")
    return folder


def pips(tree: Path) -> list[str]:
    return [call for call in (tree / "called").read_text().splitlines() if "install" in call]


def test_a_kit_s_packages_need_no_network_and_no_pip_of_the_machine_s(tree: Path, kit: Path) -> None:
    (tree / "without-ensurepip").touch()
    assert set_up(tree) == 0
    own, locked, _ = pips(tree)
    offline = f"--disable-pip-version-check --quiet --no-index --find-links {kit}"
    assert own == f"{kit}/pip-23.0.1-py3-none-any.whl/pip install {offline} {kit}/pip-23.0.1-py3-none-any.whl"
    assert locked == f"-m pip install --require-hashes {offline} --no-input --requirement requirements.lock"
    assert "-m venv .venv --without-pip" in (tree / "called").read_text().splitlines()


@pytest.mark.parametrize(
    ("name", "content", "arguments"),
    [("requirements.lock", "an older lock", ()), ("version", "(3, 13)\n", ()), ("version", "(3, 11)\n", ("dev",))],
)
def test_what_a_kit_does_not_have_comes_from_the_network(
    tree: Path, kit: Path, name: str, content: str, arguments: tuple[str, ...]
) -> None:
    (kit / name).write_text(content)
    assert set_up(tree, *arguments) == 0
    assert not [call for call in pips(tree) if str(kit) in call]
    assert "-m venv .venv" in (tree / "called").read_text().splitlines()


# --- the engine ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("number", "newer"), [("11", 1), ("12", 1), ("13", 0), ("13.1", 0), ("14", 0), ("", 0)])
def test_a_debian_of_trixie_or_newer_is_recognised_by_its_number(number: str, newer: int) -> None:
    script = f"source {paths.SETUP}/lib.sh; is_trixie_or_newer '{number}'"
    assert run_program("bash", "-c", script).returncode == newer


@pytest.mark.parametrize(
    ("version", "code"), [("24.0.9", 4), ("20.10.24+dfsg1", 4), ("4.9.3", 4), ("25.0.0", 0), ("26.1.5+dfsg1", 0)]
)
def test_an_engine_that_is_too_old_is_refused(
    docker_program: FakeDocker, monkeypatch: pytest.MonkeyPatch, version: str, code: int
) -> None:
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    docker_program.says('"compose version "*', "2.26.1")
    docker_program.says('"version "*', version)
    docker_program.says('"context show"', "default")
    ended = run_program(paths.SETUP / "engine.sh")
    assert ended.returncode == code
    if code:
        assert f"this is missing: version 25 or newer (this is {version})" in ended.stderr
        assert "hint: " in ended.stderr


@pytest.mark.parametrize(("buildx", "code"), [(0, 0), (1, 4)])
def test_an_engine_at_rest_is_started_and_nothing_is_installed_beside_it(
    docker_program: FakeDocker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, buildx: int, code: int
) -> None:
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    monkeypatch.setenv("CONNLAB_DOCKERD_LOG", str(tmp_path / "dockerd.log"))
    started, installed = tmp_path / "started", tmp_path / "installed"
    programs = {"dockerd": f"touch {started}", "systemctl": f"touch {started}", "apt-get": f"touch {installed}"}
    for name, does in {**programs, "id": "echo 0"}.items():
        write_program(tmp_path / "bin" / name, f"#!/bin/sh\n{does}\n")
    docker_program.says('"compose version "*', "2.26.1")
    docker_program.says('"context show"', "default")
    docker_program.says('"buildx version"', exit_code=buildx)
    docker_program.does(f'"version "*) [ -e {started} ] && printf 26.1.5; exit ;;')
    ended = run_program(paths.SETUP / "engine.sh")
    assert ended.returncode == code
    assert started.exists()
    assert not installed.exists()
    assert ("this is missing: buildx" in ended.stderr) == bool(buildx)


def test_who_is_not_root_is_told_which_script_root_runs_wherever_the_lab_is_installed(
    docker_program: FakeDocker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    write_program(tmp_path / "bin" / "id", "#!/bin/sh\necho 1000\n")
    docker_program.says('"context show"', "default")
    docker_program.says('"version "*', exit_code=1)
    ended = run_program(paths.SETUP / "engine.sh")
    assert ended.returncode == 4
    assert f"hint: run {paths.SETUP}/engine.sh as root once" in ended.stderr


def test_what_the_set_up_installs_removes_nothing_and_waits_for_others(tmp_path: Path) -> None:
    write_program(tmp_path / "apt-get", '#!/bin/sh\necho "$*" >>"$0.log"\n')
    file = script(tmp_path, f"PATH={tmp_path}:$PATH", "apt_install one two/trixie", "apt_install three")
    run_program(file, check=True)
    waits, install = "-o DPkg::Lock::Timeout=300", "install -y --no-remove --no-install-recommends"
    asked = ("update", f"{install} one two/trixie", f"{install} three")
    assert (tmp_path / "apt-get.log").read_text().splitlines() == [f"{waits} {each}" for each in asked]


@pytest.fixture
def without_engine(docker_program: FakeDocker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without an engine, on which a kit is taken in; what apt would install brings the engine's program."""
    folder = tmp_path / "bin"
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    monkeypatch.setenv("CONNLAB_KIT", str(tmp_path / "a kit"))
    monkeypatch.setenv("CONNLAB_DOCKERD_LOG", str(tmp_path / "dockerd.log"))
    monkeypatch.setenv("PATH", str(folder))
    engine = f"""printf '#!/bin/sh\\n' >{folder}/dockerd; chmod +x {folder}/dockerd"""
    apt = f"""cat "$APT_CONFIG" >>{tmp_path}/apt.log; case "$*" in *install*) {engine} ;; esac"""
    for name, does in {"apt-get": apt, "id": "echo 0", "systemctl": "true"}.items():
        write_program(folder / name, f"#!/bin/sh\n{does}\n")
    used = ("bash", "env", "sed", "cat", "mkdir", "chmod", "dirname", "mktemp", "tail", "sleep", "rm", "seq", "dpkg")
    for program in (*used, "setsid"):
        if found := shutil.which(program, path="/usr/bin:/bin"):
            (folder / program).symlink_to(found)
    docker_program.says('"compose version "*', "2.26.1")
    docker_program.says('"context show"', "default")
    docker_program.does(f'"version "*) [ -e {folder}/dockerd ] && printf 26.1.5; exit ;;')
    return tmp_path / "a kit"


on_debian = pytest.mark.skipif(
    platform.freedesktop_os_release()["ID"] != "debian", reason="the set-up installs on Debian only"
)


@on_debian
def test_an_engine_out_of_a_kit_comes_from_its_archive_alone(without_engine: Path, tmp_path: Path) -> None:
    (without_engine / "debian").mkdir(parents=True)
    run_program(paths.SETUP / "engine.sh", check=True)
    assert f'Dir::Etc::sourcelist "{without_engine}/apt/sources.list";' in (tmp_path / "apt.log").read_text()
    sources = (without_engine / "apt" / "sources.list").read_text().splitlines()
    assert {line.partition("] ")[2].split()[0] for line in sources} == {f"file:{tmp_path}/a%20kit/debian"}


@on_debian
def test_a_kit_without_an_engine_for_this_release_says_so(without_engine: Path, tmp_path: Path) -> None:
    without_engine.mkdir()
    ended = run_program(paths.SETUP / "engine.sh")
    assert ended.returncode == 4
    assert "no Docker Engine answers, and this kit has no packages for Debian" in ended.stderr
    assert not (tmp_path / "apt.log").exists()


# --- the base image ------------------------------------------------------------------------------------------

DEBOOTSTRAP = """#!/usr/bin/env bash
root=${@: -2:1}
mkdir -p "$root"/usr/share/{doc/bash,locale/de} "$root/var/cache/apt/archives"
touch "$root"/usr/share/{doc/bash/{copyright,README},locale/de/words} "$root/var/cache/apt/archives/bash.deb"
ln -s bash "$root/usr/share/doc/libbash"
"""


@on_debian
def test_a_base_image_made_from_the_archive_keeps_the_packages_licences(
    docker_program: FakeDocker, tmp_path: Path
) -> None:
    for name, text in {"debootstrap": DEBOOTSTRAP, "apt-get": APT_GET, "id": "#!/bin/sh\necho 0\n"}.items():
        write_program(tmp_path / "bin" / name, text)
    docker_program.says('"image inspect"*', exit_code=1)
    docker_program.says('"pull "*', exit_code=1)
    docker_program.says('"context show"', "default")
    docker_program.does(f'"import "*) tar -t >{tmp_path}/root; exit ;;')
    ended = run_program(paths.SETUP / "base-image.sh")
    assert ended.returncode == 0, ended.stderr
    files = {line for line in (tmp_path / "root").read_text().splitlines() if not line.endswith("/")}
    assert files == {"./usr/share/doc/bash/copyright", "./usr/share/doc/libbash"}


@pytest.mark.parametrize(
    ("label", "kits", "is_fresh"),
    [
        ("{recipe}.{here}", "", True),
        ("{recipe}.elsewhere", "{recipe}.elsewhere", True),
        ("{recipe}.elsewhere", "", False),
        ("older.elsewhere", "older.elsewhere", False),
    ],
)
def test_the_base_of_a_kit_serves_with_the_certificates_of_elsewhere(
    docker_program: FakeDocker,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    label: str,
    kits: str,
    *,
    is_fresh: bool,
) -> None:
    certificates = [file.read_bytes() for file in sorted(Path("/usr/local/share/ca-certificates").rglob("*.crt"))]
    known = {
        "recipe": hashlib.sha256((paths.SETUP / "base.Dockerfile").read_bytes()).hexdigest()[:16],
        "here": hashlib.sha256(b"".join(certificates)).hexdigest()[:16],
    }
    monkeypatch.setenv("CONNLAB_KIT", str(tmp_path))
    (tmp_path / "base").write_text(kits.format(**known))
    docker_program.says('"image inspect "*connlab/base', label.format(**known))
    docker_program.says('"context show"', "default")
    run_program(paths.SETUP / "base-image.sh", check=True)
    assert any(call.startswith("buildx build ") for call in docker_program.calls) != is_fresh
