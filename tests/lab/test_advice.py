"""Advice: from the ledger's main cause to a knob, a value and one command."""

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

from formats import manifest
from lab.console import advice, next_steps
from lab.errors import BadInput
from lab.runs.run_context import knob_records
from lab.scenarios.overrides import parse_settings
from lab.scenarios.resolve import resolve
from lab.scenarios.resolved import ResolvedScenario, Variant
from lab.scenarios.topology import topology_of
from lab.series import arms
from tests.lab.series_support import write
from tests.lab.support import MINIMAL, connlab, manifest_of, resolving


def recorded(
    folder: Path,
    effective: ResolvedScenario,
    causes: dict[str, int],
    *,
    series: str | None = None,
    cell: str = "default",
    **ledger: Any,  # noqa: ANN401 # JSON
) -> Path:
    """A run's folder with a manifest and what advice reads of what was derived."""
    (folder / "derived").mkdir()
    manifest_of(
        effective,
        "r",
        series=series,
        cell=cell,
        by_set=effective.scenario.arms is None and effective.variant.path is None,
        roles=dict(effective.roles),
        instances={role: list(names) for role, names in topology_of(effective).instances.items()},
        knobs=knob_records(effective),
        sysctls={"backend-1": {"net.core.somaxconn": "4096"}},
    ).save(folder)
    found = sum(causes.values())
    derived: dict[str, dict[str, Any]] = {
        "verdict": {"verdict": "inconclusive", "predictions": [], "published": None, "health": {}, "problems": []}
        | {"ledger": {"unexplained": 0, "causes": causes, "identities": {"true": 0, "false": 0, "unknown": 0}}},
        "ladders": {"ladders": [], "lacks": []},
        "figures": {"figures": {}, "why": {}},
        "ledger": {"requests": {"total": found, "ok": 0, "failed": found, "slow": 0}, "lacks": [], "unexplained": 0}
        | {"unexplained_requests": [], "causes": causes, "failed_causes": causes, "names": [], "hops": []}
        | ledger,
    }
    for file, content in derived.items():
        whole = {"schema": f"connlab.{file}/1", "scenario": "s", "run": "r", **content}
        (folder / "derived" / f"{file}.json").write_text(json.dumps(whole))
    return folder


@pytest.mark.parametrize(
    ("scenario", "cause", "knob", "value"),
    [
        ("accept-queue-overflow", "accept-queue-drop", "backend.max_connections", "103"),
        ("accept-queue-overflow", "waited-in-accept-queue", "backend.max_connections", "103"),
        ("threads-or-virtual-threads", "waited-for-a-thread", "backend.threads_max", "300"),
        ("accept-queue-overflow", "syn-queue-drop", "kernel.backend.net.ipv4.tcp_syncookies", "1"),
        ("spike-through-nginx", "proxy-connections-exhausted", "nginx.worker_connections", "2408"),
        ("spike-through-nginx", "stale-keepalive", "nginx.upstream_keepalive_timeout", "19s"),
    ],
)
def test_a_cause_has_its_knob(tmp_path: Path, scenario: str, cause: str, knob: str, value: str) -> None:
    found = advice.advise_on_run(recorded(tmp_path, resolve(scenario), {cause: 9, "error-status": 1}))
    assert (found.cause, found.count, found.knob, found.value) == (cause, 9, knob, value)
    assert found.command == f'make run SCENARIO={scenario} SET="{knob}={value}"'


def test_a_client_with_a_connection_for_each_request_uses_up_its_own_ports(tmp_path: Path) -> None:
    effective = resolve("one-port")
    assert effective.scenario.knobs.load.workload == "tcp"
    found = advice.advise_on_run(recorded(tmp_path, effective, {"ephemeral-ports-exhausted": 1}))
    assert found.knob == "kernel.k6.net.ipv4.ip_local_port_range"


def test_a_gateway_out_of_ports_needs_room_in_both_limits_of_its_pool(tmp_path: Path) -> None:
    found = advice.advise_on_run(
        recorded(tmp_path, resolve("gateway-pool-too-small"), {"ephemeral-ports-exhausted": 9})
    )
    assert (found.knob, found.value) == ("gateway.max_idle_conns", "600")
    assert "the pool keeps 100 of their connections" in found.why
    both = "gateway.max_idle_conns=600 gateway.max_idle_conns_per_host=600"
    assert found.command == f'make run SCENARIO=gateway-pool-too-small SET="{both}"'


def test_a_gateway_that_keeps_no_connection_needs_ports(tmp_path: Path) -> None:
    effective = resolve("gateway-pool-too-small", ["gateway.disable_keep_alives=true"])
    found = advice.advise_on_run(recorded(tmp_path, effective, {"ephemeral-ports-exhausted": 9}))
    assert (found.knob, found.value) == ("kernel.gateway.net.ipv4.ip_local_port_range", "1024 65535")


def test_what_was_not_enough_is_doubled(tmp_path: Path) -> None:
    effective = resolve("spike-through-nginx", ["nginx.worker_connections=5000"])
    found = advice.advise_on_run(recorded(tmp_path, effective, {"proxy-connections-exhausted": 1}))
    assert found.value == "10000"


def test_the_command_keeps_what_the_run_had_set(tmp_path: Path) -> None:
    effective = resolve("accept-queue-overflow", ["load.users=50", "backend.max_connections=2"])
    found = advice.advise_on_run(recorded(tmp_path, effective, {"accept-queue-drop": 1}))
    assert found.command == 'make run SCENARIO=accept-queue-overflow SET="backend.max_connections=50 load.users=50"'


def test_a_load_without_records_of_requests_has_advice_by_its_connections(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    load = 'path: [wrk, backend]\nload: {wrk: "-t1 -c9 -d1s {target}/"}\n'
    wrk = load + MINIMAL[MINIMAL.index("predictions:") :].replace(
        "client.requests.ok == load.users", "ledger.connections.backend.failed == 0"
    )
    (tmp_path / "wrk").mkdir()
    effective = resolving(tmp_path / "wrk", MINIMAL[: MINIMAL.index("path:")] + wrk)()
    hop = {
        "from": "wrk",
        "to": "backend",
        "observers": [],
        "dropped_syns": {"recovered": 0, "lost": 9},
        "dropped_later": 0,
    }
    found = {"total": 9, "failed": 9, "outcomes": {}, "causes": {"waited-in-accept-queue": 2, "accept-queue-drop": 7}}
    hops = [{**hop, "identities": [], "connections": found}]
    folder = recorded(tmp_path, effective, {}, requests=None, by_connection=True, hops=hops)
    assert connlab("advise", str(folder)) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "main cause: accept-queue-drop (7 connections)" in printed
    assert "how much load wrk makes; backend.max_connections = " in printed
    assert next_steps.after_run(folder).startswith("next, which knob would help")  # and no request's story


WAITS = "nobody fails, but {} in the accept queue until another's {}"
IDLE = "idle connection ends, after 20 s or more"


@pytest.mark.parametrize(
    ("sets", "value", "choices"),
    [
        ([], "103", {"101": WAITS.format("2 users wait", IDLE), "103": "nobody waits"}),
        (["backend.accept_count=5"], "103", {"97": WAITS.format("6 users wait", IDLE), "103": "nobody waits"}),
        (["load.keep_alive=false"], "101",
         {"101": WAITS.format("2 users wait", "connection ends"), "103": "nobody waits"}),
        (["backend.max_connections=101"], "103", {"103": "nobody waits"}),
        (["backend.accept_count=200"], "103", {}),
    ],
)  # fmt: skip
def test_each_value_that_helps_is_named_with_what_it_is_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], sets: list[str], value: str, choices: dict[str, str]
) -> None:
    folder = recorded(tmp_path, resolve("accept-queue-overflow", sets), {"accept-queue-drop": 1})
    found = advice.advise_on_run(folder)
    assert (found.value, found.choices) == (value, choices)
    connlab("advise", str(folder))
    printed = " ".join(capsys.readouterr().out.split())
    assert all(f"{number}: {effect}" in printed for number, effect in choices.items())


ARMS = (
    MINIMAL.replace("  backend:\n    accept_count: 1\n", "")
    + """\
arms:
  variants:
    few: {backend.accept_count: 2, backend.max_connections: 3, load.users: 9}
    proxied: {path: [k6, nginx, backend]}
"""
)


def of_arm(folder: Path, arm: str, *overrides: str) -> ResolvedScenario:
    write(folder, scenario=ARMS)
    return arms.resolve_arm(resolve("one", overrides), overrides, arm)


@pytest.mark.parametrize("series", [None, "20261121T080000Z-arms-one"])
def test_of_an_arm_it_is_the_arm_that_is_run_again(tmp_path: Path, series: str | None) -> None:
    effective = of_arm(tmp_path, "few", "load.calls=2")
    run = recorded(tmp_path, effective, {"accept-queue-drop": 1}, series=series, cell="few")
    assert (
        advice.advise_on_run(run).command
        == 'make run SCENARIO=one ARM=few SET="load.calls=2 backend.max_connections=9"'
    )


def test_what_is_advised_goes_over_what_the_arm_sets(tmp_path: Path) -> None:
    effective = of_arm(tmp_path, "few", "backend.accept_count=7")
    assert effective.values["backend.accept_count"] == 7
    assert effective.values["load.users"] == 9
    assert [one.prediction.id for one in effective.predictions] == ["served"]
    with pytest.raises(BadInput, match="--arm fwe: there is no arm 'fwe'; did you mean 'few'"):
        arms.resolve_arm(resolve("one"), (), "fwe")


def test_a_value_with_a_space_names_the_arm_as_well(tmp_path: Path) -> None:
    effective = of_arm(tmp_path, "proxied")
    run = recorded(tmp_path, effective, {"ephemeral-ports-exhausted": 1}, cell="proxied")
    command = advice.advise_on_run(run).command
    assert command is not None
    assert command.startswith("./connlab run one --arm proxied --set 'kernel.nginx.net.ipv4.ip_local_port_")


MATRIX = "20261121T080000Z-matrix-grid"
COOKIES = "kernel.backend.net.ipv4.tcp_syncookies"


def test_a_cell_of_a_matrix_is_its_scenario_with_the_cell_s_settings(tmp_path: Path) -> None:
    variant = Variant(overrides=tuple(parse_settings({"load.users": 40}, {"load.users": "grid.yaml:7"})))
    effective = resolve("accept-queue-overflow", variant=variant)
    run = recorded(tmp_path, effective, {"accept-queue-drop": 1}, series=MATRIX, cell="users-40")
    expected = 'make run SCENARIO=accept-queue-overflow SET="load.users=40 backend.max_connections=40"'
    assert advice.advise_on_run(run).command == expected


def test_a_cell_with_a_path_of_its_own_is_tested_by_the_matrix(tmp_path: Path) -> None:
    variant = Variant(path=(["k6", "backend"], "grid.yaml:8"))
    effective = resolve("keep-alive-paths", variant=variant)
    run = recorded(tmp_path, effective, {"syn-queue-drop": 1}, series=MATRIX, cell="direct")
    assert advice.advise_on_run(run).command == f'make matrix MATRIX=grid SET="{COOKIES}=1"'


def test_what_the_matrix_sets_is_changed_in_its_file_and_no_command_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    moved = tuple(parse_settings({COOKIES: "0"}, {COOKIES: "grid.yaml:7"}))
    effective = resolve("keep-alive-paths", variant=Variant(moved, (["k6", "backend"], "grid.yaml:8")))
    run = recorded(tmp_path, effective, {"syn-queue-drop": 1}, series=MATRIX, cell="direct")
    found = advice.advise_on_run(run)
    assert found.command is None
    assert f"the matrix sets {COOKIES} itself: change it in scenarios/matrices/grid.yaml" in found.why
    assert connlab("advise", str(run)) == 0
    told = capsys.readouterr().out
    assert f"set {COOKIES} = 1" in told
    assert "test it" not in told


def test_a_search_over_a_scenario_with_arms_has_no_command(tmp_path: Path) -> None:
    series = MATRIX.replace("matrix", "search")
    found = advice.advise_on_run(recorded(tmp_path, resolve("keep-alive-paths"), {"syn-queue-drop": 1}, series=series))
    assert found.command is None
    assert "set it in scenarios/keep-alive-paths/scenario.yaml" in found.why


def test_the_advice_can_be_run(tmp_path: Path) -> None:
    found = advice.advise_on_run(recorded(tmp_path, resolve("spike-through-nginx"), {"ephemeral-ports-exhausted": 1}))
    assert found.command is not None
    assert found.command.startswith("./connlab run spike-through-nginx --set ")
    resolve("spike-through-nginx", [f"{found.knob}={found.value}"])


def test_drops_before_nginx_are_nginx_s(tmp_path: Path) -> None:
    hops: list[dict[str, Any]] = [
        {"from": "k6", "to": "nginx", "observers": [], "dropped_syns": {"lost": 5, "recovered": None}}
        | {"dropped_later": None, "identities": []}
    ]
    effective = resolve("long-polling-smoke", ["nginx.listen_backlog=16"])
    run = recorded(tmp_path, effective, {"accept-queue-drop": 5}, hops=hops)
    assert advice.advise_on_run(run).knob == "nginx.listen_backlog"


def test_a_manifest_that_lacks_a_knob_gives_no_value(tmp_path: Path) -> None:
    folder = recorded(tmp_path, resolve("accept-queue-overflow"), {"waited-for-a-thread": 1})
    content = json.loads((folder / "manifest.json").read_bytes())
    del content["knobs"]["backend.max_connections"]
    (folder / "manifest.json").write_text(json.dumps(content))
    found = advice.advise_on_run(folder)
    assert (found.knob, found.why) == (
        None,
        "the value depends on backend.max_connections, which the run's manifest does not have",
    )


@pytest.mark.parametrize("cause", ["slow-handler", "generator-starved", "unexplained", "error-status"])
def test_where_no_knob_helps_it_says_so(tmp_path: Path, cause: str) -> None:
    unexplained: dict[str, Any] = {"unexplained": 3} if cause == "unexplained" else {}
    causes = {} if unexplained else {cause: 3}
    found = advice.advise_on_run(recorded(tmp_path, resolve("accept-queue-overflow"), causes, **unexplained))
    assert (found.cause, found.knob, found.command) == (cause, None, None)
    assert found.why


@pytest.mark.parametrize(
    ("scenario", "cause", "words"),
    [
        ("haproxy-maxconn-queue", "stale-keepalive", "set haproxy.pool_purge_delay, now 5s, well below that"),
        ("accept-queue-overflow", "stale-keepalive", "k6 must close an idle connection before backend does"),
        (
            "spike-through-nginx",
            "stream-cut-by-proxy",
            "raise nginx.proxy_read_timeout, now 1m, above the longest pause",
        ),
        ("spike-through-nginx", "refused-by-proxy", "(app.conf:3: limit_req zone=api)"),
    ],
)
def test_advice_without_a_value_names_the_side_and_the_setting(
    tmp_path: Path, scenario: str, cause: str, words: str
) -> None:
    folder = recorded(tmp_path, resolve(scenario), {cause: 3})
    content = json.loads((folder / "manifest.json").read_bytes())
    if "nginx" in content["roles"]:
        rules = {"limit_req zone=api": "app.conf:3", "return 301 /": "app.conf:4"}
        content["roles"]["nginx"]["rules"] = [{"text": text, "where": where} for text, where in rules.items()]
    (folder / "manifest.json").write_text(json.dumps(content))
    found = advice.advise_on_run(folder)
    assert found.knob is None
    assert words in found.why


def test_a_run_without_faults_needs_no_advice(tmp_path: Path) -> None:
    assert advice.advise_on_run(recorded(tmp_path, resolve("accept-queue-overflow"), {})).cause is None


def test_without_its_manifest_nothing_is_derived_again(tmp_path: Path) -> None:
    file = recorded(tmp_path, resolve("accept-queue-overflow"), {}) / "manifest.json"
    content = file.read_text()
    file.write_text(content.replace("connlab.manifest/1", "connlab.manifest/2"))
    with pytest.raises(BadInput, match="use the version of connlab that made the run"):
        advice.advise_on_run(tmp_path)
    file.write_text(content[:50])
    with pytest.raises(BadInput, match=r"manifest\.json: Invalid JSON") as refused:
        advice.advise_on_run(tmp_path)
    assert "derive it again" not in str(refused.value)


@pytest.mark.parametrize("table", ["requests", "flows", "timeline"])
def test_a_damaged_table_is_refused_with_the_hint(tmp_path: Path, table: str) -> None:
    folder = recorded(tmp_path, resolve("spike-through-nginx"), {"accept-queue-drop": 1})
    rows = (
        "SELECT 'accept-queue-drop' AS cause, 'timeout' AS dial_error_kind, NULL::BIGINT AS access_line FROM range(9)"
    )
    duckdb.execute(f"COPY ({rows}) TO '{folder / 'derived' / 'requests.parquet'}'")
    assert advice.advise_on_run(folder).cause == "accept-queue-drop"
    (folder / "derived" / f"{table}.parquet").write_bytes(b"PAR1")
    with pytest.raises(BadInput, match=rf"{table}\.parquet: damaged; derive it again: make analyse RUN="):
        advice.advise_on_run(folder)


def test_a_table_that_is_damaged_within_is_refused_with_the_hint(tmp_path: Path) -> None:
    folder = recorded(tmp_path, resolve("spike-through-nginx"), {"accept-queue-drop": 1})
    file = folder / "derived" / "requests.parquet"
    cause = "if(i % 2 = 0, 'accept-queue-drop', i::text) AS cause"
    rows = f"SELECT {cause}, i::text AS dial_error_kind, i AS access_line FROM range(900) t(i)"  # noqa: S608  our own
    duckdb.execute(f"COPY ({rows}) TO '{file}'")
    content = file.read_bytes()
    file.write_bytes(content[:4] + b"\xff" * 2000 + content[2004:])
    with pytest.raises(BadInput, match=r"derived is damaged; derive it again: make analyse RUN="):
        advice.advise_on_run(folder)


def test_a_run_without_a_ledger_is_refused_with_the_hint(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"no manifest\.json here; this is not a run's folder"):
        advice.advise_on_run(tmp_path)
    empty = recorded(tmp_path, resolve("accept-queue-overflow"), {}, requests=None, lacks=["k6's end"])
    with pytest.raises(BadInput, match="is empty: k6's end"):
        advice.advise_on_run(empty)
    assert manifest.load_manifest(empty).run == "r"


ADVISED = "backend.max_connections=103"


def run(home: Path, name: str, *overrides: str, failed: int, slow: int = 0, cell: str = "default") -> Path:
    """A complete run of accept-queue-overflow, whose failures are those of a full accept queue."""
    folder = home / name
    folder.mkdir()
    causes = {"accept-queue-drop": failed, "waited-in-accept-queue": slow}
    requests = {"total": 103, "ok": 103 - failed, "failed": failed, "slow": slow}
    recorded(
        folder,
        resolve("accept-queue-overflow", list(overrides)),
        {name: count for name, count in causes.items() if count},
        cell=cell,
        requests=requests,
        failed_causes={"accept-queue-drop": failed} if failed else {},
    )
    file = folder / "manifest.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"status": "complete", "cell": cell}))
    return folder


@pytest.mark.parametrize("value", ["101", "103"])
def test_a_run_that_follows_an_advice_says_what_became_of_the_failures(tmp_path: Path, value: str) -> None:
    run(tmp_path, "20260101T000000Z", failed=100)
    after = run(tmp_path, "20260101T000100Z", f"backend.max_connections={value}", failed=0)
    said = advice.advice_outcome(after)
    assert said is not None
    assert said.startswith(f"100 failures → 0, with backend.max_connections = {value}, as advised on ")
    assert said.endswith("20260101T000000Z")


def test_where_nobody_failed_it_says_so_of_the_slow_requests(tmp_path: Path) -> None:
    run(tmp_path, "20260101T000000Z", failed=0, slow=2)
    after = run(tmp_path, "20260101T000100Z", ADVISED, failed=0, slow=1)
    assert str(advice.advice_outcome(after)).startswith("2 slow requests → 1, ")


def test_an_advice_that_did_not_help_is_not_passed_over(tmp_path: Path) -> None:
    run(tmp_path, "20260101T000000Z", failed=1)
    after = run(tmp_path, "20260101T000100Z", ADVISED, failed=7)
    assert str(advice.advice_outcome(after)).startswith("1 failure → 7, ")


def test_the_run_before_it_is_found_behind_a_repetition(tmp_path: Path) -> None:
    run(tmp_path, "20260101T000000Z", failed=90)
    run(tmp_path, "20260101T000100Z", failed=100)
    run(tmp_path, "20260101T000200Z", ADVISED, failed=0)
    again = run(tmp_path, "20260101T000300Z", ADVISED, failed=0)
    assert str(advice.advice_outcome(again)).startswith("100 failures → 0, ")


@pytest.mark.parametrize(
    "overrides",
    [(), ("backend.max_connections=50",), (ADVISED, "backend.accept_count=2"), ("load.connect_timeout=10s",)],
)
def test_a_run_with_other_settings_follows_no_advice(tmp_path: Path, overrides: tuple[str, ...]) -> None:
    run(tmp_path, "20260101T000000Z", failed=100)
    assert advice.advice_outcome(run(tmp_path, "20260101T000100Z", *overrides, failed=50)) is None


def test_neither_another_arm_nor_a_later_nor_a_broken_run_counts(tmp_path: Path) -> None:
    run(tmp_path, "20260101T000000Z", failed=100, cell="other")
    broken = run(tmp_path, "20260101T000001Z", failed=100)
    (broken / "derived" / "ledger.json").write_text("{}")
    torn = run(tmp_path, "20260101T000002Z", failed=100)
    (torn / "manifest.json").write_text("{")
    after = run(tmp_path, "20260101T000100Z", ADVISED, failed=0)
    run(tmp_path, "20260101T000200Z", failed=100)
    (tmp_path / "latest").symlink_to("20260101T000200Z")
    assert advice.advice_outcome(after) is None
