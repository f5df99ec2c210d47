"""What a run's objects are called and labelled in a cluster."""

from __future__ import annotations

import hashlib
import socket
from collections.abc import Mapping
from typing import Any

from lab import paths
from lab.scenarios.topology import collector_of

RUN_LABEL = "connlab.run"
INSTANCE_LABEL = "connlab.instance"
# Several people may run the lab in one namespace: each removes only what is of their own checkout.
CHECKOUT_LABEL = "connlab.checkout"

ROLE = "role"
COLLECTOR = "collector"
HOLD = "hold"


def checkout() -> str:
    """Name this checkout on this machine, as a label's value."""
    return hashlib.sha256(f"{socket.gethostname()}:{paths.ROOT}".encode()).hexdigest()[:12]


def run_labels(run_id: str) -> dict[str, str]:
    """Give the labels of everything that belongs to a run."""
    return {"app.kubernetes.io/managed-by": "connlab", RUN_LABEL: run_id, CHECKOUT_LABEL: checkout()}


def checkout_selector() -> str:
    """Give the selector of everything that this checkout made."""
    return f"{CHECKOUT_LABEL}={checkout()}"


def owner_name(run_id: str) -> str:
    """Name the object that owns all others of a run."""
    return f"connlab-{run_id.lower()}"


def pod_name(run_id: str, instance: str) -> str:
    """Name an instance's pod."""
    return f"{owner_name(run_id)}-{instance}"


def instance_of(pod: Mapping[str, Any]) -> str:
    """Return the instance that a pod is of."""
    return str(pod["metadata"]["labels"][INSTANCE_LABEL])


def service_of(instance: str, container: str) -> str | None:
    """Give the service, as lab.engines.protocol.Watch names it, that a container of an instance's pod is."""
    if container == COLLECTOR:
        return collector_of(instance)
    # A role that was started again has a number; what somebody else added to the pod is no part of the run.
    return instance if container.partition("-")[0] == ROLE else None


def image_id(image: str) -> str:
    """Give an image's id without the name of where it was pulled from."""
    return image.rpartition("@")[2]
