"""Settings of a service's program, found in the scenario's own files."""

from pathlib import Path

import pytest

from lab.runs.service_settings import find_settings
from lab.scenarios.topology import topology_of
from tests.lab.support import resolving

SCENARIO = """\
schema: 1
title: A shop
question: Who is served?
path: [k6, shop]
services:
  shop: {build: ./app, port: 9000, ready: /}
knobs:
  load: {workload: users, users: 3, path: /}
predictions:
  - {id: served, description: All are served., expression: client.requests.failed == 0}
"""
Found = tuple[str, str | None] | None


@pytest.mark.parametrize(
    ("files", "idle", "backlog"),
    [
        (
            {"Dockerfile": 'FROM x\nCMD ["gunicorn", "--backlog", "3"]\n'},
            ("gunicorn", None),
            ("gunicorn", "app/Dockerfile:2"),
        ),
        (
            {"a.py": "from aiohttp import web\nweb.run_app(a, keepalive_timeout=1.0)\n"},
            ("aiohttp", "app/a.py:2"),
            ("aiohttp", None),
        ),
        ({"start": "gunicorn --backlog 3 &\nexec nginx\n"}, None, ("gunicorn", "app/start:1")),
        ({"start": "gunicorn &\nexec nginx\n"}, None, None),
        (
            {"a.conf": "# apache2\nListenBackLog 4\nMaxRequestWorkers 2\n"},
            ("Apache httpd", None),
            ("Apache httpd", "app/a.conf:2"),
        ),
        (
            {
                "README.md": "gunicorn --backlog 3\n",
                "vendor/x.js": "node keepAliveTimeout",
                "b": "gunicorn\udcff",
            },
            None,
            None,
        ),
    ],
)
def test_the_line_that_sets_it_or_the_one_program_is_named(
    tmp_path: Path, files: dict[str, str], idle: Found, backlog: Found
) -> None:
    for name, text in {"Dockerfile": "FROM x\n", **files}.items():
        file = tmp_path / "corner" / "app" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode("utf-8", "surrogateescape"))
    resolved = resolving(tmp_path / "corner", SCENARIO)()
    found = find_settings(resolved, topology_of(resolved)).get("shop", {})
    told = {what: (one.program, one.where) for what, one in found.items()}
    assert (told.get("idle"), told.get("backlog")) == (idle, backlog)


@pytest.mark.parametrize(
    ("text", "workers"),
    [
        ("# apache2\nMaxRequestWorkers 2\n", ("Apache httpd", "MaxRequestWorkers", "app/conf:2")),
        ("# apache2\nMaxClients 2\n", ("Apache httpd", "MaxRequestWorkers", None)),
        ("exec gunicorn --workers=3 app\n", ("gunicorn", "--workers and --threads", "app/conf:1")),
        ("exec node server.js\n", None),
        ("# haproxy\n server a b:80 maxconn 5\n maxconn 9\n", ("HAProxy", "maxconn", "app/conf:3")),
    ],
)
def test_the_setting_of_what_a_program_serves_at_once_is_named(
    tmp_path: Path, text: str, workers: tuple[str, str, str | None] | None
) -> None:
    for name, written in {"Dockerfile": "FROM x\n", "conf": text}.items():
        file = tmp_path / "corner" / "app" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(written)
    resolved = resolving(tmp_path / "corner", SCENARIO)()
    found = find_settings(resolved, topology_of(resolved)).get("shop", {}).get("workers")
    assert (None if found is None else (found.program, found.setting, found.where)) == workers
