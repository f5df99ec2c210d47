"""What `connlab serve` lets in and out; the browser's side is in tests/pages/serve.test.js."""

import contextlib
import json
import os
import socket
import threading
from collections.abc import Iterator, Mapping
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from flask.testing import FlaskClient

from analysis.reports import rendering
from lab import paths
from lab.errors import BadInput
from lab.lessons.drill import incident
from lab.lessons.drill.faults import CAUSES
from lab.reading import markdown
from lab.serve import app, commands, server
from lab.serve import commands as starting
from lab.serve.commands import Started
from tests.lab import drills
from tests.lab.support import connlab

KEYS = app.Keys("entry", "form", "frame")
IN_A_FRAME = {"Sec-Fetch-Dest": "iframe"}


class Asked(Started):
    """Writes down what would be started."""

    def __init__(self) -> None:
        super().__init__()
        self.all: list[list[str]] = []

    def start(self, arguments: list[str]) -> None:  # type: ignore[override]
        self.all.append(arguments)


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(paths, "RESULTS", tmp_path / "results")
    (tmp_path / "results").mkdir()
    return tmp_path / "results"


@pytest.fixture
def started() -> Asked:
    return Asked()


@pytest.fixture
def client(results: Path, started: Asked) -> Iterator[FlaskClient]:
    assert results.is_dir()
    with app.make_app(KEYS, started).test_client() as made:
        made.get("/?key=entry")
        yield made


def post(client: FlaskClient, form: Mapping[str, str], origin: str | None = None) -> int:
    headers = {} if origin is None else {"Origin": origin}
    return client.post("/start", data={"token": "form", **form}, headers=headers).status_code


@pytest.mark.parametrize("path", ["/", "/live.json", "/results/index.html", "/pages/README.md", "/?key=other", "/x"])
def test_who_has_no_key_sees_nothing(results: Path, path: str) -> None:
    answer = app.make_app(KEYS, Started()).test_client().get(path)
    assert results.is_dir()
    assert answer.status_code == 403
    assert b"the address that" in answer.data
    assert b"form" not in answer.data


def test_the_key_becomes_a_cookie_that_no_script_reads(results: Path) -> None:
    answer = app.make_app(KEYS, Started()).test_client().get("/live?key=entry")
    assert results.is_dir()
    assert (answer.status_code, answer.headers["Location"]) == (303, "/live")
    assert {"HttpOnly", "SameSite=Lax"} <= set(answer.headers["Set-Cookie"].split("; "))


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8321", "127.0.0.1.evil.example", "10.0.0.1"])
def test_another_name_that_leads_here_is_refused(client: FlaskClient, host: str) -> None:
    assert client.get("/", headers={"Host": host}).status_code == 400
    assert client.get("/", headers={"Host": "localhost"}).status_code != 400


def test_only_a_form_of_these_pages_starts_something(client: FlaskClient, started: Asked) -> None:
    asked = {"command": "run", "scenario": "accept-queue-overflow"}
    assert client.post("/start", data=asked).status_code == 403
    assert client.post("/start", data={**asked, "token": "other"}).status_code == 403
    assert post(client, asked, "http://localhost:1") == 403
    assert post(client, asked, "null") == 403
    assert client.get("/start").status_code == 405
    assert started.all == []
    assert post(client, asked, "http://localhost") == 303
    assert started.all == [["run", "accept-queue-overflow"]]


def test_nobody_else_may_read_or_frame_a_page(client: FlaskClient) -> None:
    for path in ("/", "/nothing", "/live.json"):
        headers = client.get(path).headers
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
        assert "unsafe-inline" not in headers["Content-Security-Policy"]
        assert not [name for name, _ in headers if name.startswith("Access-Control")]
        assert headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(
    ("form", "words"),
    [
        (
            {"command": "run", "scenario": "slow-clients", "sets": "load.users=3 a=b"},
            "run slow-clients --set=load.users=3 --set=a=b",
        ),
        ({"command": "exercise", "exercise": "slow-clients/2"}, "exercise slow-clients/2"),
        ({"command": "drill", "seed": "5", "level": "1"}, "drill --seed=5 --level=1"),
        ({"command": "drill", "seed": "5", "level": "3", "more": "threads"}, "drill --seed=5 --level=3 --more=threads"),
    ],
)
def test_a_form_becomes_a_command(form: dict[str, str], words: str) -> None:
    assert commands.parse_form(form) == words.split()


@pytest.mark.parametrize(
    "form",
    [
        {},
        {"command": "clean"},
        {"command": "run", "scenario": "--help"},
        {"command": "run", "scenario": "../examples/hello"},
        {"command": "run", "scenario": "all"},
        {"command": "exercise", "exercise": "slow-clients/--json"},
        {"command": "drill", "seed": "-1", "level": "1"},
        {"command": "drill", "seed": "9" * 5000, "level": "1"},
        {"command": "drill", "seed": "1", "level": "4"},
        {"command": "drill", "seed": "1", "level": "1", "more": "--json"},
        {"command": "drill", "seed": "1", "level": "1", "cause": "no such"},
    ],
)
def test_what_is_no_word_of_the_lab_becomes_no_command(
    client: FlaskClient, started: Asked, form: dict[str, str]
) -> None:
    with pytest.raises(BadInput):
        commands.parse_form(form)
    assert post(client, form) == 400
    assert started.all == []


def test_a_knob_can_be_no_option() -> None:
    assert commands.parse_form({"command": "run", "scenario": "slow-clients", "sets": "--json"})[2:] == ["--set=--json"]


def test_a_report_stands_in_a_frame_that_leads_nowhere(client: FlaskClient, results: Path) -> None:
    (results / "a").mkdir()
    (results / "a" / "report.html").write_text("<script>1</script>")
    around = client.get("/results/a/report.html")
    source = "/framed/frame/a/report.html"
    assert f'src="{source}" sandbox="allow-scripts"' in around.get_data(as_text=True)
    assert "frame-src 'self'" in around.headers["Content-Security-Policy"]
    # A link in a frame without an origin takes no cookie along.
    other = client.application.test_client()
    page = other.get(source, headers=IN_A_FRAME, buffered=True)
    assert (page.data, page.mimetype) == (b"<script>1</script>", "text/html")
    policy = page.headers["Content-Security-Policy"]
    assert policy.startswith("sandbox allow-scripts; default-src 'none'; ")
    assert "'unsafe-inline'" not in policy.partition("script-src")[2]
    assert other.get(source.replace("frame/a", "other/a"), headers=IN_A_FRAME).status_code == 403
    alone = other.get(source, headers={"Sec-Fetch-Dest": "document"})
    assert (alone.status_code, alone.headers["Location"]) == (303, "/results/a/report.html")


@pytest.mark.parametrize("name", ["x.js", "x.svg", "x.json", "x.png"])
def test_no_other_file_runs_a_script(client: FlaskClient, results: Path, name: str) -> None:
    (results / name).write_text("<svg xmlns='http://www.w3.org/2000/svg'><script>1</script></svg>")
    answer = client.get(f"/results/{name}", buffered=True)
    assert answer.headers["Content-Security-Policy"].startswith("sandbox; default-src 'none'; ")
    assert (answer.mimetype == "application/octet-stream") == (name == "x.js")


def test_a_page_of_another_version_is_said_to_be_one(client: FlaskClient, results: Path) -> None:
    page = rendering.render("page", None, {}, scripts=())
    for text, said in ((page, False), (page.replace("sha256-", "sha256-0", 1), True), ("no policy", True)):
        (results / "page.html").write_text(text)
        assert ("Another version of the lab" in client.get("/results/page.html").get_data(as_text=True)) == said


@pytest.mark.parametrize(
    "path",
    ["out", "folder/secret", "a/../../secret", "../secret", "a//r", ".hidden", "a/.hidden", "pipe", "a", "", "a/r/%00"],
)
def test_nothing_outside_results_is_shown(client: FlaskClient, results: Path, path: str) -> None:
    (results.parent / "secret").write_text("secret")
    (results / "a" / "r").mkdir(parents=True)
    for hidden in (results / ".hidden", results / "a" / ".hidden"):
        hidden.write_text("secret")
    (results / "out").symlink_to(results.parent / "secret")
    (results / "folder").symlink_to(results.parent)
    os.mkfifo(results / "pipe")
    answer = client.get(f"/results/{path}")
    assert answer.status_code in (404, 308)
    assert b"secret" not in answer.data.replace(b"folder/secret", b"")


@pytest.mark.parametrize(
    "path", ["Makefile", "lab/paths.py", ".git/config", "results/x", "docs/../Makefile", "docs/none.md"]
)
def test_only_documents_are_shown(client: FlaskClient, path: str) -> None:
    assert client.get(f"/pages/{path}", buffered=True).status_code == 404


@pytest.mark.parametrize(
    "path",
    [
        "README.md",
        "docs",
        "docs/path.svg",
        "docs/report-player.gif",
        "docs/map.md",
        "scenarios/slow-clients/ANSWERS.md",
        "LICENSE",
    ],
)
def test_documents_are_shown(client: FlaskClient, path: str) -> None:
    assert client.get(f"/pages/{path}", buffered=True).status_code == 200


def test_every_link_between_documents_leads_to_a_page(client: FlaskClient) -> None:
    text = client.get("/pages/docs/workshops/90-minutes.md").get_data(as_text=True)
    assert 'href="../../README.md#five-lessons-to-start-with"' in text
    assert 'id="five-lessons-to-start-with"' in client.get("/pages/README.md").get_data(as_text=True)


def test_markup_in_a_document_stays_text_but_for_what_folds() -> None:
    shown = markdown.html("<details>\n<summary>open</summary>\n\n<script>x</script> <b onclick=1>\n\n</details>\n")
    assert "<details>\n<summary>open</summary>" in shown
    assert "<script" not in shown
    assert "<b" not in shown
    assert "javascript:" not in markdown.html("[x](javascript:alert(1))").replace("(javascript:alert(1))", "")


def test_a_drill_is_played_without_telling_what_it_is(client: FlaskClient, results: Path, started: Asked) -> None:
    begin = client.get("/drill/1/5").get_data(as_text=True)
    assert "It has not begun" in begin
    drill = incident.draw_drill(5, 1)
    incident.folder(drill).mkdir(parents=True)
    state = incident.begin(drill, drills.write(drill, results / drill.name / "20261123T000000Z-default-r01"))
    given = client.get("/drill/1/5").get_data(as_text=True)
    assert "the listening sockets" in given
    assert "sockets by state: 3 minutes" in given
    assert "report.html" not in given
    after = results / drill.name / "20261123T000001Z-default-r01"
    drills.ledger(results / state.run, 20, 3)
    drills.ledger(after, 0, 0)
    wrong = next(name for name in CAUSES if name != drill.fault.name)
    incident.record_answer(drill, state, wrong, drill.fault.place, after)
    failed = client.get("/drill/1/5").get_data(as_text=True)
    assert "cause: no\nplace: right" in failed
    assert "report.html" not in failed
    assert started.all == []


def test_runs_with_a_report_and_without_are_listed(client: FlaskClient, results: Path) -> None:
    folders = [results / "accept-queue-overflow" / f"2026112{day}T000000Z-default-r01" for day in (2, 3)]
    for folder in folders:
        folder.mkdir(parents=True)
        manifest = json.loads((paths.ROOT / "docs" / "example" / "manifest.json").read_text()) | {"run": folder.name}
        (folder / "manifest.json").write_text(json.dumps(manifest))
    (folders[0] / "report.html").write_text("x")
    page = client.get("/").get_data(as_text=True)
    assert f'href="/results/accept-queue-overflow/{folders[0].name}/report.html"' in page
    assert page.count("not analysed") == 2


def test_a_defect_of_the_lab_is_one_line(
    client: FlaskClient, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(paths, "RESULTS", None)
    answer = client.get("/")
    assert (answer.status_code, b"internal error" in answer.data) == (500, True)
    assert "Traceback" not in capsys.readouterr().err


def test_a_port_that_is_taken_is_refused_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with server.listening(0) as served:
        port = served.address.split(":")[2].partition("/")[0]
        assert connlab("serve", "--port", port) == 4
    assert f"port {port} is not available: something listens there already" in capsys.readouterr().err


def test_one_command_at_a_time_and_its_words_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    until = tmp_path / "until"
    os.mkfifo(until)
    monkeypatch.setattr(starting, "_SELF", ["sh", "-c", 'read -r line <"$0"; echo "$1: $line"; exit 2', str(until)])
    one = Started()
    one.start(["list"])
    with pytest.raises(BadInput, match="'connlab list' is running"):
        one.start(["doctor"])
    assert (one.at_work, one.code) == (True, None)
    until.write_text("\x1b[31mdone\n")
    one.wait()
    assert (one.at_work, one.code, list(one.lines)) == (False, 2, ["list: \\x1b[31mdone"])
    said = capsys.readouterr().err
    assert "$ connlab list\n" in said
    assert "\x1b" not in said


def test_a_connection_has_a_user_while_its_process_has_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as client:
            address = client.getsockname()
            assert server.user_of(address, port) == os.getuid()
            assert server.user_of(("127.0.0.2", address[1]), port) is None
        # The kernel still knows the connection, as of user 0: the server has not closed its end.
        assert server.user_of(address, port) is None


@pytest.mark.parametrize(("sudo", "users"), [("", set()), ("1234", {1234}), ("-1", set()), ("x", set())])
def test_who_started_it_may_look_also_by_sudo(monkeypatch: pytest.MonkeyPatch, sudo: str, users: set[int]) -> None:
    monkeypatch.setenv("SUDO_UID", sudo)
    assert server.own_users() == {0, os.getuid(), *users}


def _loop(served: server.Served) -> None:
    # The loop looks at its sockets once more after they were closed.
    with contextlib.suppress(OSError):
        served._server.run()  # noqa: SLF001 # as above


def test_the_key_is_of_no_use_to_another_user(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert results.is_dir()
    for users, status in (({os.getuid()}, 303), ({os.getuid() + 1}, 403)):
        monkeypatch.setattr(server, "own_users", lambda users=users: frozenset(users))
        with server.listening(0) as served:
            # It ends with the process: only the main thread could end it in order.
            threading.Thread(target=_loop, args=(served,), daemon=True).start()
            at = urlsplit(served.address)
            connection = HTTPConnection(at.netloc)
            connection.request("GET", f"/?{at.query}")
            assert connection.getresponse().status == status
            connection.close()
