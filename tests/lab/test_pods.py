"""What a user brings, in pods: the same model as a run's Compose file has, and what no cluster can give."""

import base64
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from analysis.evidence.rawfiles import Places
from lab.engines.container_settings import ROLE_UID
from lab.engines.kubernetes import carried_files
from lab.engines.kubernetes.carried_files import CarriedFiles, TooLarge, pack
from lab.engines.kubernetes.objects import Images
from lab.engines.kubernetes.pods import Pods, build_added_role
from lab.engines.kubernetes.refusals import cluster_problems
from lab.engines.protocol import Parts
from lab.scenarios.topology import topology_of
from tests.lab.support import MINIMAL, Make, resolving, yaml_with

OWNER = {"kind": "Job", "name": "connlab-run-1", "uid": "1"}
SHOP = """\
schema: 1
title: A shop
experiment: own
question: Which users find a place?
path: [k6, shop, db]
services:
  shop:
    image: acme/shop:1.2
    port: 9000
    depends_on: [queue, tables]
    entrypoint: [serve]
    command: ["--url=$(URL)"]
    volumes: [./conf:/etc/shop]
    files: {/etc/motd: hello}
    extra_hosts: {mail: 192.0.2.9}
    capabilities: [NET_BIND_SERVICE]
    writable: [/var/cache/shop]
    stop_signal: SIGINT
  db:
    image: postgres:17
    port: 5432
    user: "999"
    volumes: [data:/var/lib/postgresql]
    ready: [pg_isready]
    shm_size: 64m
  queue: {image: "queue:1", aliases: [events]}
  tables: {image: "tables:1", completes: true, depends_on: [db]}
knobs:
  load: {workload: users, users: 3, path: /}
predictions:
  - {id: served, description: Each user is served., expression: client.requests.ok == load.users}
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "corner"
    (folder / "conf").mkdir(parents=True)
    (folder / "conf" / "shop.conf").write_text("color = blue\n")
    return folder


@pytest.fixture
def shop(home: Path) -> Make:
    return resolving(home, SHOP)


def pods_of(make: Make, *overrides: str, **how: Any) -> Pods:  # noqa: ANN401 # of Make
    found = make(*overrides, **how)
    return Pods(Parts(found, topology_of(found), "run-1", Places(Path("/run-1"))), Images())


def built(pods: Pods, name: str) -> dict[str, Any]:
    made: dict[str, Any] = pods.build(name, owned=OWNER, hosts={"192.0.2.7": ["db", "store"]})["spec"]
    return made


def container(spec: dict[str, Any], name: str) -> dict[str, Any]:
    return next(dict(one) for one in spec["containers"] if one["name"] == name)


def mounted(of_container: dict[str, Any]) -> dict[str, str]:
    return {one["mountPath"]: one["name"] for one in of_container["volumeMounts"]}


# --- files ------------------------------------------------------------------------------------------------------


def unpacked(carried: CarriedFiles, folder: Path) -> Path:
    """What the container at the start of a pod makes of the ConfigMaps."""
    (unpacker,) = carried.unpacker()
    pieces, files = folder / "packed", folder / "files"
    pieces.mkdir()
    for one in carried.config_maps("run"):
        for key, piece in one["binaryData"].items():
            (pieces / key).write_bytes(base64.b64decode(piece))
    for each in carried.places:
        (files / each.volume).mkdir(parents=True)
    subprocess.run([*unpacker["command"][:-2], str(pieces), str(files)], check=True)
    return files


def test_a_folder_comes_as_it_is_with_programs_links_and_any_names(tmp_path: Path) -> None:
    folder = tmp_path / "conf"
    (folder / "sites").mkdir(parents=True)
    (folder / "start").write_text("#!/bin/sh\n")
    (folder / "start").chmod(0o755)
    (folder / "sites" / "ä b.conf").write_text("x")
    (folder / "enabled").symlink_to("sites")
    os.mkfifo(folder / "pipe")
    (tmp_path / "large").write_bytes(os.urandom(1_500_000))
    carried = pack({"/etc/shop": folder, "/srv/large": tmp_path / "large"}, {"/etc/motd": b"hello"})
    maps = carried.config_maps("run")
    assert len(maps) == 2
    assert all(len(base64.b64decode(*one["binaryData"].values())) < 1 << 20 for one in maps)
    files = unpacked(carried, tmp_path)
    assert sorted(one.name for one in (files / "files-0").rglob("*")) == ["enabled", "sites", "start", "ä b.conf"]
    assert os.access(files / "files-0" / "start", os.X_OK)
    assert (files / "files-0" / "enabled").readlink() == Path("sites")
    assert (files / "files-1" / "large").read_bytes() == (tmp_path / "large").read_bytes()
    assert [(one["mountPath"], one.get("subPath")) for one in carried.mounts()] == [
        ("/etc/shop", None),
        ("/srv/large", "large"),
        ("/etc/motd", "motd"),
    ]


def test_more_than_a_cluster_should_keep_is_refused_with_a_way_on(
    shop: Make, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(carried_files, "_PACKED_MAX", 1000)
    (home / "conf" / "catalogue").write_bytes(os.urandom(2000))
    with pytest.raises(TooLarge):
        pack({"/etc/shop": home / "conf"}, {})
    (problem,) = cluster_problems(pods_of(shop))
    assert problem.what.startswith("shop reads more files than a cluster should keep for a run: ")
    assert problem.hint == "mount less, bring it in an image, or run it with --engine compose"


def test_the_files_of_a_scenario_s_own_configuration_and_script_stand_where_their_programs_look(
    tmp_path: Path,
) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "nginx.conf").write_text(
        "events {}\nhttp { server { listen 8080; location / { proxy_pass http://backend:8080; } } }\n"
    )
    (tmp_path / "shop" / "own.js").write_text("export default function () {}\n")
    text = yaml_with(MINIMAL, {"[k6, backend]": "[k6, nginx, backend]\nnginx: {config: ./nginx.conf}"})
    knobs = text[text.index("knobs:") : text.index("predictions:")]
    text = text.replace(knobs, "load: {script: ./own.js}\n").replace(
        "client.requests.ok == load.users", "client.dials.ok == 1"
    )
    pods = pods_of(resolving(tmp_path / "shop", text))
    assert list(cluster_problems(pods)) == []
    for name, place in (("nginx", "/config"), ("k6-1", "/script")):
        spec = built(pods, name)
        volume = mounted(container(spec, "role"))[place]
        (unpacker,) = spec["initContainers"]
        assert mounted(unpacker)[f"/files/{volume}"] == volume
        named = {one["configMap"]["name"] for one in spec["volumes"][-2]["projected"]["sources"]}
        assert named == {f"connlab-run-1-{pods.role_of(name)}-files-0"}
        assert named < {one["metadata"]["name"] for one in pods.config_maps(OWNER)}
    assert all(one["metadata"]["ownerReferences"] == [OWNER] for one in pods.config_maps(OWNER))


# --- services ---------------------------------------------------------------------------------------------------


def test_a_service_has_its_image_words_rights_and_folders(shop: Make) -> None:
    spec = built(pods_of(shop), "shop-1")
    role = container(spec, "role")
    assert (role["image"], role["imagePullPolicy"]) == ("acme/shop:1.2", "IfNotPresent")
    # Kubernetes would fill in $(URL).
    assert (role["command"], role["args"]) == (["serve"], ["--url=$$(URL)"])
    context = role["securityContext"]
    assert (context["runAsUser"], context["runAsGroup"], context["runAsNonRoot"]) == (ROLE_UID, ROLE_UID, True)
    assert context["capabilities"] == {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}
    assert {*mounted(role)} == {"/tmp", "/var/cache/shop", "/etc/shop", "/etc/motd"}  # noqa: S108
    assert {"ip": "192.0.2.9", "hostnames": ["mail"]} in spec["hostAliases"]
    assert {"ip": "192.0.2.7", "hostnames": ["db", "store"]} in spec["hostAliases"]


def test_a_service_of_another_user_gets_its_volumes_filled_and_is_ended_by_one_who_may(shop: Make) -> None:
    spec = built(pods_of(shop), "db-1")
    role = container(spec, "role")
    assert role["securityContext"]["runAsUser"] == 999
    assert "runAsNonRoot" not in role["securityContext"]
    assert role["startupProbe"]["exec"]["command"] == ["pg_isready"]
    volumes = {one["name"]: one["emptyDir"] for one in spec["volumes"]}
    assert volumes["shm"] == {"medium": "Memory", "sizeLimit": "64Mi"}
    (filler,) = spec["initContainers"]
    assert (filler["image"], filler["command"][-1]) == ("postgres:17", "/var/lib/postgresql")
    assert {*mounted(filler).values()} == {mounted(role)["/var/lib/postgresql"]}
    hold = container(spec, "hold")["securityContext"]
    assert (hold["runAsUser"], hold["capabilities"]["add"]) == (0, ["KILL", "DAC_READ_SEARCH"])


def test_what_others_ask_for_starts_first_and_what_is_beside_the_path_is_alone_in_its_pod(shop: Make) -> None:
    pods = pods_of(shop)
    order = [name for names in pods.order() for name in names]
    assert order.index("db-1") < order.index("tables") < order.index("shop-1") < order.index("k6-1")
    assert order.index("queue") < order.index("shop-1")
    assert [one["name"] for one in built(pods, "queue")["containers"]] == ["role"]


def test_a_generator_begins_when_its_container_is_added(home: Path) -> None:
    text = MINIMAL.replace("path: [k6, backend]", "path: [wrk, backend]")
    knobs = text[text.index("knobs:") : text.index("predictions:")]
    text = text.replace(knobs, 'load: {wrk: "-c9 {target}/"}\n')
    text = text.replace("client.requests.ok == load.users", "ledger.connections.backend.failed == 0")
    pods = pods_of(resolving(home, text))
    assert [one["name"] for one in built(pods, "wrk-1")["containers"]] == ["collector", "hold"]
    added = build_added_role(pods.role_container("wrk-1"), 1)
    assert (added["name"], added["image"]) == ("role-1", "connlab/generators:latest")
    assert (added["command"], added["args"]) == (["wrk"], ["-c9", "http://backend-1:8080/"])
    assert {"/raw", "/load"} < {*mounted(added)}
    # The cluster gives an added container no part of a volume, and no limits.
    assert not {"resources", "startupProbe"} & {*added}
    assert all("subPath" not in one for one in added["volumeMounts"])


def test_an_image_that_is_built_here_is_loaded_or_pushed_under_its_folder_s_name(shop: Make, home: Path) -> None:
    (home / "conf" / "Dockerfile").write_text("FROM acme/shop:1.2\n")
    pods = pods_of(shop, changes={"image: acme/shop:1.2": "build: ./conf"})
    made = pods.container("shop-1")
    assert Images().of_container(made, "shop") == {
        "image": "connlab-own/corner-shop:latest",
        "imagePullPolicy": "Never",
    }
    pushed = Images("registry.example/lab").of_container(made, "shop")
    assert pushed == {"image": "registry.example/lab/corner-shop:latest", "imagePullPolicy": "Always"}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('user: "999"', "user: postgres", "a cluster knows a container's user by number, and db runs as 'postgres'"),
        ("shm_size: 64m", "ulimits: {nofile: 9}", "a cluster sets no limits of a container's processes, and db asks"),
        (
            "volumes: [./conf:/etc/shop]",
            "volumes: [data:/data]",
            "shop-1 and db-1 share the volume 'data', and pods of a run share none",
        ),
        (
            "path: [k6, shop, db]",
            "path: [k6, nginx, shop, db]",
            "each of ",
        ),
        (
            "knobs:",
            "actions: [{at: 1s, do: restart, instance: shop-1, for: 1s}]\nknobs:",
            "shop-1 cannot be started anew on a cluster, for the file /etc/motd is mounted alone",
        ),
    ],
)
def test_what_no_cluster_can_give_is_refused_at_its_line(shop: Make, old: str, new: str, said: str) -> None:
    changes = {old: new} | ({"[queue, tables]": "[queue, tables, nginx]"} if "nginx" in new else {})
    (problem,) = cluster_problems(pods_of(shop, changes=changes))
    assert problem.what.startswith(said)
    assert "scenario.yaml:" in str(problem.where)
    assert problem.hint
