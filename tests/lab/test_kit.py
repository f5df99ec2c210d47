"""A participant's kit: what is taken in, and that one which does not fit, or was tampered with, is refused whole."""

import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab import paths
from setup.kit import archive
from setup.kit.archive import Here, Refused
from tests.lab.support import FakeDocker
from tests.lab.waiting import run_program

RECIPE, CERTIFICATES = "a" * 16, "b" * 16
IMAGES = ("base", "collector", "k6", "gateway", "backend", "nginx", "haproxy")
SOURCES = {name: hashlib.sha256(name.encode()).hexdigest()[:16] for name in (*IMAGES, "flows")} | {"base": RECIPE}
COMMIT = "0123456789" * 4
HERE = Here(COMMIT, "bookworm", lambda: SOURCES, platform="linux-x86_64", python="3.11")
PIECES = {
    "flows": b"a program",
    "repository.bundle": b"a repository",
    "python/version": b"(3, 11)\n",
    "python/requirements.lock": b"duckdb==2",
    "python/pip-23.0.1-py3-none-any.whl": b"a wheel",
    "debian/dists/bookworm/InRelease": b"signed",
    "debian/pool/main/c/containerd/containerd_1.7.24~ds1-6+deb13u1_amd64.deb": b"an engine",
}

Members = list[tuple[tarfile.TarInfo, bytes]]
TAGS = {name: f"connlab/{name}:latest" for name in IMAGES}
# Where an engine with containerd's store finds an image's name.
IMAGE_NAME = "io.containerd.image.name"


def config(name: str) -> dict[str, Any]:
    """An image's configuration, as `docker save` writes it."""
    label = {"connlab.base": f"{RECIPE}.{CERTIFICATES}"} if name == "base" else {"connlab.source": SOURCES[name]}
    return {"architecture": "amd64", "config": {"Labels": label}, "rootfs": {"diff_ids": ["sha256:1", "sha256:2"]}}


def saved(
    tags: dict[str, str] | None = None,
    configs: Callable[[str], dict[str, Any]] = config,
    index: tuple[str, ...] = (),
    more: Members = [],  # noqa: B006 # nobody changes it
) -> bytes:
    """What `docker save | gzip` writes; `tags` gives images other names, and `more` has further members."""
    files = {f"blobs/sha256/{name}": json.dumps(configs(name)).encode() for name in IMAGES}
    files |= {f"blobs/sha256/layer-{name}": name.encode() for name in IMAGES}
    tags = TAGS | (tags or {})
    named = [{"annotations": {IMAGE_NAME: f"docker.io/{tag}"}} for tag in (*tags.values(), *index)]
    files |= {"manifest.json": listed(tags), "index.json": json.dumps({"manifests": named}).encode()}
    return packed([*((member(name, content), content) for name, content in files.items()), *more])


def listed(tags: dict[str, str]) -> bytes:
    """A list of images, as `docker save` writes it."""
    blobs = "blobs/sha256"
    return json.dumps(
        [{"Config": f"{blobs}/{name}", "RepoTags": [tag], "Layers": [f"{blobs}/layer-{name}"]}
         for name, tag in tags.items()]
    ).encode()  # fmt: skip


def packed(members: Members) -> bytes:
    """An archive, compressed."""
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as tar:
        for info, content in members:
            tar.addfile(info, io.BytesIO(content))
    return gzip.compress(written.getvalue(), mtime=0)


def read(images: Path) -> dict[str, bytes]:
    """All files in an archive, also behind its end."""
    with tarfile.open(images, ignore_zeros=True) as tar:
        return {info.name: tar.extractfile(info).read() for info in tar}  # type: ignore[union-attr] # all are files


def loaded(images: Path) -> dict[str, tuple[dict[str, Any], list[bytes]]]:
    """Each image that an engine takes of an archive, with its configuration and its layers."""
    files = read(images)
    assert {name for name in files if not name.isdecimal()} == {"manifest.json"}
    return {
        tag: (json.loads(files[image["Config"]]), [files[layer] for layer in image["Layers"]])
        for image in json.loads(files["manifest.json"])
        for tag in image["RepoTags"]
    }


def member(name: str, content: bytes = b"", **other: Any) -> tarfile.TarInfo:  # noqa: ANN401 # a header's fields
    """A header of the archive."""
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for field, value in other.items():
        setattr(info, field, value)
    return info


def make(folder: Path, here: Here = HERE, **pieces: bytes) -> Path:
    """Write a kit from pieces."""
    for name, content in {**PIECES, archive.IMAGES: saved(), **pieces}.items():
        (folder / "pieces" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "pieces" / name).write_bytes(content)
    archive.write(folder / "pieces", folder / "kit.tar", "0.2.0", here)
    return folder / "kit.tar"


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A kit's bytes."""
    return make(tmp_path_factory.mktemp("kit")).read_bytes()


@pytest.fixture
def kit(tmp_path: Path, whole: bytes) -> Path:
    """A kit that fits here."""
    (tmp_path / "kit.tar").write_bytes(whole)
    return tmp_path / "kit.tar"


def tampered(kit: Path, change: Callable[[Members, dict[str, Any]], None]) -> Path:
    """Change members and manifest as somebody would who knows the format."""
    with tarfile.open(kit) as tar:
        members = [(info, piece.read()) for info in tar if (piece := tar.extractfile(info))]
    manifest = json.loads(members.pop(0)[1])
    change(members, manifest)
    text = json.dumps(manifest | {"sha256": archive.checksum(manifest)}).encode()
    with tarfile.open(kit, "w") as tar:
        for info, content in [(member(archive.MANIFEST, text), text), *members]:
            tar.addfile(info, io.BytesIO(content))
    return kit


def add(name: str, content: bytes = b"mine") -> Callable[[Members, dict[str, Any]], None]:
    """Put a piece into an archive, or another in its place, and name it in the manifest, with its right sum."""

    def change(members: Members, manifest: dict[str, Any]) -> None:
        members[:] = [each for each in members if each[0].name != name]
        members.append((member(name, content), content))
        manifest["pieces"][name] = {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}

    return change


def refusal(kit: Path, here: Here = HERE) -> str:
    """Why a kit is refused; nothing of it may be left, in its folder or beside it."""
    folder = kit.parent / "cache" / "kit"
    before = tree(kit.parent)
    with pytest.raises(Refused) as refused:
        archive.unpack(kit, folder, here)
    assert tree(kit.parent) - {Path("cache")} == before
    assert refused.value.hint
    assert str(refused.value).isprintable()
    return str(refused.value)


def tree(folder: Path) -> set[Path]:
    return {file.relative_to(folder) for file in folder.rglob("*")}


# --- what fits ------------------------------------------------------------------------------------------------


def test_each_piece_is_taken_to_its_place_and_the_images_are_written_anew(kit: Path, tmp_path: Path) -> None:
    manifest = archive.unpack(kit, tmp_path / "taken", HERE)
    images = loaded(tmp_path / "taken" / archive.WRITTEN_ANEW)
    assert images == {tag: (config(name), [name.encode()]) for name, tag in TAGS.items()}
    (tmp_path / "taken" / archive.WRITTEN_ANEW).unlink()
    taken = {str(file): (tmp_path / "taken" / file).read_bytes() for file in tree(tmp_path / "taken")
             if (tmp_path / "taken" / file).is_file()}  # fmt: skip
    assert taken == PIECES | {
        "base": f"{RECIPE}.{CERTIFICATES}".encode(),
        "flows.source": f"{SOURCES['flows']}\n".encode(),
    }
    assert (manifest.version, manifest.commit, manifest.debian) == ("0.2.0", COMMIT, "bookworm")


def test_a_layer_that_an_older_engine_wrote_as_a_link_is_taken(kit: Path, tmp_path: Path) -> None:
    (tmp_path / "saved").write_bytes(saved())
    members = [(member(name, content), content) for name, content in read(tmp_path / "saved").items()]
    layer = "blobs/sha256/layer-k6"
    members = [each for each in members if each[0].name != layer]
    members.append((member(layer, type=tarfile.SYMTYPE, linkname="../sha256/layer-base"), b""))
    archive.unpack(tampered(kit, add(archive.IMAGES, packed(members))), tmp_path / "taken", HERE)
    assert loaded(tmp_path / "taken" / archive.WRITTEN_ANEW)["connlab/k6:latest"] == (config("k6"), [b"base"])


FOREIGN = listed(TAGS | {"nginx": "debian:latest"})
ANOTHER_LIST = packed([(member("manifest.json", FOREIGN), FOREIGN)])


@pytest.mark.parametrize(
    "images",
    [
        pytest.param(saved(index=("debian:latest",)), id="another list"),
        pytest.param(saved() + ANOTHER_LIST, id="another gzip member"),
        pytest.param(
            gzip.compress(gzip.decompress(saved()) + gzip.decompress(ANOTHER_LIST), mtime=0), id="a second end"
        ),
    ],
)
def test_the_engine_gets_nothing_of_what_another_reader_may_find(kit: Path, tmp_path: Path, images: bytes) -> None:
    archive.unpack(tampered(kit, add(archive.IMAGES, images)), tmp_path / "taken", HERE)
    assert set(loaded(tmp_path / "taken" / archive.WRITTEN_ANEW)) == set(TAGS.values())


def test_packages_of_another_release_of_debian_are_left_out(kit: Path, tmp_path: Path) -> None:
    archive.unpack(kit, tmp_path / "taken", replace(HERE, debian="trixie"))
    assert not (tmp_path / "taken" / "debian").exists()
    assert (tmp_path / "taken" / "python" / "requirements.lock").exists()


# --- what does not fit ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("here", "why"),
    [
        ({"platform": "linux-aarch64"}, "it is for linux-x86_64, and this machine is linux-aarch64"),
        ({"python": "3.13"}, "its packages are for Python 3.11, and this machine has 3.13"),
        ({"commit": "f" * 40}, f"it is of commit {COMMIT} (0.2.0), and this folder is at {'f' * 40}"),
    ],
)
def test_one_for_another_machine_or_commit_is_refused(kit: Path, here: dict[str, str], why: str) -> None:
    assert refusal(kit, replace(HERE, **here)) == f"the kit does not fit: {why}"  # type: ignore[arg-type]


def test_all_that_does_not_fit_stands_in_one_message(kit: Path) -> None:
    said = refusal(kit, replace(HERE, platform="linux-aarch64", python="3.13", commit="f" * 40))
    assert (said.count("; "), said.count("this machine"), said.count("this folder")) == (2, 2, 1)


def test_one_whose_sources_were_changed_here_is_refused(kit: Path) -> None:
    changed = SOURCES | {"nginx": "0" * 16, "flows": "0" * 16}
    assert "flows, nginx made from other sources" in refusal(kit, replace(HERE, sources=lambda: changed))


def test_one_that_the_disk_has_no_room_for_is_refused(kit: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: shutil._ntuple_diskusage(9, 9, 0))  # noqa: SLF001
    assert "are free" in refusal(kit)


@pytest.mark.parametrize("content", [b"", b"hello", gzip.compress(b"hello", mtime=0), b"\0" * 10240, saved()], ids=len)
def test_a_file_that_is_no_kit_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "kit.tar").write_bytes(content)
    assert "kit" in refusal(tmp_path / "kit.tar")


def test_a_kit_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert "cannot be read as a kit" in refusal(tmp_path / "none.tar")


# --- what somebody tampered with ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PIECES)
def test_a_piece_with_other_content_is_refused(kit: Path, name: str) -> None:
    def change(members: Members, _manifest: dict[str, Any]) -> None:
        members[:] = [(info, content[::-1] if info.name == name else content) for info, content in members]

    assert refusal(tampered(kit, change)) == f"{name} is not what the kit's kit.json says: its SHA-256 differs"


@pytest.mark.parametrize(
    "name",
    [
        *("../outside", "../../outside", "/tmp/outside", "python/../../outside", "python/../flows"),  # noqa: S108
        *("debian/pool/../../../outside", "debian/dists//outside", ".bashrc", "python/.hidden", "other", "python/a/b"),
        *("base", "python\n/x", "debian/pool/\x1b[2J", "", "python/"),
    ],
)
def test_a_piece_that_has_no_place_in_a_kit_is_refused(kit: Path, name: str) -> None:
    assert refusal(tampered(kit, add(name))).startswith(f"the kit would write to {name!a}")


@pytest.mark.parametrize(
    "info",
    [
        member("python/link", type=tarfile.SYMTYPE, linkname="/etc"),
        member("python", type=tarfile.SYMTYPE, linkname="/tmp"),  # noqa: S108
        member("flows", type=tarfile.LNKTYPE, linkname="/etc/passwd"),
        member("debian", type=tarfile.DIRTYPE),
        member("python/device", type=tarfile.CHRTYPE),
        member("python/pipe", type=tarfile.FIFOTYPE),
    ],
)
def test_a_link_a_folder_or_a_device_is_refused(kit: Path, info: tarfile.TarInfo) -> None:
    assert refusal(tampered(kit, lambda members, _manifest: members.insert(0, (info, b"")))).endswith(
        "not a plain file"
    )


def test_a_piece_that_the_manifest_does_not_name_is_refused(kit: Path) -> None:
    unnamed = (member("python/more.whl", b"more"), b"more")
    assert "does not name" in refusal(tampered(kit, lambda members, _manifest: members.append(unnamed)))


def test_a_piece_that_is_there_twice_is_refused(kit: Path) -> None:
    assert "or twice" in refusal(tampered(kit, lambda members, _manifest: members.append(members[0])))


@pytest.mark.parametrize(
    ("name", "is_named"),
    [*((name, True) for name in (*PIECES, archive.IMAGES)), *((name, False) for name in sorted(archive.NEEDED))],
)
def test_a_piece_that_is_missing_is_refused_named_or_not(kit: Path, name: str, *, is_named: bool) -> None:
    def change(members: Members, manifest: dict[str, Any]) -> None:
        members[:] = [each for each in members if each[0].name != name]
        if not is_named:
            del manifest["pieces"][name]

    assert refusal(tampered(kit, change)) == f"the kit lacks {name}"


def test_a_manifest_that_was_damaged_on_its_way_is_refused(kit: Path) -> None:
    kit.write_bytes(kit.read_bytes().replace(b'"debian": "bookworm"', b'"debian": "bookworn"', 1))
    assert refusal(kit) == "the kit's kit.json is damaged: its SHA-256 differs"


@pytest.mark.parametrize(
    "change",
    [
        {"kit": 3},
        {"commit": "\x1b[2J"},
        {"python": "3"},
        {"platform": None},
        {"pieces": []},
        {"pieces": {"flows": {}}},
        {"pieces": {"flows": {"size": -1, "sha256": "0" * 64}}},
        {"pieces": {"flows": {"size": True, "sha256": "0" * 64}}},
        {"sources": 1},
    ],
)
def test_a_manifest_that_says_what_none_may_is_refused(kit: Path, change: dict[str, Any]) -> None:
    assert "kit" in refusal(tampered(kit, lambda _members, manifest: manifest.update(change)))


def of(name: str, labels: Any) -> Callable[[str], dict[str, Any]]:  # noqa: ANN401 # whatever stands in a file
    return lambda each: config(each) | ({"config": {"Labels": labels}} if each == name else {})


@pytest.mark.parametrize(
    ("images", "why"),
    [
        (saved(tags={"nginx": "debian:latest"}), "not those of a run: 'connlab/nginx:latest'"),
        *(
            (
                saved(more=[(member(name, FOREIGN + padding), FOREIGN + padding)]),
                f"the kit's images hold '{name}' twice",
            )
            for name in ("manifest.json", "./manifest.json", "blobs/../manifest.json")
            for padding in (b"", b" " * (1 << 20))
        ),
        (saved(more=[(member("./manifest.json", type=tarfile.SYMTYPE, linkname="x"), b"")]), "twice"),
        (saved(tags={name: f"connlab/{name}:latest" + " " * (1 << 18) for name in IMAGES}), "bytes of JSON"),
        (saved(configs=of("k6", {"connlab.source": "0" * 16})), "the image connlab/k6:latest is not made"),
        (saved(configs=of("base", {"connlab.base": f"{'0' * 16}.{CERTIFICATES}"})), "the image connlab/base:latest"),
        (saved(configs=of("k6", None)), "the kit's images cannot be read"),
        (saved(configs=of("k6", {"connlab.source": "0" * (1 << 21)})), "bytes of JSON"),
        (gzip.compress(b"no archive", mtime=0), "the kit cannot be taken in"),
        (b"no archive", "the kit cannot be taken in"),
    ],
    ids=lambda value: "images" if isinstance(value, bytes) else None,
)
def test_images_that_are_not_those_of_a_run_are_refused(kit: Path, images: bytes, why: str) -> None:
    assert why in refusal(tampered(kit, add(archive.IMAGES, images)))


@pytest.mark.parametrize("limit", ["IMAGES_BYTES_MAX", "IMAGES_FILES_MAX"])
def test_images_that_would_fill_the_disk_are_refused(kit: Path, monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    monkeypatch.setattr(archive, limit, 10)
    assert "the kit's images are larger than" in refusal(kit)


@given(at=st.integers(min_value=0, max_value=1 << 24), flipped=st.integers(0, 255))
def test_a_damaged_kit_is_refused_or_nothing_of_it_differs(
    whole: bytes, tmp_path_factory: pytest.TempPathFactory, at: int, flipped: int
) -> None:
    folder, at = tmp_path_factory.mktemp("damaged"), at % len(whole)
    # The kit ends here, or these bits of the byte differ.
    damaged = whole[:at] + bytes([whole[at] ^ flipped]) + whole[at + 1 :] if flipped else whole[:at]
    (folder / "kit.tar").write_bytes(damaged)
    try:
        archive.unpack(folder / "kit.tar", folder / "cache" / "kit", HERE)
    except Refused:
        assert tree(folder) <= {Path("kit.tar"), Path("cache")}
    else:
        assert {name: (folder / "cache" / "kit" / name).read_bytes() for name in PIECES} == PIECES


# --- the script -----------------------------------------------------------------------------------------------


@pytest.fixture
def clone(tmp_path: Path, docker_program: FakeDocker) -> Path:
    """A commit of a tree with the set-up; its engine and its environment are made by scripts that only say so."""
    folder = tmp_path / "clone"
    shutil.copytree(paths.SETUP, folder / "setup", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(paths.ROOT / "pyproject.toml", folder)
    (folder / ".gitignore").write_text("/.cache/\n/called\n__pycache__/\n")
    for name in ("engine.sh", "python.sh", "ready.sh"):
        (folder / "setup" / name).write_text(f'#!/bin/sh\necho "{name} $CONNLAB_KIT" >>{folder}/called\n')
    for room in (*IMAGES[1:],):
        (folder / room).mkdir()
        (folder / room / "source").touch()
    identity = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a"}
    for command in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "-m", "all"]):
        subprocess.run(["git", *command], cwd=folder, check=True, env=os.environ | identity)
    docker_program.does(f'"load --input "*) cp "$3" {tmp_path}/loaded; exit ;;')
    return folder


def sources(clone: Path) -> dict[str, str]:
    said = run_program(clone / "setup" / "images.sh", "fingerprints", check=True).stdout
    return dict(line.split() for line in said.splitlines())


def recipe(clone: Path) -> str:
    return hashlib.sha256((clone / "setup" / "base.Dockerfile").read_bytes()).hexdigest()[:16]


@pytest.fixture
def bundle(clone: Path, tmp_path: Path) -> Path:
    """The kit of that commit."""
    known = sources(clone)

    def labelled(name: str) -> dict[str, Any]:
        label = (
            {"connlab.base": f"{recipe(clone)}.{CERTIFICATES}"} if name == "base" else {"connlab.source": known[name]}
        )
        return config(name) | {"config": {"Labels": label}}

    commit = run_program("git", "-C", clone, "rev-parse", "HEAD", check=True).stdout.strip()
    own = "import sysconfig as s; print(s.get_platform(), s.get_python_version())"
    python = run_program("python3", "-c", own, check=True).stdout.split()
    here = Here(commit, "", lambda: known, platform=python[0], python=python[1])
    return make(tmp_path, here, **{archive.IMAGES: saved(configs=labelled)})


def load(clone: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    return run_program(clone / "setup" / "load.sh", *map(str, arguments))


def test_loading_takes_everything_in_before_the_set_up_looks_again(clone: Path, bundle: Path, tmp_path: Path) -> None:
    (clone / ".cache" / "kit").mkdir(parents=True)
    (clone / ".cache" / "kit" / "of-the-last-kit").touch()
    ended = load(clone, bundle)
    assert ended.returncode == 0, ended.stderr
    new = clone / ".cache" / "kit.new"
    assert (clone / "called").read_text().splitlines() == [f"engine.sh {new}", f"python.sh {new}", "ready.sh "]
    assert set(loaded(tmp_path / "loaded")) == set(TAGS.values())
    assert (clone / ".cache" / "bin" / "flows").read_bytes() == PIECES["flows"]
    assert os.access(clone / ".cache" / "bin" / "flows", os.X_OK)
    assert (clone / ".cache" / "bin" / "flows.source").read_text().strip() == sources(clone)["flows"]
    kept = {str(file) for file in tree(clone / ".cache" / "kit")}
    assert kept == {"base", "python", *(name for name in PIECES if name.startswith("python/"))}
    assert not new.exists()


def test_what_becomes_of_the_file_after_the_check_does_not_reach_the_engine(
    clone: Path, bundle: Path, tmp_path: Path
) -> None:
    (clone / "setup" / "engine.sh").write_text(f'#!/bin/sh\necho >"{bundle}"\n')
    run_program("git", "-C", clone, "update-index", "--assume-unchanged", "setup/engine.sh", check=True)
    ended = load(clone, bundle)
    assert ended.returncode == 0, ended.stderr
    assert bundle.read_text() == "\n"
    assert set(loaded(tmp_path / "loaded")) == set(TAGS.values())


def test_a_refused_kit_is_one_message_and_nothing_is_taken(clone: Path, bundle: Path) -> None:
    (clone / "nginx" / "source").write_text("changed")
    (clone / ".cache" / "kit").mkdir(parents=True)
    (clone / ".cache" / "kit" / "of-the-last-kit").touch()
    ended = load(clone, bundle)
    assert ended.returncode == 2
    checking, why, hint = ended.stderr.splitlines()
    assert checking.startswith("connlab set-up: checking ")
    assert why == "connlab set-up: the kit has nginx made from other sources than those of this folder"
    assert hint.startswith("connlab set-up: hint: ")
    assert tree(clone / ".cache" / "kit") == {Path("of-the-last-kit")}
    assert not (clone / ".cache" / "kit.new").exists()
    assert not (clone / "called").exists()


def test_a_kit_whose_images_the_engine_does_not_take_leaves_the_last_one(
    clone: Path, bundle: Path, docker_program: FakeDocker
) -> None:
    docker_program.rules.insert(0, '"load"*) cat >/dev/null; echo "no space left" >&2; exit 1 ;;')
    docker_program.otherwise()
    ended = load(clone, bundle)
    assert ended.returncode == 4
    assert "no space left" in ended.stderr
    assert not [file for file in (clone / ".cache").iterdir() if file.name.startswith("kit") and file.is_dir()]


def test_loading_needs_a_file(clone: Path) -> None:
    for arguments in ((), ("",)):
        ended = load(clone, *arguments)
        assert (ended.returncode, ended.stderr.count("\n")) == (2, 2)
        assert "make load BUNDLE=<file>" in ended.stderr


def test_two_loads_do_not_meet(clone: Path, bundle: Path) -> None:
    (clone / ".cache").mkdir()
    with subprocess.Popen(["flock", clone / ".cache" / "kit.lock", "sh", "-c", "echo; cat"],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:  # fmt: skip
        assert holder.stdout is not None
        holder.stdout.readline()
        assert "another 'make load' is running" in load(clone, bundle).stderr
        holder.communicate()
    assert load(clone, bundle).returncode == 0


def test_a_kit_is_made_of_a_commit_alone(clone: Path) -> None:
    (clone / "new").touch()
    ended = run_program(clone / "setup" / "bundle.sh")
    assert ended.returncode == 4
    assert "lists changes that are in none" in ended.stderr
    assert not (clone / "called").exists()
