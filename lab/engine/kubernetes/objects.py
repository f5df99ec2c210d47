"""The objects of a run: an owner, a network policy, and a pod for each instance."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from lab.engine import bounds, metrics, program_settings
from lab.engine.kubernetes.names import COLLECTOR, HOLD, INSTANCE_LABEL, ROLE, RUN_LABEL, labels, owner_of, pod_of
from lab.engine.owners import ROLE_UID
from lab.engine.protocol import STOP_GRACE_S, Parts
from lab.scenario.effective import Effective
from lab.scenario.knobs import RoleName

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
        """Give the image of a container by its short name."""
        if self.registry is None:
            return {"image": f"connlab/{name}:latest", "imagePullPolicy": "Never"}
        return {"image": f"{self.registry.rstrip('/')}/{name}:latest", "imagePullPolicy": "Always"}


def owner(run_id: str, images: Images, deadline_s: int) -> dict[str, Any]:
    """Give the Job that owns every other object of a run.

    Its pod sleeps until the deadline. Then the cluster removes the Job, and with it all that it owns, whatever has
    become of the lab.
    """
    hold = {"name": HOLD, **images.of("collector"), "args": ["hold", "--for", f"{deadline_s}s"]}
    return _job(owner_of(run_id), run_id, [hold], deadline_s + 60, kept_s=0)


def trial(run_id: str, images: Images, names: Iterable[str]) -> dict[str, Any]:
    """Give a Job that ends at once: its pod shows whether the cluster has the images, and which they are."""
    containers = [{"name": name, **images.of(name), "command": ["true"]} for name in names]
    return _job(f"{owner_of(run_id)}-images", run_id, containers, _READY_S, kept_s=60)


def _job(
    name: str, run_id: str, containers: Iterable[Mapping[str, Any]], deadline_s: int, *, kept_s: int
) -> dict[str, Any]:
    """Give a Job that is tried once; the cluster removes it `kept_s` after its end."""
    small = {**restricted(), **_resources(_HOLD_CPU, _HOLD_MB, 4 * _HOLD_MB)}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": labels(run_id)},
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": deadline_s,
            "ttlSecondsAfterFinished": kept_s,
            "template": {
                "metadata": {"labels": labels(run_id)},
                "spec": {
                    "restartPolicy": "Never",
                    **_plain_pod(),
                    "containers": [{**one, **small} for one in containers],
                },
            },
        },
    }


def policy(run_id: str, owned: Mapping[str, Any], *ports: int) -> dict[str, Any]:
    """Give the NetworkPolicy that keeps a run's load among its own pods, where the cluster's network heeds it.

    To these ports anybody in the cluster may connect; nothing else comes in.
    """
    opened = [{"ports": [{"protocol": "TCP", "port": port}]} for port in ports]
    peers = [{"podSelector": {"matchLabels": {RUN_LABEL: run_id}}}]
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": owner_of(run_id), "labels": labels(run_id), "ownerReferences": [owned]},
        "spec": {
            "podSelector": {"matchLabels": {RUN_LABEL: run_id}},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [{"from": peers}, *opened],
            "egress": [{"to": peers}],
        },
    }


def reference(job: Mapping[str, Any]) -> dict[str, Any]:
    """Give what names a Job as the owner of an object."""
    return {"apiVersion": "batch/v1", "kind": "Job", "name": job["metadata"]["name"], "uid": job["metadata"]["uid"]}


def pod(
    parts: Parts,
    instance: str,
    images: Images,
    *,
    owned: Mapping[str, Any] | None,
    hosts: Mapping[str, str],
    spread: bool,
    metrics_port: int | None = None,
) -> dict[str, Any]:
    """Give an instance's pod: its collector, its role, and what keeps the pod until its files are out.

    Args:
        parts: of the run.
        instance: of which it is.
        images: where they come from.
        owned: the owner; None for one that only the API server's admission is to see.
        hosts: the addresses of the instances behind it, by their names.
        spread: whether roles are to be on nodes of their own; else all of a run are on one node.
        metrics_port: where the collector serves its current figures; None if it does not.
    """
    effective, topology = parts.effective, parts.topology
    role = topology.role_of(instance)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": pod_of(parts.run_id, instance),
            "labels": labels(parts.run_id) | {INSTANCE_LABEL: instance, "connlab.role": role},
            **({"ownerReferences": [owned]} if owned else {}),
        },
        "spec": {
            **_plain_pod(),
            "hostname": instance,
            "restartPolicy": "Never",
            "shareProcessNamespace": True,
            "terminationGracePeriodSeconds": STOP_GRACE_S,
            "activeDeadlineSeconds": bounds.deadline_s(effective),
            "securityContext": of_pod(effective, role),
            "affinity": affinity(parts.run_id, role, spread=spread),
            "hostAliases": [{"ip": address, "hostnames": [name]} for name, address in hosts.items()],
            "containers": [
                {
                    "name": COLLECTOR,
                    **images.of("collector"),
                    "env": environment(of_collector(parts, instance, spread=spread, metrics_port=metrics_port)),
                    **({"ports": [{"name": "metrics", "containerPort": metrics_port}]} if metrics_port else {}),
                    "securityContext": CAPTURES,
                    # A startup probe asks until it is answered, and never again: nothing is asked while it is measured.
                    "startupProbe": {
                        "exec": {"command": ["collector", "healthy"]},
                        "periodSeconds": 1,
                        "timeoutSeconds": 5,
                        "failureThreshold": _READY_S,
                    },
                    "volumeMounts": collector_files(),
                    **collector_resources(),
                },
                {
                    "name": ROLE,
                    **images.of(role),
                    "env": environment(program_settings.of_role(effective, topology, instance)),
                    **restricted(),
                    "volumeMounts": role_files(),
                    **role_resources(parts, instance),
                },
                {
                    "name": HOLD,
                    **images.of("collector"),
                    "args": ["hold", "--for", f"{bounds.deadline_s(effective)}s"],
                    **restricted(),
                    "volumeMounts": [mount("collector-raw", "/raw/collector"), mount("role-raw", "/raw/role")],
                    **_resources(_HOLD_CPU, _HOLD_MB, 4 * _HOLD_MB),
                },
            ],
            "volumes": volumes(),
        },
    }


_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def again(made: Mapping[str, Any], number: int) -> dict[str, Any]:
    """Give a role's container as one that is added to its pod: a container that has ended is not started again."""
    role = next(one for one in made["spec"]["containers"] if one["name"] == ROLE)
    kept = ("image", "imagePullPolicy", "env", "securityContext", "volumeMounts")
    return {"name": f"{ROLE}-{number}", **{name: role[name] for name in kept if name in role}}


def _apart(run_id: str, role: RoleName) -> dict[str, Any]:
    others = {"key": "connlab.role", "operator": "NotIn", "values": [role]}
    selector = {
        "matchLabels": {RUN_LABEL: run_id},
        "matchExpressions": [others, {"key": INSTANCE_LABEL, "operator": "Exists"}],
    }
    term = {"weight": 100, "podAffinityTerm": {"labelSelector": selector, "topologyKey": _HOSTNAME}}
    return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}


def _plain_pod() -> dict[str, Any]:
    """Give what no pod of the lab has: the cluster's word for it, its services, a right to ask it for anything."""
    return {"automountServiceAccountToken": False, "enableServiceLinks": False, "dnsPolicy": "Default"}


# The security context of a collector.
CAPTURES = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"], "add": ["NET_ADMIN", "NET_RAW"]},
}


def of_pod(effective: Effective, role: RoleName) -> dict[str, Any]:
    """Give the security context of a role's pods, with their sysctls."""
    asked = program_settings.sysctls_of(effective, role)
    sysctls = [{"name": name, "value": value} for name, value in asked.items()]
    return {"seccompProfile": {"type": "RuntimeDefault"}, "sysctls": sysctls}


def affinity(run_id: str, role: RoleName, *, spread: bool) -> dict[str, Any]:
    """Give which nodes a role's pods are on: all of a run on one, or roles on nodes of their own."""
    if spread:
        return _apart(run_id, role)
    of_run = {"labelSelector": {"matchLabels": {RUN_LABEL: run_id}}, "topologyKey": _HOSTNAME}
    return {"podAffinity": {_REQUIRED: [of_run]}}


def of_collector(parts: Parts, instance: str, *, spread: bool, metrics_port: int | None) -> dict[str, str]:
    """Give the environment of an instance's collector."""
    served = metrics.environment(parts.topology, parts.run_id, instance, metrics_port)
    return program_settings.of_collector(parts.effective, parts.topology, instance, apart=spread) | served


def collector_resources() -> dict[str, Any]:
    """Give what a collector is promised, and what it may take."""
    return _resources(_COLLECTOR_CPU, _COLLECTOR_MB, bounds.of_collector().memory_mb)


def role_resources(parts: Parts, instance: str) -> dict[str, Any]:
    """Give what an instance of a role is promised, and what it may take."""
    limits = bounds.of_instance(parts.effective, parts.topology, instance)
    return _resources(_ROLE_CPU, _ROLE_MB, limits.memory_mb)


def restricted() -> dict[str, Any]:
    """Give the security context of the Pod Security Standards' restricted profile."""
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


def volumes() -> list[dict[str, Any]]:
    """Give the volumes of an instance's pod: for each of its two programs one for its files, and one for its /tmp."""
    return [
        {"name": "collector-raw", "emptyDir": {}},
        {"name": "role-raw", "emptyDir": {}},
        {"name": "collector-tmp", "emptyDir": {"medium": "Memory"}},
        {"name": "role-tmp", "emptyDir": {"medium": "Memory"}},
    ]


def collector_files() -> list[dict[str, str]]:
    """Give what a collector's container has of these."""
    return [mount("collector-raw", "/raw"), mount("collector-tmp", "/tmp")]  # noqa: S108 # in the container


def role_files() -> list[dict[str, str]]:
    """Give what a role's container has of these."""
    return [mount("role-raw", "/raw"), mount("role-tmp", "/tmp")]  # noqa: S108 # in the container


def mount(name: str, path: str) -> dict[str, str]:
    """Give where a container has one of its pod's volumes."""
    return {"name": name, "mountPath": path}


def environment(values: Mapping[str, str]) -> list[dict[str, str]]:
    """Give an environment as a container has it. Kubernetes would replace $(…) in a value; a doubled $ is one."""
    return [{"name": name, "value": value.replace("$(", "$$(")} for name, value in values.items()]
