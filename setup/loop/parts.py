"""The parts of the repository that have checks, and the commands of each: the one list of them."""

from __future__ import annotations

from dataclasses import dataclass

_SOCKET = "--volume /var/run/docker.sock:/var/run/docker.sock"


@dataclass(frozen=True)
class Part:
    """A part of the repository. Its commands are for bash, at the repository's root."""

    name: str
    says: str
    test: str = ""
    """Every check and test."""
    alone: bool = False
    """Whether `test` makes a load or measures time, so that nothing may run beside it."""


PARTS = (
    Part(
        "python",
        "lab and analysis: ruff, mypy, import-linter, pytest",
        test=".venv/bin/ruff format --check . && .venv/bin/ruff check . && .venv/bin/mypy && .venv/bin/lint-imports"
        " && .venv/bin/pytest --numprocesses auto tests/lab tests/analysis",
    ),
    Part(
        "shell",
        "every script: shellcheck",
        test="docker run --rm --volume $PWD:/repo:ro --workdir /repo connlab/node setup/check-shell.sh",
    ),
    Part(
        "backend",
        "the server's format, compiler warnings and unit tests",
        test="setup/check.sh java backend",
    ),
    Part(
        "nginx",
        "nginx -t on every variant, and real requests",
        test="nginx/check-variants",
    ),
    Part(
        "notebook",
        "the notebook, headless, over runs of every kind",
        test="setup/python.sh notebook && .venv/bin/pytest tests/notebook",
    ),
    Part(
        "pages",
        "the reports, the index and comparisons in headless Chromium",
        test=".venv/bin/python -m tests.pages.make .cache/pages"
        " && CONNLAB_DOCKER_ARGUMENTS='--env CONNLAB_PAGES=/repo/.cache/pages' setup/check.sh pages tests/pages",
    ),
    Part(
        "compose",
        "the merged Compose file of every scenario and arm",
        test=".venv/bin/connlab check-compose",
    ),
    Part(
        "collector",
        "the collector and flows, on real network namespaces",
        test="CONNLAB_DOCKER_ARGUMENTS='--privileged --env CONNLAB_PRIVILEGED=1' setup/check.sh go-check collector",
        alone=True,
    ),
    Part(
        "gateway",
        "the gateway, on real connections",
        test="setup/check.sh go-check gateway",
        alone=True,
    ),
    Part(
        "k6",
        "k6's extension and workloads, on a real k6",
        test="setup/check.sh go-check k6 ./check go && setup/check.sh node k6 ./check js",
        alone=True,
    ),
    Part(
        "integration",
        "the backend's real image, its kernel settings and a real OkHttp client",
        test=f"CONNLAB_DOCKER_ARGUMENTS='{_SOCKET}' setup/check.sh java backend ./check-integration",
        alone=True,
    ),
    Part(
        "e2e",
        "real runs through the commands that a user types",
        test=".venv/bin/pytest tests/e2e",
        alone=True,
    ),
)
