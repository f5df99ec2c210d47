"""Real runs on a real cluster: setup/kubernetes.sh makes it, and names it in .cache/kubernetes/kubeconfig."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.own_results import begin

ROOT = Path(__file__).resolve().parents[2]
KUBECONFIG = ROOT / ".cache/kubernetes/kubeconfig"


def pytest_sessionstart() -> None:
    begin()


@pytest.fixture(scope="session", autouse=True)
def cluster() -> None:
    """Let the lab and these tests find the cluster."""
    assert KUBECONFIG.is_file(), "there is no cluster: setup/kubernetes.sh up"
    os.environ["KUBECONFIG"] = str(KUBECONFIG)
    os.environ["PATH"] = f"{KUBECONFIG.parent}:{os.environ['PATH']}"


def objects(kinds: str = "pods,jobs,networkpolicies") -> list[dict[str, Any]]:
    """The objects of the lab's that are in the cluster."""
    listed = subprocess.run(
        ["kubectl", "get", kinds, "--selector", "app.kubernetes.io/managed-by=connlab", "--output", "json"],
        capture_output=True,
        text=True,
        check=True,
    )
    items: list[dict[str, Any]] = json.loads(listed.stdout)["items"]
    return items


def names() -> list[str]:
    """The names of the lab's objects in the cluster."""
    return [one["metadata"]["name"] for one in objects()]
