"""The names and labels of a run's objects, its owner and its network policy, and what containers of all pods have."""

import hashlib
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from lab import paths, setup_scripts
from lab.engines.container_settings import ROLE_UID
from lab.engines.role_containers import RoleContainer
from lab.scenarios import generators
from lab.scenarios.topology import collector_of

RUN_LABEL = "connlab.run"
INSTANCE_LABEL = "connlab.instance"
# Several people may run the lab in one namespace: each removes only what is of their own checkout.
CHECKOUT_LABEL = "connlab.checkout"

ROLE = "role"
COLLECTOR = "collector"
HOLD = "hold"


def run_labels(run_id: str) -> dict[str, str]:
    """Return the labels of everything that belongs to a run."""
    return {"app.kubernetes.io/managed-by": "connlab", RUN_LABEL: run_id, CHECKOUT_LABEL: _checkout()}


def checkout_selector() -> str:
    """Return the selector of everything that this checkout made."""
    return f"{CHECKOUT_LABEL}={_checkout()}"


def _checkout() -> str:
    """Name this checkout on this machine, as a label's value."""
    return hashlib.sha256(f"{socket.gethostname()}:{paths.ROOT}".encode()).hexdigest()[:12]


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
    """Return the service, as lab.engines.protocol.Watch names it, that a container of an instance's pod is."""
    if container == COLLECTOR:
        return collector_of(instance)
    # A role that was started again has a number; what somebody else added to the pod is no part of the run.
    return instance if container.partition("-")[0] == ROLE else None


def image_id(image: str) -> str:
    """Return an image's id without the name of where it was pulled from."""
    return image.rpartition("@")[2]


# What a pod is promised; it may take as much of a processor as there is, for a limit would be part of what is measured.
HOLD_CPU, HOLD_MB = "10m", 32
# Docker lets each user's programs listen on each port; for a cluster the sysctl is a safe one.
ANY_PORT = {"net.ipv4.ip_unprivileged_port_start": "0"}
# A server may take so long to be ready: the probe asks once a second, and no more once it is.
READY_S = 300


@dataclass(frozen=True)
class Images:
    """Where the nodes have the lab's images from.

    Attributes:
        registry: the registry, and the path in it; None where they were loaded into the nodes.
    """

    registry: str | None = None

    def of(self, name: str) -> dict[str, str]:
        """Return the image of a container by its short name."""
        if self.registry is None:
            return {"image": f"connlab/{name}:latest", "imagePullPolicy": "Never"}
        # A tag keeps its image.
        reference = f"{self.registry.rstrip('/')}/{name}:{setup_scripts.image_tags()[name]}"
        return {"image": reference, "imagePullPolicy": "IfNotPresent"}

    def of_own(self, name: str) -> dict[str, str]:
        """Return an image that was built on the lab's machine and is none of the lab's own for each run."""
        if self.registry is None:
            return {"image": f"{name}:latest", "imagePullPolicy": "Never"}
        # The user pushes it under one tag, so a node may have an older image of that name.
        reference = f"{self.registry.rstrip('/')}/{name.partition('/')[2]}:latest"
        return {"image": reference, "imagePullPolicy": "Always"}

    def of_container(self, made: RoleContainer, role: str) -> dict[str, str]:
        """Return the image of a role's container, or of a service's: the user's own, if it has one."""
        if made.image is None:
            return self.of(role)
        if made.made_here or made.image == generators.IMAGE:
            return self.of_own(made.image)
        # The nodes have it, or pull it from where its name says.
        return {"image": made.image, "imagePullPolicy": "IfNotPresent"}


def build_owner(run_id: str, images: Images, deadline_s: int) -> dict[str, Any]:
    """Return the Job that owns every other object of a run.

    Its pod sleeps until the deadline. Then the cluster removes the Job, and with it all that it owns, whatever has
    become of the lab.
    """
    hold = {"name": HOLD, **images.of("collector"), "args": ["hold", "--for", f"{deadline_s}s"]}
    return _job(owner_name(run_id), run_id, [hold], deadline_s + 60, kept_s=0)


def build_trial(run_id: str, containers: Iterable[Mapping[str, Any]], **of_pod: object) -> dict[str, Any]:
    """Return a Job that is no part of a run: its pod shows what the cluster makes of these containers.

    `of_pod` is what the pod has besides.
    """
    rights = {"sysctls": [{"name": key, "value": one} for key, one in ANY_PORT.items()]}
    return _job(f"{owner_name(run_id)}-trial", run_id, containers, READY_S, kept_s=60, securityContext=rights, **of_pod)


def _job(
    name: str,
    run_id: str,
    containers: Iterable[Mapping[str, Any]],
    deadline_s: int,
    *,
    kept_s: int,
    **of_pod: object,
) -> dict[str, Any]:
    """Return a Job that is tried once; the cluster removes it `kept_s` after its end."""
    small = {**restricted(), **resources(HOLD_CPU, HOLD_MB, 4 * HOLD_MB)}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": run_labels(run_id)},
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": deadline_s,
            "ttlSecondsAfterFinished": kept_s,
            "template": {
                "metadata": {"labels": run_labels(run_id)},
                "spec": {
                    "restartPolicy": "Never",
                    **plain_pod(),
                    "containers": [{**small, **one} for one in containers],
                    **of_pod,
                },
            },
        },
    }


def build_network_policy(
    run_id: str,
    owned: Mapping[str, Any],
    running: Iterable[Mapping[str, Any]] = (),
    metrics_port: int | None = None,
) -> dict[str, Any]:
    """Return the NetworkPolicy that keeps a run's load among its own pods, where the cluster's network heeds it.

    It may leave them for the pods of `running`, as peers of a policy. To the port of the metrics anybody in the cluster
    may connect; nothing else comes in.
    """
    opened = [{"ports": [{"protocol": "TCP", "port": metrics_port}]}] if metrics_port else []
    peers = [{"podSelector": {"matchLabels": {RUN_LABEL: run_id}}}]
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": owner_name(run_id), "labels": run_labels(run_id), "ownerReferences": [owned]},
        "spec": {
            "podSelector": {"matchLabels": {RUN_LABEL: run_id}},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [{"from": peers}, *opened],
            "egress": [{"to": [*peers, *running]}],
        },
    }


def plain_pod() -> dict[str, Any]:
    """Return what no pod of the lab has: the cluster's word for it, its services, a right to ask it for anything."""
    return {"automountServiceAccountToken": False, "enableServiceLinks": False, "dnsPolicy": "Default"}


def restricted() -> dict[str, Any]:
    """Return the security context of the Pod Security Standards' restricted profile."""
    return {
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "runAsUser": ROLE_UID,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        }
    }


def resources(cpu: str, memory_mb: int, memory_max_mb: int) -> dict[str, Any]:
    """Return what a container is promised, and the memory at which it is ended."""
    return {
        "resources": {
            "requests": {"cpu": cpu, "memory": f"{memory_mb}Mi"},
            "limits": {"memory": f"{max(memory_mb, memory_max_mb)}Mi"},
        }
    }


def env_entries(values: Mapping[str, str]) -> list[dict[str, str]]:
    """Return an environment as a container has it. Kubernetes would replace $(…) in a value; a doubled $ is one."""
    return [{"name": name, "value": value.replace("$", "$$")} for name, value in values.items()]
