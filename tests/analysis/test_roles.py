"""A role is known by its declaration: the manifest's own, or that of the version that wrote a manifest without."""

import json

import pytest

from analysis import figures
from analysis.derivation import analyse
from analysis.evidence import manifest
from analysis.evidence.rawrun import RawRun
from analysis.evidence.roles import EARLIER, earlier, of_manifest
from analysis.figures import Run
from tests.analysis.support import RunFolder


@pytest.fixture
def relayed_run(proxied_run: RunFolder) -> RunFolder:
    """The run through nginx, as if it had gone through a proxy that no version knows."""
    run = proxied_run
    for key in ("instances", "sysctls", "exits", "addresses"):
        run.manifest[key]["relay"] = run.manifest[key].pop("nginx")
    run.manifest["instances"]["relay"] = ["relay"]
    run.manifest["path"] = ["k6", "relay", "backend"]
    run.manifest["roles"] = {
        "k6": EARLIER["k6"].model_dump(),
        "relay": {
            "kind": "proxy",
            "group": "relay",
            "logs": EARLIER["nginx"].logs,
            "limits": {"connect_timeout": "patience", "pool": "pool"},
            "knobs": {"pool": {"shown": "kept to servers"}, "patience": {}},
        },
        "backend": EARLIER["backend"].model_dump(),
    }
    run.set_knobs(relay__pool=0, relay__patience=2_500)
    run.samples["relay"] = run.samples.pop("nginx")
    run.captures["relay"] = run.captures.pop("nginx")
    run.lines = {name.replace("nginx/", "relay/"): lines for name, lines in run.lines.items()}
    run.texts = {name.replace("nginx/", "relay/"): text for name, text in run.texts.items()}
    return run


def test_a_proxy_that_no_version_knows_is_read_by_its_declaration(relayed_run: RunFolder) -> None:
    folder = relayed_run.write()
    run = Run(RawRun(folder, manifest.read(folder)))
    found = {name: figures.value(run, name) for name in ("access.relay.requests", "access.relay.tries.total")}
    assert found == {"access.relay.requests": 4, "access.relay.tries.total": 4}
    assert figures.value(run, "model.syns_per_failed_try") == 2
    analyse(folder)
    ledger = json.loads((folder / "derived" / "ledger.json").read_bytes())
    balanced = {each["id"] for hop in ledger["hops"] for each in hop["identities"] if each["holds"] == "true"}
    assert balanced >= {"tries-unanswered", "tries-refused", "tries-connected"}


def test_a_manifest_without_declarations_has_those_of_its_version() -> None:
    assert list(of_manifest({"path": ["k6", "nginx", "backend"]})) == ["k6", "nginx", "backend"]
    assert earlier(["k6", "relay"]) == {"k6": EARLIER["k6"]}


def test_limits_that_an_earlier_version_did_not_declare_are_known_where_the_role_has_their_knobs() -> None:
    declared = EARLIER["gateway"].model_dump() | {"limits": {"pool": "max_idle_conns"}, "knobs": {"max_idle_conns": {}}}
    declared["knobs"]["idle_conn_timeout"] = {}
    found = of_manifest({"roles": {"gateway": declared, "door": declared}})
    assert found["gateway"].bounds() == {"pool": "gateway.max_idle_conns", "server_idle": "gateway.idle_conn_timeout"}
    assert found["door"].bounds() == {"pool": "gateway.max_idle_conns"}
