"""Real runs on a real cluster: setup/kubernetes.sh makes it, and names it in .cache/kubernetes/kubeconfig."""

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import turn, whole_turn
from tests.own_results import begin

__all__ = ["whole_turn"]

ROOT = Path(__file__).resolve().parents[2]
KUBECONFIG = ROOT / ".cache/kubernetes/kubeconfig"
# Each process of pytest-xdist has a namespace of its own: what lies there is its own, too.
WORKER = os.environ.get("PYTEST_XDIST_WORKER")


def pytest_sessionstart() -> None:
    begin()


@pytest.fixture(scope="session", autouse=True)
def cluster(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Let the lab and these tests find the cluster."""
    assert KUBECONFIG.is_file(), "there is no cluster: setup/kubernetes.sh up"
    os.environ["KUBECONFIG"] = str(KUBECONFIG)
    os.environ["PATH"] = f"{KUBECONFIG.parent}:{os.environ['PATH']}"
    if WORKER:
        own = tmp_path_factory.mktemp("cluster") / "kubeconfig"
        os.environ["KUBECONFIG"] = str(shutil.copy(KUBECONFIG, own))
        own.chmod(0o600)
        made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": WORKER}}
        kubectl("apply", "--filename", "-", stdin=json.dumps(made))
        kubectl("config", "set-context", "--current", "--namespace", WORKER)
        # The namespace gets its service account a little later.
        kubectl("wait", "--for=create", "--timeout=60s", "serviceaccount/default")


def kubectl(*arguments: str, stdin: str | None = None) -> str:
    """What kubectl prints."""
    return subprocess.run(["kubectl", *arguments], input=stdin, capture_output=True, text=True, check=True).stdout


def build_into_nodes(*images: str, by: Sequence[str | Path], **variables: str) -> None:
    """Make images by a command, and bring them into every node.

    That takes the processors for as long as a run does, and a run beside it would be slow: it takes a turn.
    """
    listed = ["docker", "ps", "--filter", "label=connlab.check=kubernetes", "--format", "{{.Names}}"]
    imported = "ctr --address /lab/run/containerd.sock --namespace k8s.io images import -"
    with turn():
        subprocess.run(by, env=os.environ | variables, capture_output=True, check=True)
        for node in subprocess.run(listed, capture_output=True, text=True, check=True).stdout.split():
            into = f"docker save {' '.join(images)} | docker exec --interactive {node} {imported}"
            subprocess.run(["bash", "-o", "pipefail", "-c", into], capture_output=True, check=True)


def objects(kinds: str = "pods,jobs,networkpolicies") -> list[dict[str, Any]]:
    """The objects of the lab's that are in the cluster."""
    listed = kubectl("get", kinds, "--selector", "app.kubernetes.io/managed-by=connlab", "--output", "json")
    items: list[dict[str, Any]] = json.loads(listed)["items"]
    return items


def names() -> list[str]:
    """The names of the lab's objects in the cluster."""
    return [one["metadata"]["name"] for one in objects()]
