"""Services that the lab has never seen, in scenarios outside its own folder."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import Run, connlab, docker, left_behind, refused, turn
from .test_scenarios import assert_reproduced

pytestmark = pytest.mark.e2e

SERVICES = Path(__file__).parent / "services"


def test_http_server_s_backlog_of_5_is_read_from_the_kernel_and_predicts_the_overflow(run: Callable[..., Run]) -> None:
    found = run(str(SERVICES / "queue-of-five"))
    assert_reproduced(found)
    figures = found.figures
    assert (figures["listen.hello.limit"], figures["model.accept_capacity"]) == (5, 7)
    assert (figures["client.dials.failed_timeout"], figures["ledger.cause.accept_queue_drop"]) == (3, 3)
    assert found.manifest["roles"]["hello"]["loosened"] == {}
    assert found.manifest["images"]["hello"].startswith("sha256:")


def test_a_service_with_tls_and_one_that_it_needs_are_brought_up(run: Callable[..., Run]) -> None:
    found = run(str(SERVICES / "hello-tls"))
    assert_reproduced(found)
    assert "beside" not in found.manifest["instances"]


def test_a_service_of_a_compose_file_runs_twice_behind_nginx(run: Callable[..., Run]) -> None:
    found = run(str(SERVICES / "from-compose"))
    assert_reproduced(found)
    assert found.manifest["instances"] == {"k6": ["k6-1"], "nginx": ["nginx"], "web": ["web-1", "web-2"]}


def test_over_http2_a_connection_carries_all_requests_of_its_user(run: Callable[..., Run]) -> None:
    found = run(str(SERVICES / "http2"))
    assert_reproduced(found)
    assert found.figures["client.named.a.total"] == 4


@pytest.mark.parametrize("proxy", ["caddy", "apache"])
def test_failures_behind_a_proxy_that_the_lab_has_never_seen_are_explained(run: Callable[..., Run], proxy: str) -> None:
    found = run(str(SERVICES / f"behind-{proxy}"))
    assert_reproduced(found)
    # Its log names neither connections nor servers; the packets tell what became of each try.
    causes = {name: count for name, count in found.figures.items() if name.startswith("ledger.cause.") and count}
    assert causes["ledger.cause.accept_queue_drop"] == found.figures["client.requests.failed"] == 6
    assert found.manifest["roles"][proxy]["kind"] == "proxy"


@pytest.mark.builds
def test_an_nginx_of_one_s_own_image_without_a_shell_has_its_own_version(run: Callable[..., Run]) -> None:
    home = SERVICES / "own-image"
    build = ("--builder", docker("context", "show").strip(), "--network", "host", "--load", "--provenance=false")
    label = ("--label", "connlab.source=own", "--tag", "connlab-own/own-image:test")
    docker("buildx", "build", *build, *label, str(home / "image"))
    found = run(str(home))
    assert_reproduced(found)
    program = found.manifest["programs"]["nginx"]
    assert program["image"] == "connlab-own/own-image:test"
    assert program["version"].startswith("1.22.")
    assert found.manifest["knobs"]["nginx.proxy_connect_timeout"]["where"] == ["nginx.conf:12"]


def test_a_server_s_own_log_tells_of_each_request(run: Callable[..., Run]) -> None:
    found = run(str(SERVICES / "logs-itself"))
    assert_reproduced(found)
    told = connlab("explain", str(found.folder), "--request", "k6-1/1")
    assert re.search(r"web-1 +logs status 200, after \d+ ms by its own account", told.stdout)
    assert re.search(r"raw/web-1/container\.log: line \d+", told.stdout)


def test_sessions_and_calls_of_a_script_are_requests_with_their_connection(run: Callable[..., Run]) -> None:
    found = run(str(SERVICES / "sessions-and-calls"))
    assert_reproduced(found)
    assert found.figures["client.requests.status.101"] == 4
    # A connection for the batch, or more; one for each session, and one for a user's calls.
    assert found.figures["client.dials.ok"] >= 2 * (1 + 3 + 1)


def test_a_gateway_of_one_s_own_runs_out_of_ports_towards_the_lab_s_backend(run: Callable[..., Run]) -> None:
    found = run(str(SERVICES / "gateway-of-ones-own"))
    assert_reproduced(found)
    # The client's own hop has ports enough; those of the gateway's hop were all held.
    assert found.figures["ledger.dials_without_port"] == 0
    told = connlab("explain", str(found.folder), "--top", "1")
    assert "60 of its 60 ports towards backend-1 were held" in told.stdout


def test_a_full_unix_socket_between_two_programs_of_one_container_explains_each_502(run: Callable[..., Run]) -> None:
    found = run(str(SERVICES / "behind-unix-socket"))
    assert_reproduced(found)
    causes = {name: count for name, count in found.figures.items() if name.startswith("ledger.cause.") and count}
    assert causes["ledger.cause.unix_socket_full"] == found.figures["client.requests.failed"]


def test_clients_that_send_nothing_and_are_not_on_the_path_are_found_to_hold_the_places(
    run: Callable[..., Run],
) -> None:
    found = run(str(SERVICES / "silent-clients"))
    assert_reproduced(found)
    (holders,) = json.loads((found.folder / "derived/ledger.json").read_text())["holders"]
    assert (holders["instance"], holders["silent"], holders["others"]) == ("web-1", 7, 7)
    told = connlab("advise", str(found.folder)).stdout
    assert "let it wait less for a request (Apache httpd's RequestReadTimeout (app/httpd.conf:" in told


def refused_as_it_starts(scenario: str, *options: str, exit_code: int = 2) -> str:
    """What a run says that ends before its load, and leaves nothing behind."""
    with turn():
        said = refused("run", str(SERVICES / scenario), *options, exit_code=exit_code)
        assert left_behind() == []
    return said


def test_an_image_that_cannot_be_had_is_said_with_its_place() -> None:
    said = refused_as_it_starts("no-image")
    assert (
        "no-image/scenario.yaml:6: the image connlab-own/nowhere:1 of hello is not here, and cannot be pulled" in said
    )


def test_a_port_that_nobody_listens_on_is_said_with_the_ports_that_are() -> None:
    said = refused_as_it_starts("wrong-port")
    assert "wrong-port/scenario.yaml:9: nothing listens on port 5001 of hello-1; it listens on 5000" in said


def test_a_service_that_ends_at_its_start_is_said_with_its_last_words() -> None:
    said = refused_as_it_starts("ends-at-once", exit_code=4)
    assert "hello-1 ended with exit code 1 during its start" in said
    assert "ValueError: invalid literal for int() with base 10: 'none'" in said


@pytest.mark.parametrize(
    ("arm", "exit_code", "said"),
    [
        (
            "missing",
            2,
            r'8: missing-1 cannot start: .*exec: "/no/such": .*no such file.*; its image has no such program',
        ),
        ("forbidden", 2, r"11: forbidden-1 cannot start: .*permission denied.*; let every user execute it"),
        ("nobody", 2, r"15: nobody-1 cannot start: .*unable to find user nobody-here.*; write the user's number"),
        ("foreign", 4, r"16: foreign-1 ended .*\n  exec /opt/other: exec format error\n.*hint: its program is for"),
        ("done", 4, r"20: done-1 ended with exit code 0 during its start, and said nothing\n.*hint: let its program"),
    ],
)
def test_a_service_that_cannot_start_is_said_in_the_engine_s_words_with_its_place(
    arm: str, exit_code: int, said: str
) -> None:
    words = refused_as_it_starts("cannot-start", "--arm", arm, exit_code=exit_code)
    assert re.search(f"(?s)cannot-start/scenario.yaml:{said}", words), words


def test_a_needed_service_that_never_is_ready_is_said_with_what_was_asked_of_it() -> None:
    said = refused_as_it_starts("needs-what-never-comes")
    assert (
        "scenario.yaml:14: beside runs, and its command 'python3 -c import sys; sys.exit(7)' does not end with 0"
        in said
    )
