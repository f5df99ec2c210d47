"""The board of docs/boards over a real run: a real Prometheus scrapes it, and answers every query of the board."""

import http.client
import json
import re
import socket
import time
import urllib.parse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import pytest

from tests.own_results import RESULTS

from .conftest import HANG_S, ROOT, SHORTER_OVERFLOW, docker, latest, start, turn, wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("boards")]

SCENARIO = "accept-queue-overflow"
BOARD = json.loads((ROOT / "docs/boards/connlab.json").read_text())
TARGETS = RESULTS / "metrics-targets.json"
NAME = "connlab-check-prometheus"
# As Grafana fills them in for a run of a minute that is scraped every second.
FILLED_IN = {"$__rate_interval": "10s", "$__range": "900s", "$run": ".+", "$role": ".+", "$instance": ".+"}
LABEL_VALUES = re.compile(r"label_values\((?P<selector>.+), (?P<label>\w+)\)")


@dataclass(frozen=True)
class Prometheus:
    """A Prometheus that scrapes by docs/boards/prometheus.yml; it listens on this port of the loopback."""

    port: int

    def ask(self, path: str, **parameters: object) -> Any:  # noqa: ANN401 # JSON
        status, text = self._get(f"/api/v1/{path}?{urllib.parse.urlencode(parameters)}")
        assert status == HTTPStatus.OK, f"{path} {parameters}: {text}"
        answer = json.loads(text)
        assert answer["status"] == "success", answer
        assert not answer.get("warnings"), answer
        return answer["data"]

    def is_ready(self) -> bool:
        try:
            return self._get("/-/ready")[0] == HTTPStatus.OK
        except OSError:
            return False

    def _get(self, path: str) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()

    def health(self) -> list[str]:
        return [one["health"] for one in self.ask("targets")["activeTargets"]]


@dataclass(frozen=True)
class Scraped:
    """A run that has ended, and the Prometheus that scraped it."""

    prometheus: Prometheus
    run: str
    begun_s: float
    ended_s: float
    metadata: Mapping[str, Any]
    figures: Mapping[str, Any]
    output: str


@pytest.fixture(scope="module")
def prometheus() -> Iterator[Prometheus]:
    """Prometheus as docs/boards/README.md starts it on the machine that runs the lab."""
    TARGETS.parent.mkdir(parents=True, exist_ok=True)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    docker(
        *("run", "--detach", "--name", NAME, "--label", "connlab.check=boards", "--network", "host", "--read-only"),
        *("--tmpfs", "/data:mode=1777", "--volume", f"{ROOT / 'docs/boards'}:/lab/docs/boards:ro"),
        *("--volume", f"{TARGETS.parent}:/lab/results:ro", "connlab/prometheus"),
        *("--config.file=/lab/docs/boards/prometheus.yml", "--storage.tsdb.path=/data"),
        f"--web.listen-address=127.0.0.1:{port}",
    )
    try:
        made = Prometheus(port)
        wait_until(made.is_ready, "Prometheus is ready")
        yield made
    finally:
        docker("rm", "--force", "--volumes", NAME)


@pytest.fixture(scope="module")
def scraped(prometheus: Prometheus) -> Scraped:
    """A run with a full accept queue, which Prometheus finds and scrapes."""
    with turn():
        begun_s = time.time()
        running = start("run", SCENARIO, "--metrics", *SHORTER_OVERFLOW)
        try:
            # What a run said that ended before is printed below.
            wait_until(lambda: running.poll() is not None or prometheus.health() == ["up", "up"], "two targets are up")
            # Prometheus knows it of targets that are there.
            metadata = prometheus.ask("metadata")
        finally:
            output, _ = running.communicate(timeout=HANG_S)
    assert running.returncode in (0, 3), output
    folder = latest(SCENARIO)
    return Scraped(
        prometheus,
        folder.name,
        begun_s,
        time.time(),
        metadata,
        json.loads((folder / "derived/figures.json").read_text())["figures"],
        output,
    )


def filled_in(expression: str) -> str:
    for variable, value in FILLED_IN.items():
        expression = expression.replace(variable, value)
    assert "$" not in expression, expression
    return expression


def queries() -> list[tuple[str, str]]:
    found = [
        (f"{panel['title']} {target['refId']}", target["expr"])
        for panel in BOARD["panels"]
        for target in panel["targets"]
    ]
    assert len(found) >= len(BOARD["panels"]) > 0
    return found


@pytest.mark.parametrize(("name", "query"), queries(), ids=[name for name, _ in queries()])
def test_every_query_of_the_board_is_answered_with_samples_of_the_run(scraped: Scraped, name: str, query: str) -> None:
    found = scraped.prometheus.ask(
        "query_range", query=filled_in(query), start=scraped.begun_s, end=scraped.ended_s, step=1
    )
    assert found["result"], f"{name}: {query}"
    for series in found["result"]:
        assert series["metric"]["run"] == scraped.run
        assert all(value != "NaN" for _, value in series["values"]), series
    instances = {series["metric"].get("instance") for series in found["result"]} - {None}
    # The clients listen nowhere.
    assert instances in (set(), {"k6-1", "backend-1"}, {"backend-1"}), name


def test_the_board_s_variables_find_the_run_its_roles_and_its_instances(scraped: Scraped) -> None:
    found = {}
    for variable in BOARD["templating"]["list"]:
        if variable["type"] == "query":
            asked = LABEL_VALUES.fullmatch(filled_in(variable["query"]["query"]))
            assert asked, variable
            found[variable["name"]] = scraped.prometheus.ask(
                f"label/{asked['label']}/values", **{"match[]": asked["selector"]}
            )
    assert found == {"run": [scraped.run], "role": ["backend", "k6"], "instance": ["backend-1", "k6-1"]}


def test_the_board_s_overflows_are_the_run_s(scraped: Scraped) -> None:
    (panel,) = [one for one in BOARD["panels"] if one["title"] == "Overflows of the accept queue, in all"]
    answer = scraped.prometheus.ask("query", query=filled_in(panel["targets"][0]["expr"]), time=scraped.ended_s)
    shown = {one["metric"]["instance"]: float(one["value"][1]) for one in answer["result"]}
    measured = scraped.figures["kernel.backend.TcpExt.ListenOverflows"]
    assert measured > 0
    assert shown == {"backend-1": measured, "k6-1": 0}


def test_what_was_scraped_changes_no_identity_of_the_run(scraped: Scraped) -> None:
    assert scraped.figures["metrics.backend.connections"] is not None
    assert scraped.figures["ledger.identities.failed"] == 0, scraped.output
    assert scraped.figures["ledger.identities.holding"] > 0


def test_each_target_has_the_labels_of_its_samples_and_is_gone_after_the_run(scraped: Scraped) -> None:
    up = scraped.prometheus.ask("query_range", query="up", start=scraped.begun_s, end=scraped.ended_s, step=1)["result"]
    labels = {(one["metric"]["run"], one["metric"]["role"], one["metric"]["instance"]) for one in up}
    assert labels == {(scraped.run, "k6", "k6-1"), (scraped.run, "backend", "backend-1")}
    assert json.loads(TARGETS.read_text()) == []
    wait_until(lambda: scraped.prometheus.health() == [], "no target is left")
    # No label of a sample had to give way to the target's.
    names = scraped.prometheus.ask("labels")
    assert [name for name in names if name.startswith("exported_")] == []


def test_prometheus_reads_types_and_units_as_openmetrics_has_them(scraped: Scraped) -> None:
    # The older text format has no units, and calls a counter by its name with _total.
    told = {name: (one[0]["type"], one[0]["unit"]) for name, one in scraped.metadata.items()}
    assert told["connlab_kernel_counter"] == ("counter", "")
    assert told["connlab_accept_queue_depth"] == ("gauge", "")
    assert told["connlab_sampler_cpu_seconds"] == ("counter", "seconds")
