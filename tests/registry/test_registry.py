"""Images by a registry that the test starts: pushed, pulled, compared and used; what the registry lacks is built."""

import contextlib
import hashlib
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import HANG_S, ROOT, docker, wait_until

CONFIG = """\
version: 0.1
log: {{level: warn}}
storage: {{filesystem: {{rootdirectory: {store}}}}}
http: {{addr: "127.0.0.1:{port}"}}
"""


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An empty registry on this machine, as <registry>/<prefix>."""
    subprocess.run([ROOT / "setup" / "registry.sh"], check=True, timeout=HANG_S)
    folder = tmp_path_factory.mktemp("registry")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (folder / "config.yaml").write_text(CONFIG.format(store=folder / "store", port=port))
    with subprocess.Popen([ROOT / ".cache/bin/registry", "serve", folder / "config.yaml"], text=True) as process:
        try:
            wait_until(lambda: _answers(port), "the registry", process)
            yield f"127.0.0.1:{port}/connlab"
        finally:
            process.terminate()


def _answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What images are made from, in a folder of its own: the digests of what is pushed are written there."""
    folder = tmp_path_factory.mktemp("tree")
    rooms = ("setup", "collector", "k6", "gateway", "backend", "nginx", "haproxy", "pyproject.toml")
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *rooms],
        cwd=ROOT,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    for name in listed.stdout.splitlines():
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    (folder / "setup" / "images.digests").unlink(missing_ok=True)
    return folder


def set_up(tree: Path, script: str, *arguments: str, images: str = "") -> str:
    """Run a script of the set-up, and give what it said."""
    ended = subprocess.run(
        [tree / "setup" / script, *arguments],
        env=os.environ | {"CONNLAB_IMAGES": images},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=HANG_S,
    )
    assert ended.returncode == 0, ended.stdout
    return ended.stdout


def image_id(name: str) -> str:
    return docker("image", "inspect", "--format", "{{.Id}}", name).strip()


@contextlib.contextmanager
def without(*images: str) -> Iterator[dict[str, str]]:
    """Take images' names away; give their ids, and the names back if nobody else did."""
    ids = {image: image_id(f"connlab/{image}") for image in images}
    for image in images:
        docker("tag", f"connlab/{image}", f"connlab/{image}:kept")
        docker("rmi", "--no-prune", f"connlab/{image}:latest")
    try:
        yield ids
    finally:
        for image in images:
            if not docker("image", "ls", "--quiet", f"connlab/{image}:latest"):
                docker("tag", f"connlab/{image}:kept", f"connlab/{image}:latest")
            docker("rmi", "--no-prune", f"connlab/{image}:kept")


def test_what_was_pushed_is_pulled_by_its_digest_and_is_the_same(tree: Path, prefix: str) -> None:
    architecture = docker("version", "--format", "{{.Server.Arch}}").strip()
    said = set_up(tree, "push-images.sh", prefix, "base", "collector", "nginx")
    assert f"{prefix}: base collector nginx, for {architecture}\n" in said
    assert "this engine builds for its own architecture alone" in said
    digests = [line.split() for line in (tree / "setup" / "images.digests").read_text().splitlines()]
    assert [image for image, _, _ in digests] == ["base", "collector", "nginx"]
    with without("collector", "nginx") as before:
        said = set_up(tree, "images.sh", "flows", "nginx", images=prefix)
        assert f"pulling collector nginx from {prefix}: done in " in said
        assert "build" not in said
        assert {image: image_id(f"connlab/{image}") for image in before} == before
        assert docker("image", "ls", "--quiet", f"{prefix}/*") == ""
        assert "nginx/" in docker(
            "run", "--rm", "--network=none", "--entrypoint=sh", "connlab/nginx", "-c", "nginx -v 2>&1"
        )
    flows = [(folder / ".cache" / "bin" / "flows").read_bytes() for folder in (ROOT, tree)]
    assert len({hashlib.sha256(program).hexdigest() for program in flows}) == 1


def test_pushed_once_it_is_not_pushed_again_and_has_the_same_digest(tree: Path, prefix: str) -> None:
    file = tree / "setup" / "images.digests"
    assert "pushing" in set_up(tree, "push-images.sh", prefix, "haproxy")
    before = file.read_text()
    assert "pushing" not in set_up(tree, "push-images.sh", prefix, "haproxy")
    file.unlink()
    set_up(tree, "push-images.sh", "--join", prefix, "haproxy")
    assert file.read_text() in before


def test_what_the_registry_lacks_is_built_and_a_line_says_why(tree: Path, prefix: str) -> None:
    with without("haproxy"):
        said = set_up(tree, "images.sh", "haproxy", images=f"{prefix}/empty")
        assert f"not pulled from {prefix}/empty, so built: haproxy (manifest unknown)" in said
        assert "building connlab/haproxy: done in " in said
