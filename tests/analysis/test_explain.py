"""Stories of single requests, from whole run folders with captures."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import duckdb
import pytest

from analysis.diagnosis import health, joins
from analysis.diagnosis.joins import Joined
from analysis.evidence.rawrun import RawRun
from analysis.evidence.window import Window
from analysis.reports.stories.explanation import (
    WIDTH,
    UnknownRequest,
    explain_request,
    explain_worst,
    find_request,
    format_explanation,
)
from analysis.reports.stories.timeline import Explanation, RequestTimeline
from formats import manifest
from tests.analysis.packets import Capture, Connection
from tests.analysis.support import MEASURE_S, SERVED_MS, SYNS_S, USERS, RunFolder, at_us, make_access, make_capture
from tests.analysis.whole import make_run

BACKEND = "172.18.0.2:8080"


def port(user: int) -> str:
    return f"172.18.0.3:{40_000 + user}"


def begin_s(user: int) -> float:
    return MEASURE_S + 0.01 * (user - 1)


@dataclass
class Story:
    """A run with a capture; `told()` writes and explains it."""

    run: RunFolder
    capture: Capture = field(default_factory=Capture)
    observer: str = "backend-1"
    cut_bytes: int = 0

    def connection(self, user: int, server: str = BACKEND) -> Connection:
        return Connection(self.capture, port(user), server, isn=1_000 * user)

    def failed(self, user: int) -> Story:
        self.connection(user).syns(*(begin_s(user) + 0.0001 + syn for syn in SYNS_S))
        return self

    def served(self, user: int) -> Story:
        start_s, took_s = begin_s(user), SERVED_MS[user - 1] / 1000
        connection = self.connection(user).handshake(start_s + 0.0001)
        connection.ask(start_s + 0.0004).answer(start_s + took_s - 0.0002).close_by_client(start_s + took_s + 0.1)
        return self

    def explain(self, tell: Callable[[RawRun], Explanation]) -> Explanation:
        folder = self.run.write()
        content = self.capture.content()
        if self.capture.packets:
            path = self.run.raw(f"{self.observer}/capture.pcap")
            path.write_bytes(content[: len(content) - self.cut_bytes])
        return tell(RawRun(folder, manifest.load_manifest(folder)))

    def account(self, request: str = "1") -> RequestTimeline:
        return self.explain(lambda raw: explain_request(raw, request)).accounts[0]

    def lines(self, request: str = "1") -> list[str]:
        return list(format_explanation(self.explain(lambda raw: explain_request(raw, request))))

    def text(self, request: str = "1") -> str:
        """All of it, lines joined."""
        return re.sub(r"\s+", " ", "\n".join(self.lines(request)))

    def refused(self, request: str) -> str:
        with pytest.raises(UnknownRequest) as refusal:
            self.explain(lambda raw: explain_request(raw, request))
        return str(refusal.value)


@pytest.fixture
def story(run: RunFolder) -> Story:
    run.manifest["slow_ms"] = 2000
    return Story(run)


@dataclass(frozen=True)
class Told:
    """A run's stories, all told at once."""

    explanation: Explanation

    def account(self, request: str = "1") -> RequestTimeline:
        return next(each for each in self.explanation.accounts if each.request == f"k6-1/{request}")

    def lines(self, request: str = "1") -> list[str]:
        return list(format_explanation(replace(self.explanation, accounts=[self.account(request)])))

    def text(self, request: str = "1") -> str:
        return re.sub(r"\s+", " ", "\n".join(self.lines(request)))


def derive_causes(folder: Path, evidence_of: dict[int, str]) -> None:
    """Write a derived/requests.parquet that has the evidence for some requests' cause."""
    (folder / "derived").mkdir()
    with duckdb.connect() as database:
        database.execute("CREATE TABLE requests (instance VARCHAR, id BIGINT, cause VARCHAR, evidence VARCHAR)")
        database.executemany(
            "INSERT INTO requests VALUES ('k6-1', ?, 'accept-queue-drop', ?)",
            [[number, evidence] for number, evidence in evidence_of.items()],
        )
        database.execute(f"COPY requests TO '{folder / 'derived' / 'requests.parquet'}' (FORMAT parquet)")


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    """All of one run: users 1 to 3 are served, and the packets of 49 to 51, who fail, are known."""
    story = Story(make_run(tmp_path_factory.mktemp("told")))
    story.run.manifest["slow_ms"] = 2000
    story.run.clients["k6-1"].requests[69]["url"] = "http://backend:8080/" + "x" * 8_000
    for user in (1, 2, 3):
        story.served(user)
    for user in (49, 50, 51):
        story.failed(user)
    derive_causes(story.run.folder, {50: "5 SYNs at 0.490 s", 51: "\x1b[2J"})
    return Told(story.explain(lambda raw: explain_worst(raw, USERS)))


@pytest.fixture(scope="module")
def joined(tmp_path_factory: pytest.TempPathFactory) -> Joined:
    """The healthy run, as requests are looked up in it."""
    folder = make_run(tmp_path_factory.mktemp("joined")).write()
    raw = RawRun(folder, manifest.load_manifest(folder))
    return joins.join(raw, health.examine(raw), Window(0, 1 << 62, 1 << 62))


def texts(account: RequestTimeline, observer: str) -> list[str]:
    return [event.text for event in account.events if event.observer == observer]


def test_a_failed_dial_is_shown_with_each_of_its_syns_and_the_queue_at_that_moment(told: Told) -> None:
    account = told.account("50")

    assert account.outcome == "failed"
    assert texts(account, "wire@backend-1") == [
        f"SYN {number} of 5: k6-1:40050 → backend-1:8080, unanswered" for number in range(1, 6)
    ]
    syns = [event for event in account.events if event.text.startswith("SYN")]
    assert [round((syn.time_us - account.start_us) / 1_000_000) for syn in syns] == list(SYNS_S)
    for syn in syns[1:]:
        (queue,) = [note.text for note in syn.notes if note.text.startswith("accept queue")]
        assert re.match(r"accept queue of backend-1 held 2 \(limit 1, full\) \d+ ms before and \d+ ms after;", queue)
        assert re.search(r"TcpExt.ListenOverflows and TcpExt.ListenDrops \+\d+ \(\d+ → \d+\)$", queue)
    assert "gives up the dial after 30,000.4 ms: dial tcp 172.18.0.2:8080: i/o timeout" in texts(account, "k6-1")
    assert "ends the request 30,000.0 ms after it began: k6's error 1211: dial: i/o timeout" in texts(account, "k6-1")


def test_of_two_listeners_the_fullest_one_is_shown(story: Story) -> None:
    for tick in story.run.samples["backend-1"].ticks:
        (listener,) = tick["listen"]
        tick["listen"] = [{**listener, "address": "127.0.0.1", "depth": 0}, listener]
    queue = r"accept queue of backend-1 held 2 \(limit 1, full, the fullest of 2 listeners\)"
    assert re.search(queue, story.failed(50).text("50"))


def test_a_slow_request_is_shown_from_its_dial_over_the_accept_queue_to_its_answer(told: Told) -> None:
    found = told.text("2")

    assert "Request k6-1/2 was slow, it took 22,080.0 ms" in found
    places = [
        "dials 172.18.0.2:8080 (dial 2)",
        "SYN: k6-1:40002 → backend-1:8080 [frame",
        "backend-1:8080 answers: SYN-ACK",
        "ACK: k6-1:40002 believes it is connected",
        "sends the request",
        "k6-1:40002 sends 120 bytes",
        "has accepted the connection by now; it was in the accept queue for 20,",
        "backend-1:8080 sends 200 bytes",
        "of which the URL asks the handler to take 1,000 ms",
        "has the whole answer, status 200, 22,080.0 ms after it began",
        "k6-1:40002 closes its side (FIN)",
    ]
    assert [found.find(place) for place in places] == sorted(found.find(place) for place in places)
    assert all(place in found for place in places)


class TestCauses:
    def test_the_story_begins_with_the_cause_and_its_evidence(self, told: Told) -> None:
        lines = told.lines("50")
        first = lines.index("Request k6-1/50 failed after 30,000.0 ms: accept-queue-drop")
        assert lines[first + 3] == "  because 5 SYNs at 0.490 s"

    def test_a_missing_or_broken_file_is_said_where_a_cause_is_wanting(self, story: Story) -> None:
        said = "derived/requests.parquet is missing or broken, so causes are not shown"
        assert said in story.text("50")
        derive_causes(story.run.folder, {50: ""})
        (story.run.folder / "derived" / "requests.parquet").write_text("PAR1 and no more")
        assert said in story.text("50")
        assert said not in story.text("1")


def test_a_connection_that_was_never_accepted_is_still_in_the_queue_at_the_end(story: Story) -> None:
    for tick in story.run.samples["backend-1"].tick_between(MEASURE_S + 0.1, 100):
        tick["listen"][0]["depth"] = 1
    story.connection(4).handshake(begin_s(4) + 0.0001).ask(begin_s(4) + 0.0004)

    (last,) = texts(story.account("4"), "backend-1")
    assert last.startswith("has not accepted the connection yet: it has been in the accept queue for 29,999.")


@pytest.mark.parametrize(
    ("queued_s", "says"),
    [
        (0, "never had the connection: it acknowledged nothing that the client sent after its SYN"),
        (33.97, "does not have the connection yet: it came into the accept queue 3,970.0 ms later"),
    ],
)
def test_a_server_whose_full_queue_met_each_packet_never_had_the_request(
    story: Story, queued_s: float, says: str
) -> None:
    connection = story.connection(4).handshake(begin_s(4)).unheard(*(begin_s(4) + second for second in (0.1, 5, 32)))
    if queued_s:
        connection.ask(begin_s(4) + queued_s).answer(begin_s(4) + 34)
    assert texts(story.account("4"), "backend-1")[0] == says


def test_a_request_without_an_answer_says_how_long_the_server_had_it(story: Story) -> None:
    for tick in story.run.samples["backend-1"].ticks:
        tick["listen"][0]["depth"] = 0
    story.connection(4).handshake(begin_s(4) + 0.0001).ask(begin_s(4) + 0.0004)

    assert "has not answered, 29,9" in texts(story.account("4"), "backend-1")[-1]


def test_a_story_over_tls_says_whom_the_handshake_waited_for_and_what_encryption_hides(story: Story) -> None:
    start_s = begin_s(1)
    story.run.clients["k6-1"].requests[0] |= {"tls_us": 30_000, "url": "https://backend:8080/api/delay"}
    connection = story.connection(1).handshake(start_s + 0.0001)
    connection.secure(start_s + 0.001, start_s + 0.021, start_s + 0.030).ask(start_s + 0.031)
    connection.answer(start_s + SERVED_MS[0] / 1000 - 0.0002)
    account = story.account()

    ended = (
        "has ended the TLS handshake, which took 30.0 ms: 20.0 ms for the ServerHello, 9.0 ms for the client's reply"
    )
    assert f"{ended}, by the packets" in texts(account, "k6-1")
    assert not [text for text in texts(account, "backend-1") if "begins to answer" in text]
    hidden = "TLS encrypts both, and its tickets, which come after the handshake, look like data"
    assert account.missing == [f"when backend-1:8080 had the request and began to answer, by its packets: {hidden}"]


def test_a_request_of_http_2_may_share_a_connection_that_is_still_being_made(story: Story) -> None:
    start_s = begin_s(1)
    story.run.clients["k6-1"].requests[0] |= {"reused": True, "protocol": "http2", "blocked_us": 30_000}
    connection = story.connection(1).handshake(start_s + 0.0001)
    connection.secure(start_s + 0.001, start_s + 0.021, start_s + 0.030).ask(start_s + 0.031)
    connection.answer(start_s + SERVED_MS[0] / 1000 - 0.0002)
    account = story.account()

    made = "has the connection of dial 1, which was made meanwhile for another request; its TLS handshake took 29.0 ms"
    parts = "20.0 ms for the ServerHello, 9.0 ms for the client's reply, by the packets"
    assert f"{made}: {parts}" in texts(account, "k6-1")
    (hidden,) = account.missing
    assert hidden.endswith("HTTP/2 sends frames of its own beside those of requests")


def test_the_worst_requests_are_those_that_failed_and_then_the_slowest(told: Told) -> None:
    names = [account.request for account in told.explanation.accounts]
    assert names[:2] == ["k6-1/4", "k6-1/5"]
    assert names[-3:] == ["k6-1/3", "k6-1/2", "k6-1/1"]
    assert told.explanation.outcomes == {"failed": 100, "slow": 2, "ok": 1}


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ("k6-1/104", "no request k6-1/104; its ids go from 1 to 103, the nearest is k6-1/103"),
        ("0", "no request k6-1/0; its ids go from 1 to 103, the nearest is k6-1/1"),
        ("k6-7/1", "no requests of 'k6-7' are recorded; there are those of k6-1"),
        ("", "'' names no request: write k6-1/17"),
        ("1 OR 1=1", "'1 OR 1=1' names no request"),
        ("k6-1/1\x1b[2J", r"'k6-1/1\x1b[2J' names no request"),
        ("9" * 30, "names no request"),
        ("\u0661", "'\u0661' names no request"),
    ],
)
def test_an_unknown_request_is_refused_with_the_ones_there_are(joined: Joined, request_: str, message: str) -> None:
    with pytest.raises(UnknownRequest) as refusal:
        find_request(joined, request_)
    assert message in str(refusal.value)


def test_an_id_alone_is_not_enough_for_two_instances(story: Story) -> None:
    story.run.manifest["instances"]["k6"] = ["k6-1", "k6-2"]
    story.run.clients["k6-2"] = story.run.clients["k6-1"]

    assert story.refused("7") == "request 7 may be of k6-1 or k6-2: write k6-1/7"
    assert story.account("k6-2/7").request == "k6-2/7"


def test_a_run_without_any_request_has_nothing_to_explain(story: Story) -> None:
    story.run.clients["k6-1"].requests.clear()

    assert story.refused("1") == "the run has no record of any request"
    with pytest.raises(UnknownRequest, match="no record of any request"):
        story.explain(lambda raw: explain_worst(raw, 5))


def test_a_line_without_a_time_of_the_request_is_no_record_of_one(story: Story) -> None:
    del story.run.clients["k6-1"].requests[0]["end_us"]

    assert story.refused("1") == "there is no request k6-1/1; its ids go from 2 to 103, the nearest is k6-1/2"


def test_a_close_without_its_bytes_is_no_record_of_one(told: Told, story: Story) -> None:
    assert "closes the connection; 120 bytes sent" in told.text()
    del story.run.clients["k6-1"].dials[-1]["bytes_sent"]

    assert "closes the connection;" not in story.served(1).text()


def test_without_a_capture_the_story_is_shown_without_the_wire_and_says_so(story: Story) -> None:
    story.run.set_knobs(capture__mode="off")
    del story.run.captures["backend-1"], story.run.lines["backend-1/capture.json"]
    told = story.text("50")

    assert "no packet was captured, so none is shown" in told
    assert "wire@" not in told
    assert "tcpdump" not in told
    # The queue is then told at the dial.
    assert re.search(r"dials 172.18.0.2:8080 \(dial 50\) accept queue of backend-1 held 2 \(limit 1, full\)", told)


def test_an_aborted_run_has_stories_and_says_what_it_is(story: Story) -> None:
    story.run.manifest |= {"status": "aborted", "reason": "interrupted"}
    assert "the run is aborted: interrupted" in story.served(1).text()


def test_without_samples_no_queue_is_shown(story: Story) -> None:
    story.run.samples.clear()
    told = story.failed(50).text("50")

    assert "SYN 5 of 5" in told
    assert "accept queue" not in told


def test_what_comes_from_outside_cannot_steer_a_terminal(story: Story) -> None:
    request = story.run.clients["k6-1"].requests[49]
    request |= {"url": "http://backend:8080/\x1b[2J\r\x9b31m\u202e/x", "error": "a\nforged line\x07"}
    story.run.manifest["reason"] = "\x1b]0;title\x07"
    story.run.manifest["status"] = "failed"
    lines = story.failed(50).lines("50")

    assert all(line.isprintable() for line in lines)
    assert r"\x1b[2J\r\x9b31m\u202e/x" in "".join(lines)
    assert r"a\nforged line\x07" in "".join(lines)


def test_a_long_url_is_cut_and_its_length_said(told: Told) -> None:
    assert "x… (8,020 characters)" in told.text("70")


def test_no_line_but_the_commands_and_what_has_no_blanks_is_wider_than_it_may_be(told: Told) -> None:
    lines = told.lines("50")
    wide = [line for line in lines if len(line) > WIDTH]
    assert all("tcpdump" in line or "tcp.port" in line for line in wide)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Told:
    """User 1 asks three times over one connection; the requests are 1, 201 and 202."""
    story = Story(make_run(tmp_path_factory.mktemp("kept")))
    first = story.run.clients["k6-1"].requests[0]
    del story.run.clients["k6-1"].requests[1:]
    for number, second in ((201, 30.0), (202, 40.0)):
        times = {"time_us": at_us(second), "end_us": at_us(second + 1), "blocked_us": 5, "connecting_us": 0}
        spans = {"sending_us": 20, "waiting_us": 999_000, "receiving_us": 975, "duration_us": 999_995}
        story.run.clients["k6-1"].requests.append({**first, "id": number, **times, **spans, "reused": True})
    connection = story.connection(1).handshake(begin_s(1) + 0.0001)
    for second, data in ((begin_s(1) + 0.0004, 100), (30.001, 101), (40.001, 102)):
        connection.ask(second, data).answer(second + 0.9)
    connection.close_by_server(50)
    return Told(story.explain(lambda raw: explain_worst(raw, 3)))


class TestKeptConnections:
    def test_only_its_own_packets_belong_to_a_request(self, kept: Told) -> None:
        assert texts(kept.account("201"), "wire@backend-1") == [
            "k6-1:40001 sends 101 bytes",
            "backend-1:8080 sends 200 bytes",
        ]

    def test_the_first_has_the_handshake_and_the_last_the_end(self, kept: Told) -> None:
        told = " ".join(texts(kept.account("1"), "wire@backend-1"))
        assert "SYN" in told
        assert "FIN" not in told
        account = kept.account("202")
        assert "backend-1:8080 closes its side (FIN)" in texts(account, "wire@backend-1")
        assert "closes the connection; 120 bytes sent, 200 received" in texts(account, "k6-1")
        assert "closes the connection" not in " ".join(texts(kept.account("201"), "k6-1"))

    def test_a_kept_connection_was_not_accepted_for_it(self, kept: Told) -> None:
        account = kept.account("201")
        assert "reuses the connection of dial 1, opened 20,000.0 ms ago" in texts(account, "k6-1")
        assert not any("accepted" in event.text for event in account.events)
        assert any("begins to answer, 900.0 ms after" in event.text for event in account.events)


class TestThroughNginx:
    @pytest.fixture
    def proxied(self, proxied_run: RunFolder) -> Story:
        """User 1 asks through nginx, which tries one backend that refuses and then another."""
        run = proxied_run
        run.manifest["addresses"]["backend-2"] = ["172.18.0.5"]
        run.manifest["instances"]["backend"] = ["backend-1", "backend-2"]
        run.samples["backend-2"] = run.samples["backend-1"]
        client = run.clients["k6-1"]
        for record in (client.requests[0], client.dials[0]):
            record["remote"] = "172.18.0.4:8080"
        client.requests[0] |= {"url": "http://nginx:8080/api/delay?ms=1000", "end_us": at_us(11.0042)}
        line = make_access(11.004, 200) | {"upstream_addr": "172.18.0.5:8080, 172.18.0.2:8080"}
        line |= {"upstream_status": "502, 200", "upstream_connect_time": "-, 0.001", "request_time": 1.003}
        line |= {"upstream_header_time": "-, 1.002", "upstream_response_time": "0.001, 1.002"}
        run.lines["nginx/access.jsonl"] = [line]
        run.texts["nginx/error.log"] = (
            "2025/11/21 07:26:50 [error] 7#7: *7 connect() failed (111: Connection refused) while \x1b[31mconnecting\n"
        )
        story = Story(run, observer="nginx")
        hop = Connection(story.capture, port(1), "172.18.0.4:8080").handshake(10.0001).ask(10.0005)
        Connection(story.capture, "172.18.0.4:50001", "172.18.0.5:8080").refused(10.0012)
        upstream = Connection(story.capture, "172.18.0.4:50002", BACKEND).handshake(10.0022).ask(10.0025)
        upstream.answer(11.003)
        hop.answer(11.0038)
        return story

    def test_both_hops_and_every_try_are_shown_and_an_error_follows_what_it_is_about(self, proxied: Story) -> None:
        account = proxied.account()

        nginx = texts(account, "nginx")
        assert "tries backend-2:8080 (try 1 of 2)" in nginx
        assert "gives up after 1 ms, status 502" in nginx
        assert "tries backend-1:8080 (try 2 of 2)" in nginx
        assert "has the header of its answer after 1,002 ms, status 200" in nginx
        assert "logs status 200, 1,003 ms after that byte" in nginx
        error = next(event for event in account.events if event.text.startswith("error log"))
        assert error.text == r"error log: connect() failed (111: Connection refused) while \x1b[31mconnecting"
        assert (error.file, error.place) == ("raw/nginx/role/error.log", "line 1")
        place = nginx.index(error.text)
        assert [text.partition(" after")[0] for text in nginx[place - 1 : place + 2 : 2]] == [
            "gives up", "tries backend-1:8080 (try 2 of 2)",
        ]  # fmt: skip
        (answer,) = [event for event in account.events if "begins to answer" in event.text]
        assert answer.observer == "backend-1"
        wire = texts(account, "wire@nginx")
        assert "SYN: nginx:50001 → backend-2:8080" in wire
        assert "backend-2:8080 resets the connection (RST)" in wire
        assert "SYN: nginx:50002 → backend-1:8080" in wire
        assert [view.connection for view in account.views] == [
            "k6-1:40001 → nginx:8080",
            "nginx:50001 → backend-2:8080",
            "nginx:50002 → backend-1:8080",
        ]

    def test_a_connection_that_nginx_keeps_tells_of_no_other_request(self, proxied: Story) -> None:
        upstream = Connection(proxied.capture, "172.18.0.4:50002", BACKEND, sent=120, answered=200)
        upstream.ask(11.0035, 77).answer(11.0037, 88)

        told = " ".join(texts(proxied.account(), "wire@nginx"))
        assert "sends 120 bytes" in told
        assert "77 bytes" not in told
        assert "88 bytes" not in told

    def test_only_the_last_request_of_a_kept_connection_that_broke_off_is_shown(self, proxied: Story) -> None:
        line = make_access(11.004, 200) | {"upstream_addr": "172.18.0.5:8080, 172.18.0.2:8080", "request_time": 1.003}
        line |= {"upstream_status": "502, 200", "upstream_connect_time": "0.000, 0.001"}
        line |= {"upstream_header_time": "-, 1.002", "upstream_response_time": "0.001, 1.002"}
        proxied.run.lines["nginx/access.jsonl"] = [line]
        kept = Connection(proxied.capture, "172.18.0.4:50003", "172.18.0.5:8080").handshake(8).ask(8.1, 55).answer(8.2)
        kept.ask(10.0013, 66).close_by_server(10.0016)

        told = texts(proxied.account(), "wire@nginx")
        assert "nginx:50003 sends 66 bytes" in told
        assert "backend-2:8080 closes its side (FIN)" in told
        assert "nginx:50003 sends 55 bytes" not in told

    @staticmethod
    def tried_twice(proxied: Story, status: int, connect: str, header: str) -> Connection:
        """One backend is tried on a kept connection, which breaks off, and then on the fresh one that is given back."""
        line = make_access(11.004, status) | {"upstream_addr": f"{BACKEND}, {BACKEND}", "request_time": 1.012}
        line |= {"upstream_status": f"502, {status}", "upstream_connect_time": f"0.000, {connect}"}
        line |= {"upstream_header_time": f"-, {header}", "upstream_response_time": "0.010, 1.002"}
        proxied.run.lines["nginx/access.jsonl"] = [line]
        proxied.capture.packets.clear()
        kept = Connection(proxied.capture, "172.18.0.4:50003", BACKEND).handshake(8).ask(8.1, 55).answer(8.2)
        kept.ask(10.0013, 66).close_by_server(10.0016)
        return Connection(proxied.capture, "172.18.0.4:50004", BACKEND, isn=9_000)

    def test_a_fresh_connection_to_the_same_server_is_shown_from_its_first_syn(self, proxied: Story) -> None:
        self.tried_twice(proxied, 504, "-", "-").syns(10.0022, 11.0022)
        told = texts(proxied.account(), "wire@nginx")
        assert "nginx:50003 sends 66 bytes" in told
        assert "nginx:50003 sends 55 bytes" not in told
        assert [text for text in told if "50004" in text] == [
            f"SYN {number} of 2: nginx:50004 → backend-1:8080, unanswered" for number in (1, 2)
        ]
        fresh = self.tried_twice(proxied, 200, "0.001", "1.002").handshake(10.0022).ask(10.0025, 77).answer(11.003)
        fresh.ask(20, 88).answer(21)
        told = texts(proxied.account(), "wire@nginx")
        assert {"SYN: nginx:50004 → backend-1:8080", "nginx:50004 sends 77 bytes"} <= {*told}
        assert "nginx:50004 sends 88 bytes" not in told

    def test_a_second_capture_that_ended_before_the_connection_broke_off_has_nothing_of_the_try(
        self, proxied: Story
    ) -> None:
        self.tried_twice(proxied, 504, "-", "-").syns(10.0022, 11.0022)
        proxied.run.captures["backend-1"] = Capture()
        Connection(proxied.run.captures["backend-1"], "172.18.0.4:50003", BACKEND).handshake(8)
        proxied.run.lines["backend-1/capture.json"] = [make_capture(3)]

        account = proxied.account()
        assert texts(account, "wire@backend-1") == []
        assert (
            "its packets: raw/backend-1/collector/capture.pcap has nothing of that time on its connection"
            in account.missing
        )

    def test_a_try_whose_connection_is_not_known_has_its_servers_queue(self, proxied: Story) -> None:
        proxied.capture.packets.clear()
        proxied.run.texts["nginx/capture.pcap"] = ""
        (turn, _) = [event for event in proxied.account().events if event.text.startswith("tries ")]
        assert turn.notes[0].text.startswith("accept queue of backend-2")

    def test_a_missing_access_line_is_said(self, proxied: Story) -> None:
        proxied.run.lines["nginx/access.jsonl"] = []
        assert "Unknown: nginx's part: no line of its access log is certainly the request's" in proxied.text()


def test_the_views_find_the_storys_packets_and_no_others(told: Told) -> None:
    (view,) = told.account("50").views

    assert view.wireshark == (
        "ip.addr == 172.18.0.3 && tcp.port == 40050 && ip.addr == 172.18.0.2 && tcp.port == 8080"
        " && frame.time_epoch >= 1763710010.490099 && frame.time_epoch <= 1763710025.490101"
    )
    assert view.tcpdump == (
        "tcpdump -nn -tttt -r raw/backend-1/collector/capture.pcap"
        " 'host 172.18.0.3 and host 172.18.0.2 and tcp port 40050 and tcp port 8080'"
    )


def test_the_sources_are_listed_by_file(story: Story) -> None:
    told = story.failed(50).text("50")
    assert (
        "raw/k6-1/role/requests.jsonl: id 50 raw/k6-1/role/dials.jsonl: id 50 "
        "raw/backend-1/collector/capture.pcap: frames 1 to 5" in told
    )
    assert "raw/backend-1/collector/samples.jsonl: the ticks around each moment" in told
