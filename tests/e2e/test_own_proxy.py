"""A proxy's configuration of one's own, of the ordinary kind, through the command that a user types."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import ROOT, Run, connlab
from .test_scenarios import assert_follows_schemas, assert_reproduced

pytestmark = pytest.mark.e2e

NGINX = ROOT / "examples" / "own-nginx"


def copied(example: Path, to: Path, changes: dict[str, tuple[str, str]]) -> Path:
    """Copy an example, with a text in some of its files replaced."""
    shutil.copytree(example, to)
    for file, (old, new) in changes.items():
        text = (to / file).read_text()
        assert old in text
        (to / file).write_text(text.replace(old, new))
    return to


@pytest.fixture(scope="module")
def through_nginx(run: Callable[..., Run]) -> Run:
    ended = run(str(NGINX))
    assert_reproduced(ended)
    return ended


def test_nginx_runs_a_file_unchanged_and_the_model_counts_with_its_values(through_nginx: Run) -> None:
    assert_follows_schemas(through_nginx)
    knobs = through_nginx.manifest["knobs"]
    assert knobs["nginx.proxy_connect_timeout"]["where"] == ["conf.d/app.conf:18"]
    assert knobs["nginx.upstream_keepalive"]["read_back"] == 16
    assert knobs["nginx.keepalive_requests"] == {
        "value": 1000,
        "default": 1000,
        "source": "file",
        "read_back": 1000,
        "where": [],
    }
    assert through_nginx.measured()["model.syns_per_failed_try"] == 2


def test_what_nginx_read_is_the_user_s_file_line_by_line(through_nginx: Run) -> None:
    left = (through_nginx.folder / "raw" / "nginx" / "role" / "nginx.conf").read_text().splitlines()
    at = left.index("# configuration file /etc/nginx/nginx.conf:") + 1
    written = (NGINX / "nginx.conf").read_text().splitlines()
    added = [(mine, theirs) for mine, theirs in zip(written, left[at:], strict=False) if mine != theirs]
    assert added == [("http {", "http { include /tmp/connlab.conf;")]


def test_advice_on_a_small_file_names_the_line_to_change(run: Callable[..., Run], tmp_path: Path) -> None:
    small = run(str(copied(NGINX, tmp_path / "small", {"nginx.conf": ("1024", "64")})))
    assert small.exit_code == 1
    assert small.verdict["ledger"]["unexplained"] == 0
    advice = connlab("advise", str(small.folder))
    assert "set nginx.worker_connections = " in advice.stdout
    assert "change it there (nginx.conf:8)" in advice.stdout


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("nginx.conf", "keepalive_timeout", "keepalive_timout", "nginx.conf:21: nginx refuses it: unknown directive"),
        ("nginx.conf", "conf.d/*.conf", "gone.conf", 'nginx.conf:27: nginx refuses it: open() "/etc/nginx/gone.conf"'),
        ("conf.d/app.conf", "backend:8080", "shop:8080", "app.conf:2: nginx refuses it: host not found in upstream"),
        ("conf.d/app.conf", "listen       8080", "listen 80", "app.conf:7: it listens on 80, and the clients come to"),
        ("conf.d/app.conf", "server_name", "access_log off; server_name", "app.conf:8: access_log here takes the pl"),
        ("nginx.conf", "http {", "stream {", "nginx refuses it: "),
    ],
)
def test_a_file_that_cannot_run_is_refused_with_its_line_before_anything_starts(
    tmp_path: Path, file: str, old: str, new: str, said: str
) -> None:
    refused = connlab("run", str(copied(NGINX, tmp_path / "refused-file", {file: (old, new)})))
    assert refused.returncode == 2
    assert said in refused.stderr
    assert "Traceback" not in refused.stderr
    assert not (ROOT / "results" / "refused-file").exists()
