"""An ordinary application with a database, by its own Compose file, behind nginx: what docs/shop.md tells."""

import os
import subprocess
from collections.abc import Callable

import pytest

from .conftest import ROOT, Run, assert_spoiled_only_by_the_machine, left_behind

# They share the images.
pytestmark = [pytest.mark.e2e, pytest.mark.builds, pytest.mark.xdist_group("shop")]

SHOP = ROOT / "examples" / "shop"
KEPT = ("nginx.upstream_keepalive=64", "nginx.proxy_http_version=1.1", "nginx.proxy_connection=")


@pytest.fixture(scope="module", autouse=True)
def images() -> None:
    """The shop's images, as its user builds them, from the base that is here."""
    built = subprocess.run(
        ["docker", "compose", "--project-directory", SHOP, "build"],
        env={**os.environ, "BASE": "connlab/base"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stdout + built.stderr


def test_nginx_opens_a_connection_to_the_shop_for_each_request(run: Callable[..., Run]) -> None:
    found = run(str(SHOP / "lab"))
    assert found.manifest["instances"] == {"k6": ["k6-1"], "nginx": ["nginx"], "shop": ["shop-1"], "db": ["db-1"]}
    assert found.manifest["images"]["db"].startswith("sha256:")
    assert found.manifest["roles"]["shop"]["loosened"]["user"] == "image"
    assert left_behind(found.folder) == []
    if found.exit_code == 3:
        assert found.busy is not None, found.output
        return
    judged = {row["id"]: row["status"] for row in found.verdict["predictions"]}
    assert (found.exit_code, judged["kept-behind"]) == (1, "false"), found.output
    # What its users wait for is the machine's.
    in_time = "threshold-http-req-duration-name-order-p-95-below-500"
    assert {status for name, status in judged.items() if name not in ("kept-behind", in_time)} == {"true"}, found.output
    figures = found.figures
    assert figures["flows.shop.established"] == figures["client.requests.total"] > 0
    assert figures["listen.shop.limit"] == 100
    # The database is a hop like any other: its kernel and its packets agree.
    assert 0 < figures["sockets.db.established.max"] <= 10
    ledger = found.read("derived/ledger")
    to_database = ledger["hops"][-1]
    assert (to_database["from"], to_database["to"], to_database["observers"]) == ("shop", "db", ["db-1"])
    assert {one["holds"] for one in to_database["identities"]} == {"true"}


def test_kept_connections_fix_it(run: Callable[..., Run]) -> None:
    found = run(str(SHOP / "lab"), *KEPT)
    if found.exit_code == 3:
        assert_spoiled_only_by_the_machine(found)
        return
    judged = {row["id"]: row["status"] for row in found.verdict["predictions"]}
    assert judged["kept-behind"] == "true", found.output
    assert found.figures["ledger.identities.failed"] == 0
