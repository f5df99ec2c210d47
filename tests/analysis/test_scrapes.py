"""Pages and logs are read as roles declare them; what a page lacks is left out."""

import json

import pytest

from analysis import figures
from analysis.derivation import analyse
from analysis.evidence.rawrun import RawRun
from analysis.evidence.scrapes import values
from analysis.figures import Run
from formats import manifest
from formats.role import Page, Value
from tests.analysis.support import RunFolder, contents, role

CSV = "# pxname,svname,qcur,scur\nservers,backend-1,3,10\nservers,BACKEND,4,\n"


@pytest.mark.parametrize(
    ("form", "body", "at", "found"),
    [
        ("json", {"threads": {"busy": 3}}, "threads.busy", 3),
        ("json", {"threads": {"busy": "3"}}, "threads.busy", None),
        ("json", {"threads": 3}, "threads.busy", None),
        ("text", "Active connections: 5 \n", r"Active connections: (\d+)", 5),
        ("text", "Active connections: 5 \n", r"Waiting: (\d+)", None),
        ("text", "Active connections: \u0665\n", r"Active connections: (\d+)", None),
        # Python's own would look for the rest of our lives.
        ("text", f"{'a' * 99}!", "(?:a+)+(b)", None),
        ("csv", CSV, "servers/backend-1/scur", 10),
        ("csv", CSV, "servers/BACKEND/qcur", 4),
        ("csv", CSV, "servers/BACKEND/scur", None),
        ("csv", CSV, "servers/backend-2/scur", None),
        ("csv", CSV, "servers/backend-1/smax", None),
        ("csv", "", "servers/backend-1/smax", None),
    ],
)
def test_a_value_is_found_where_its_page_has_it(form: str, body: object, at: str, found: int | None) -> None:
    page = Page.model_validate({"url": "http://x", "format": form, "values": {"it": Value(at=at)}})
    assert values(page, [body]) == [{} if found is None else {"it": found}]


@pytest.fixture
def relayed_run(proxied_run: RunFolder) -> RunFolder:
    """The run through nginx, as if it had gone through a proxy that no version knows."""
    run = proxied_run
    for key in ("instances", "sysctls", "exits", "addresses"):
        run.manifest[key]["relay"] = run.manifest[key].pop("nginx")
    run.manifest["instances"]["relay"] = ["relay"]
    run.manifest["path"] = ["k6", "relay", "backend"]
    run.manifest["roles"] = {
        **contents("k6", "backend"),
        "relay": role(
            "proxy",
            "relay",
            {"pool": {"label": "kept to servers"}, "patience": {}},
            logs={"access.jsonl": "nginx-access", "error.log": "nginx-errors"},
            limits={"connect_timeout": "patience", "pool": "pool"},
        ),
    }
    run.set_knobs(relay__pool=0, relay__patience=2_500)
    run.samples["relay"] = run.samples.pop("nginx")
    run.captures["relay"] = run.captures.pop("nginx")
    run.lines = {name.replace("nginx/", "relay/"): lines for name, lines in run.lines.items()}
    run.texts = {name.replace("nginx/", "relay/"): text for name, text in run.texts.items()}
    return run


def test_a_proxy_that_no_version_knows_is_read_by_its_declaration(relayed_run: RunFolder) -> None:
    folder = relayed_run.write()
    run = Run(RawRun(folder, manifest.load_manifest(folder)))
    found = {name: figures.value(run, name) for name in ("access.relay.requests", "access.relay.tries.total")}
    assert found == {"access.relay.requests": 4, "access.relay.tries.total": 4}
    assert figures.value(run, "model.syns_per_failed_try") == 2
    analyse(folder)
    ledger = json.loads((folder / "derived" / "ledger.json").read_bytes())
    balanced = {each["id"] for hop in ledger["hops"] for each in hop["identities"] if each["holds"] == "true"}
    assert balanced >= {"tries-unanswered", "tries-refused", "tries-connected"}
