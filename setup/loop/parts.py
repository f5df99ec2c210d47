"""The parts of the repository that have checks, and the commands of each: the one list of them."""

from dataclasses import dataclass

_SOCKET = "--volume /var/run/docker.sock:/var/run/docker.sock"


@dataclass(frozen=True)
class Part:
    """A part of the repository. Its commands are for bash, at the repository's root."""

    name: str
    says: str
    test: str
    """Every check and test."""
    alone: bool = False
    """Whether `test` makes a load or measures time, so that nothing may run beside it."""
    background: bool = False
    """Whether `test` takes minutes of the processors and nothing else: it runs beside those, with less priority."""
    check: str = ""
    """What is quick of `test`: format, lint, types and unit tests."""
    reads: tuple[str, ...] = ()
    """Files and folders that `check` reads, beside `setup` and `schemas`; `.` is the whole work tree."""
    image: str = ""
    """The image that `check` runs in."""
    fmt: str = ""
    """What mends format and lint in the work tree."""


# Else each process compiles every module again, where the environment forbids Python to keep what it compiled.
# A test that hangs is named, with what each thread does, and ends its process: no such test lasts minutes.
_PYTEST = (
    "PYTHONDONTWRITEBYTECODE= .venv/bin/pytest --numprocesses auto --dist loadgroup"
    " -o faulthandler_timeout=900 -o faulthandler_exit_on_timeout=true --max-worker-restart 0"
)
_LAB = (
    ".venv/bin/ruff format --check . && .venv/bin/ruff check . && .venv/bin/mypy && .venv/bin/lint-imports"
    f" && {_PYTEST} tests/lab tests/tools"
)
_SQLFLUFF = "--processes 0 --nocolor --quiet analysis"
_ANALYSIS = f".venv/bin/sqlfluff lint {_SQLFLUFF} && {_PYTEST} tests/analysis"
_FLOWS = ".cache/bin/flows.source"
_SHELL = "docker run --rm --volume $PWD:/repo:ro --workdir /repo connlab/node setup/check-shell.sh"
# It knows the inputs of the repository's own action, too, where it finds a repository.
_WORKFLOWS = (
    "docker run --rm --volume $PWD/.github:/repo/.github:ro --volume $PWD/action.yml:/repo/action.yml:ro"
    " --workdir /repo connlab/go-check sh -c 'git init --quiet && actionlint'"
)
_NGINX = "nginx/check-variants"
_HAPROXY = "haproxy/check-variants"
_BACKEND = "setup/check.sh java backend"
_WORKLOADS = "setup/check.sh node k6 ./check js"
_PAGES = "CONNLAB_READS='analysis/reports/static lab/serve/static' setup/check.sh"
# One of its tests compares the document of the columns with the code.
_COLLECTOR = "CONNLAB_READS=docs/flows.md setup/check.sh go-check collector"
_PRETTIER = "bash -ec '/repo/setup/node-modules.sh; npm run --silent format'"

PARTS = (
    Part(
        "analysis",
        "what a run's files mean: sqlfluff, pytest",
        test=_ANALYSIS,
        background=True,
        check=_ANALYSIS,
        # Which packages, and which `flows`: git ignores both. The roles' declarations are in the runs of its tests.
        reads=(
            "analysis",
            "formats",
            "lab",
            *(f"{role}/role.yaml" for role in ("k6", "nginx", "haproxy", "gateway", "backend")),
            "tests/analysis",
            "tests/conftest.py",
            "tests/remembered.py",
            "docs",
            "pyproject.toml",
            ".venv/connlab.stamp",
            _FLOWS,
        ),
        fmt=f".venv/bin/sqlfluff fix {_SQLFLUFF}",
    ),
    Part(
        "python",
        "lab, and all that is Python: ruff, mypy, import-linter, pytest",
        test=_LAB,
        background=True,
        check=_LAB,
        reads=(".", ".venv/connlab.stamp", _FLOWS),
        fmt=".venv/bin/ruff check --fix-only . && .venv/bin/ruff format .",
    ),
    Part(
        "shell",
        "every script: shellcheck",
        test=_SHELL,
        check=_SHELL,
        reads=(".",),
        image="node",
    ),
    Part(
        "workflows",
        "what a CI runs: actionlint",
        test=_WORKFLOWS,
        check=_WORKFLOWS,
        reads=(".github", "action.yml"),
        image="go-check",
    ),
    Part(
        "backend",
        "the server's format, compiler warnings and unit tests",
        test=_BACKEND,
        check=_BACKEND,
        reads=("backend",),
        image="java",
        fmt="setup/check.sh --mend java backend mvn --batch-mode --quiet spotless:apply",
    ),
    Part(
        "nginx",
        "nginx -t on every variant, and real requests",
        test=_NGINX,
        check=_NGINX,
        reads=("nginx",),
        image="nginx",
    ),
    Part(
        "haproxy",
        "HAProxy's own test on every knob, and real requests",
        test=_HAPROXY,
        check=_HAPROXY,
        reads=("haproxy",),
        image="haproxy",
    ),
    Part(
        "notebook",
        "the notebook, headless, over runs of every kind",
        test="setup/python.sh notebook && .venv/bin/pytest tests/notebook",
    ),
    Part(
        "pages",
        "the reports, the index, comparisons and what `serve` shows, in headless Chromium",
        test=".venv/bin/python -m tests.pages.make .cache/pages"
        " && CONNLAB_DOCKER_ARGUMENTS='--env CONNLAB_PAGES=/repo/.cache/pages --env CONNLAB_SERVED"
        " --env CONNLAB_ELSEWHERE'"
        " CONNLAB_READS='analysis/reports/static lab/serve/static .cache/pages'"
        " .venv/bin/python -m tests.pages.serve .cache/pages setup/check.sh pages tests/pages",
        check=f"{_PAGES} node tests/pages ./check static",
        reads=("tests/pages", "analysis/reports/static", "lab/serve/static"),
        image="node",
        fmt=f"{_PAGES} --mend node tests/pages {_PRETTIER}",
    ),
    Part(
        "workloads",
        "k6's workloads: prettier, tsc, unit tests",
        test=_WORKLOADS,
        check=_WORKLOADS,
        reads=("k6",),
        image="node",
        fmt=f"setup/check.sh --mend node k6 {_PRETTIER}",
    ),
    Part(
        "docs",
        "the site of the documents: no link leads nowhere, no document is left out",
        test="make docs",
    ),
    Part(
        "compose",
        "the merged Compose file of every scenario and arm",
        test=".venv/bin/connlab check-compose",
    ),
    Part(
        "collector",
        "the collector and flows, on real network namespaces",
        test="CONNLAB_DOCKER_ARGUMENTS='--privileged --env CONNLAB_PRIVILEGED=1' " + _COLLECTOR,
        alone=True,
        check=_COLLECTOR,
        reads=("collector", "docs/flows.md"),
        image="go-check",
        fmt="setup/check.sh --mend go-check collector gofmt -w -s .",
    ),
    Part(
        "kernels",
        "links by netem, and the ladder of SYNs, on two other kernels under emulation",
        test=".venv/bin/pytest tests/kernels",
    ),
    Part(
        "gateway",
        "the gateway, on real connections",
        test="setup/check.sh go-check gateway",
        alone=True,
        check="setup/check.sh go-check gateway",
        reads=("gateway",),
        image="go-check",
        fmt="setup/check.sh --mend go-check gateway gofmt -w -s .",
    ),
    Part(
        "k6",
        "k6's extension and entry point, on a real k6",
        test="setup/check.sh go-check k6 ./check go",
        alone=True,
        check="setup/check.sh go-check k6 ./check go quick",
        reads=("k6",),
        image="go-check",
        fmt="setup/check.sh --mend go-check k6 gofmt -w -s .",
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
        # One run at a time: the other processes prepare the next, analyse the one before, or test what makes no run.
        test=".venv/bin/pytest --numprocesses 4 --dist loadgroup --durations 20 tests/e2e",
        alone=True,
    ),
    Part(
        "registry",
        "images pushed to a registry, pulled from it, and built where it lacks them",
        test=".venv/bin/pytest tests/registry",
        alone=True,
    ),
    Part(
        "kubernetes",
        "real runs on a cluster of two nodes, made for them from Kubernetes' own sources",
        test="setup/kubernetes.sh test",
        alone=True,
    ),
)
