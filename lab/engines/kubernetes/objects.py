"""The objects of a run, their names and labels: an owner, a network policy, and a pod for each instance."""

import hashlib
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from lab import paths, setup_scripts
from lab.engines.container_settings import (
    COLLECTOR_LIMITS,
    ROLE_UID,
    collector_environment,
    compute_deadline_s,
    limits_for_instance,
    role_environment,
    settable_sysctls,
)
from lab.engines.protocol import STOP_GRACE_S, Parts, event_capabilities
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


_HOSTNAME = "kubernetes.io/hostname"
# What a pod is promised; it may take as much of a processor as there is, for a limit would be part of what is measured.
_COLLECTOR_CPU, _ROLE_CPU, _HOLD_CPU = "100m", "250m", "10m"
_COLLECTOR_MB, _ROLE_MB, _HOLD_MB = 128, 512, 32
# A server may take so long to be ready: the probe asks once a second, and no more once it is.
_READY_S = 300


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


def build_owner(run_id: str, images: Images, deadline_s: int) -> dict[str, Any]:
    """Return the Job that owns every other object of a run.

    Its pod sleeps until the deadline. Then the cluster removes the Job, and with it all that it owns, whatever has
    become of the lab.
    """
    hold = {"name": HOLD, **images.of("collector"), "args": ["hold", "--for", f"{deadline_s}s"]}
    return _job(owner_name(run_id), run_id, [hold], deadline_s + 60, kept_s=0)


def build_image_trial(run_id: str, images: Images, names: Iterable[str]) -> dict[str, Any]:
    """Return a Job that ends at once: its pod shows whether the cluster has the images, and which they are."""
    containers = [{"name": name, **images.of(name), "command": ["true"]} for name in names]
    return _job(f"{owner_name(run_id)}-images", run_id, containers, _READY_S, kept_s=60)


def _job(
    name: str, run_id: str, containers: Iterable[Mapping[str, Any]], deadline_s: int, *, kept_s: int
) -> dict[str, Any]:
    """Return a Job that is tried once; the cluster removes it `kept_s` after its end."""
    small = {**_restricted(), **_resources(_HOLD_CPU, _HOLD_MB, 4 * _HOLD_MB)}
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
                    **_plain_pod(),
                    "containers": [{**one, **small} for one in containers],
                },
            },
        },
    }


def build_network_policy(run_id: str, owned: Mapping[str, Any], metrics_port: int | None = None) -> dict[str, Any]:
    """Return the NetworkPolicy that keeps a run's load among its own pods, where the cluster's network heeds it.

    To the port of the metrics anybody in the cluster may connect; nothing else comes in.
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
            "egress": [{"to": peers}],
        },
    }


def build_pod(
    parts: Parts,
    instance: str,
    images: Images,
    *,
    owned: Mapping[str, Any] | None,
    hosts: Mapping[str, str],
    spread: bool,
    metrics_port: int | None = None,
) -> dict[str, Any]:
    """Return an instance's pod: its collector, its role, and what keeps the pod until its files are out.

    Args:
        parts: of the run.
        instance: of which it is.
        images: where they come from.
        owned: the owner; None for one that only the API server's admission is to see.
        hosts: the addresses of the instances behind it, by their names.
        spread: whether roles are to be on nodes of their own; else all of a run are on one node.
        metrics_port: where the collector serves its current figures; None if it does not.
    """
    resolved, topology = parts.resolved, parts.topology
    role = topology.role_of(instance)
    limits = limits_for_instance(resolved, topology, instance)
    environment = collector_environment(
        resolved, topology, instance, parts.run_id, metrics_port=metrics_port, apart=spread
    )
    rights = ["NET_ADMIN", "NET_RAW", *event_capabilities(environment)]
    of_run = {"labelSelector": {"matchLabels": {RUN_LABEL: parts.run_id}}, "topologyKey": _HOSTNAME}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": pod_name(parts.run_id, instance),
            "labels": run_labels(parts.run_id) | {INSTANCE_LABEL: instance, "connlab.role": role},
            **({"ownerReferences": [owned]} if owned else {}),
        },
        "spec": {
            **_plain_pod(),
            "hostname": instance,
            "restartPolicy": "Never",
            "shareProcessNamespace": True,
            "terminationGracePeriodSeconds": STOP_GRACE_S,
            "activeDeadlineSeconds": compute_deadline_s(resolved),
            "securityContext": {
                "seccompProfile": {"type": "RuntimeDefault"},
                "sysctls": [{"name": name, "value": value} for name, value in settable_sysctls(resolved, role).items()],
            },
            "affinity": _apart(parts.run_id, role) if spread else {"podAffinity": {_REQUIRED: [of_run]}},
            "hostAliases": [{"ip": address, "hostnames": [name]} for name, address in hosts.items()],
            "containers": [
                {
                    "name": COLLECTOR,
                    **images.of("collector"),
                    "env": env_entries(environment),
                    **({"ports": [{"name": "metrics", "containerPort": metrics_port}]} if metrics_port else {}),
                    "securityContext": {
                        "allowPrivilegeEscalation": False,
                        "readOnlyRootFilesystem": True,
                        "capabilities": {"drop": ["ALL"], "add": rights},
                    },
                    # A startup probe asks until it is answered, and never again: nothing is asked while it is measured.
                    "startupProbe": {
                        "exec": {"command": ["collector", "healthy"]},
                        "periodSeconds": 1,
                        "timeoutSeconds": 5,
                        "failureThreshold": _READY_S,
                    },
                    "volumeMounts": [_mount("collector-raw", "/raw"), _mount("collector-tmp", "/tmp")],  # noqa: S108
                    **_resources(_COLLECTOR_CPU, _COLLECTOR_MB, COLLECTOR_LIMITS.memory_mb),
                },
                {
                    "name": ROLE,
                    **images.of(role),
                    "env": env_entries(role_environment(resolved, topology, instance, parts.certificates)),
                    **_restricted(),
                    "volumeMounts": [_mount("role-raw", "/raw"), _mount("role-tmp", "/tmp")],  # noqa: S108 # in the container
                    **_resources(_ROLE_CPU, _ROLE_MB, limits.memory_mb),
                },
                {
                    "name": HOLD,
                    **images.of("collector"),
                    "args": ["hold", "--for", f"{compute_deadline_s(resolved)}s"],
                    **_restricted(),
                    # The role has the same user, and reaches this container's files by /proc/<pid>/root.
                    "volumeMounts": [
                        {**_mount("collector-raw", "/raw/collector"), "readOnly": True},
                        {**_mount("role-raw", "/raw/role"), "readOnly": True},
                    ],
                    **_resources(_HOLD_CPU, _HOLD_MB, 4 * _HOLD_MB),
                },
            ],
            "volumes": [
                {"name": "collector-raw", "emptyDir": {}},
                {"name": "role-raw", "emptyDir": {}},
                {"name": "collector-tmp", "emptyDir": {"medium": "Memory"}},
                {"name": "role-tmp", "emptyDir": {"medium": "Memory"}},
            ],
        },
    }


_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def build_restarted_role(made: Mapping[str, Any], number: int) -> dict[str, Any]:
    """Return a role's container as one that is added to its pod: a container that has ended is not started again."""
    role = next(one for one in made["spec"]["containers"] if one["name"] == ROLE)
    kept = ("image", "imagePullPolicy", "env", "securityContext", "volumeMounts")
    return {"name": f"{ROLE}-{number}", **{name: role[name] for name in kept if name in role}}


def _apart(run_id: str, role: str) -> dict[str, Any]:
    others = {"key": "connlab.role", "operator": "NotIn", "values": [role]}
    selector = {
        "matchLabels": {RUN_LABEL: run_id},
        "matchExpressions": [others, {"key": INSTANCE_LABEL, "operator": "Exists"}],
    }
    term = {"weight": 100, "podAffinityTerm": {"labelSelector": selector, "topologyKey": _HOSTNAME}}
    return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}


def _plain_pod() -> dict[str, Any]:
    """Return what no pod of the lab has: the cluster's word for it, its services, a right to ask it for anything."""
    return {"automountServiceAccountToken": False, "enableServiceLinks": False, "dnsPolicy": "Default"}


def _restricted() -> dict[str, Any]:
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


def _resources(cpu: str, memory_mb: int, memory_max_mb: int) -> dict[str, Any]:
    return {
        "resources": {
            "requests": {"cpu": cpu, "memory": f"{memory_mb}Mi"},
            "limits": {"memory": f"{max(memory_mb, memory_max_mb)}Mi"},
        }
    }


def _mount(name: str, path: str) -> dict[str, str]:
    return {"name": name, "mountPath": path}


def env_entries(values: Mapping[str, str]) -> list[dict[str, str]]:
    """Return an environment as a container has it. Kubernetes would replace $(…) in a value; a doubled $ is one."""
    return [{"name": name, "value": value.replace("$", "$$")} for name, value in values.items()]
