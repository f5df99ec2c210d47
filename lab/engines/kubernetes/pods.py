"""The pods of a run: one for each instance, with its collector, and one for each service beside the path."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from typing import Any

from lab.engines.container_settings import (
    COLLECTOR_LIMITS,
    ROLE_UID,
    ContainerLimits,
    collector_environment,
    compute_deadline_s,
    limits_for_instance,
    limits_for_needed,
    settable_sysctls,
)
from lab.engines.kubernetes.carried_files import CarriedFiles, carry_files
from lab.engines.kubernetes.objects import (
    ANY_PORT,
    COLLECTOR,
    HOLD,
    HOLD_CPU,
    HOLD_MB,
    INSTANCE_LABEL,
    READY_S,
    ROLE,
    RUN_LABEL,
    Images,
    env_entries,
    owner_name,
    plain_pod,
    pod_name,
    resources,
    restricted,
    run_labels,
)
from lab.engines.protocol import STOP_GRACE_S, Parts, event_capabilities
from lab.engines.role_containers import RoleContainer, container_of_instance, container_of_service
from lab.scenarios.running_checks import running_roles

_HOSTNAME = "kubernetes.io/hostname"
_COLLECTOR_CPU, _ROLE_CPU = "100m", "250m"
_COLLECTOR_MB, _ROLE_MB = 128, 512
# The lab itself decides how long it waits.
_ASKED_S = 3600
# The collector waits so long for what it lacks, which takes less of a node than to start another probe.
_WAITS_S = 10
_TMP = "/tmp"  # noqa: S108 # in the container
# What a volume begins with: what the image has there, with its owners.
_VOLUME = "/volume"
_FILL = f'[ ! -d "$1" ] || cp -a "$1/." {_VOLUME}/'
_FILLS = ["CHOWN", "DAC_OVERRIDE", "FOWNER"]
# What a container needs that ends processes of any user, and hands out their files.
_OF_ANY_USER = ["KILL", "DAC_READ_SEARCH"]
_UNITS = {"": "", "k": "Ki", "m": "Mi", "g": "Gi"}
_SIZE = re.compile(r"(?P<number>[0-9]+)(?P<unit>[kmg]?)b?", re.IGNORECASE)


@dataclass(frozen=True)
class Pods:
    """What the pods of a run are made of.

    Attributes:
        images: where they come from.
        spread: whether roles are to be on nodes of their own; else all of a run are on one node.
        metrics: the port on which each collector serves its current figures; None if none does.
    """

    parts: Parts
    images: Images
    spread: bool = False
    metrics: int | None = None
    _carried: dict[str, CarriedFiles] = field(default_factory=dict, init=False, compare=False)

    @property
    def names(self) -> list[str]:
        """Return all pods that the lab makes: instances, and services beside the path."""
        running, topology = running_roles(self.parts.resolved), self.parts.topology
        made = [one for role, instances in topology.instances.items() if role not in running for one in instances]
        return [*made, *topology.needed]

    def role_of(self, name: str) -> str:
        """Return the role of an instance; a service beside the path has its own name."""
        return name if name in self.parts.topology.needed else self.parts.topology.role_of(name)

    def container(self, name: str) -> RoleContainer:
        """Return what the program's container is made of."""
        parts = self.parts
        if name in parts.topology.needed:
            return container_of_service(parts.resolved, parts.topology, name)
        return container_of_instance(parts.resolved, parts.topology, name, parts.certificates)

    def carried(self, name: str) -> CarriedFiles:
        """Return the files that a pod reads, which all of a role share; raises as `carry_files`."""
        role = self.role_of(name)
        if role not in self._carried:
            self._carried[role] = carry_files(self.container(name))
        return self._carried[role]

    def order(self) -> list[list[str]]:
        """Return the pods in the order of their start, each role's together: what others ask for comes first.

        Raises:
            graphlib.CycleError: two of them ask for each other.
        """
        topology = self.parts.topology
        groups = {role: names for role, names in topology.instances.items() if names[0] in self.names}
        groups |= {name: [name] for name in topology.needed}
        roles = list(topology.instances)
        behind = dict(zip(roles, [[one] for one in roles[1:]], strict=False))
        asked = {
            role: {*behind.get(role, []), *self.container(group[0]).after} & groups.keys()
            for role, group in groups.items()
        }
        return [groups[role] for role in TopologicalSorter(asked).static_order()]

    def config_maps(self, owned: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the ConfigMaps of all pods."""
        found = {self.role_of(name): self.carried(name) for name in self.names}
        labels = run_labels(self.parts.run_id)
        return [
            one
            for role, carried in found.items()
            for one in carried.config_maps(self._maps_of(role), labels=labels, ownerReferences=[owned])
        ]

    def _maps_of(self, role: str) -> str:
        return f"{owner_name(self.parts.run_id)}-{role}"

    def build(
        self, name: str, *, owned: Mapping[str, Any] | None, hosts: Mapping[str, Sequence[str]]
    ) -> dict[str, Any]:
        """Return a pod: an instance's has its collector, its role, and what keeps the pod until its files are out.

        Args:
            name: of the instance, or of the service beside the path.
            owned: the owner; None for one that only the API server's admission is to see.
            hosts: the names of each address that it knows.
        """
        parts, role, made = self.parts, self.role_of(name), self.container(name)
        on_path, carried = name in parts.topology.all, self.carried(name)
        of_run = {"labelSelector": {"matchLabels": {RUN_LABEL: parts.run_id}}, "topologyKey": _HOSTNAME}
        sysctls = (ANY_PORT if made.service else {}) | dict(made.sysctls)
        sysctls |= settable_sysctls(parts.resolved, role) if on_path else {}
        own_hosts = made.service.extra_hosts if made.service else {}
        aliases = [*hosts.items(), *((address, [host]) for host, address in own_hosts.items())]
        # A generator begins its load when its container is started.
        started = [self.role_container(name)] if name not in parts.topology.generators else []
        # A node writes the pod's table of hosts anew for each container that it starts. A program that asks just then
        # finds it empty, so the program is started last.
        containers = [self._collector(name), self._hold(made), *started] if on_path else started
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": pod_name(parts.run_id, name),
                "labels": run_labels(parts.run_id) | {INSTANCE_LABEL: name, "connlab.role": role},
                **({"ownerReferences": [owned]} if owned else {}),
            },
            "spec": {
                **plain_pod(),
                "hostname": name,
                "restartPolicy": "Never",
                "shareProcessNamespace": True,
                "terminationGracePeriodSeconds": STOP_GRACE_S,
                "activeDeadlineSeconds": compute_deadline_s(parts.resolved),
                "securityContext": {
                    "seccompProfile": {"type": "RuntimeDefault"},
                    "sysctls": [{"name": name, "value": value} for name, value in sysctls.items()],
                },
                "affinity": _apart(parts.run_id, role) if self.spread else {"podAffinity": {_REQUIRED: [of_run]}},
                "hostAliases": [{"ip": address, "hostnames": [*names]} for address, names in aliases],
                **_before(made, carried, self.images, role),
                "containers": containers,
                "volumes": [*_volumes(made, on_path=on_path), *carried.volumes(self._maps_of(role))],
            },
        }

    def role_container(self, name: str) -> dict[str, Any]:
        """Return the container of an instance's program, or of a service beside the path."""
        made, role = self.container(name), self.role_of(name)
        of_user: dict[str, Any] = {}
        if service := made.service:
            words = {"command": service.entrypoint, "args": made.arguments}
            of_user = {key: [_plain(word) for word in said] for key, said in words.items() if said is not None}
            of_user |= {"workingDir": made.working_dir} if made.working_dir else {}
            of_user |= {"tty": True} if service.tty else {}
            of_user |= {"stdin": True} if service.stdin_open else {}
            if isinstance(service.ready, list):
                of_user["startupProbe"] = _probe(service.ready, _ASKED_S)
        return {
            "name": ROLE,
            **self.images.of_container(made, role),
            **of_user,
            "env": env_entries(made.environment),
            **_rights(made),
            "volumeMounts": [*_mounts(made), *self.carried(name).mounts()],
            **resources(_ROLE_CPU, _ROLE_MB, self._limits(name).memory_mb),
        }

    def _limits(self, name: str) -> ContainerLimits:
        parts = self.parts
        if name in parts.topology.needed:
            return limits_for_needed(parts.resolved.registry.services[name].memory_mb)
        return limits_for_instance(parts.resolved, parts.topology, name)

    def _collector(self, instance: str) -> dict[str, Any]:
        parts = self.parts
        environment = collector_environment(
            *(parts.resolved, parts.topology, instance, parts.run_id), metrics_port=self.metrics, apart=self.spread
        )
        rights = ["NET_ADMIN", "NET_RAW", *event_capabilities(environment)]
        own = parts.resolved.registry.services.get(self.role_of(instance))
        ready_s = max(READY_S, math.ceil(own.ready_within / 1000) if own else 0)
        return {
            "name": COLLECTOR,
            **self.images.of("collector"),
            "env": env_entries(environment),
            **({"ports": [{"name": "metrics", "containerPort": self.metrics}]} if self.metrics else {}),
            "securityContext": {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"], "add": rights},
            },
            # A startup probe asks until it is answered, and never again: nothing is asked while it is measured.
            "startupProbe": _probe(["collector", "healthy", f"--within={_WAITS_S}s"], ready_s, _WAITS_S),
            "volumeMounts": [_mount("collector-raw", "/raw"), _mount("collector-tmp", _TMP)],
            **resources(_COLLECTOR_CPU, _COLLECTOR_MB, COLLECTOR_LIMITS.memory_mb),
        }

    def _hold(self, made: RoleContainer) -> dict[str, Any]:
        return {
            "name": HOLD,
            **self.images.of("collector"),
            "args": ["hold", "--for", f"{compute_deadline_s(self.parts.resolved)}s"],
            **(restricted() if _has_our_user(made) else _root(_OF_ANY_USER)),
            # The role may have the same user, and reaches this container's files by /proc/<pid>/root.
            "volumeMounts": [
                {**_mount("collector-raw", "/raw/collector"), "readOnly": True},
                {**_mount("role-raw", "/raw/role"), "readOnly": True},
            ],
            **resources(HOLD_CPU, HOLD_MB, 4 * HOLD_MB),
        }


_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
# What a container that is added to a pod can have.
_OF_ADDED = (
    *("image", "imagePullPolicy", "command", "args", "workingDir", "tty", "stdin", "env"),
    *("securityContext", "volumeMounts"),
)


def build_added_role(role: Mapping[str, Any], number: int) -> dict[str, Any]:
    """Return a role's container as one that is added to its pod: one that has ended is not started again."""
    return {"name": f"{ROLE}-{number}", **{name: role[name] for name in _OF_ADDED if name in role}}


def _apart(run_id: str, role: str) -> dict[str, Any]:
    others = {"key": "connlab.role", "operator": "NotIn", "values": [role]}
    selector = {
        "matchLabels": {RUN_LABEL: run_id},
        "matchExpressions": [others, {"key": INSTANCE_LABEL, "operator": "Exists"}],
    }
    term = {"weight": 100, "podAffinityTerm": {"labelSelector": selector, "topologyKey": _HOSTNAME}}
    return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}


def _has_our_user(made: RoleContainer) -> bool:
    return made.service is None or made.service.user is None


def _rights(made: RoleContainer) -> dict[str, Any]:
    """Return the security context of a program: the restricted profile's, but for what a service loosens."""
    service = made.service
    found: dict[str, Any] = restricted()["securityContext"]
    if service is None:
        return {"securityContext": found}
    if service.capabilities:
        found["capabilities"] = {"drop": ["ALL"], "add": list(service.capabilities)}
    found["readOnlyRootFilesystem"] = service.read_only
    if not _has_our_user(made):
        del found["runAsNonRoot"], found["runAsUser"]
        numbers = (made.user or "").split(":")
        found |= {key: int(one) for key, one in zip(("runAsUser", "runAsGroup"), numbers, strict=False) if one}
    else:
        found["runAsGroup"] = ROLE_UID
    return {"securityContext": found}


def _root(capabilities: Sequence[str]) -> dict[str, Any]:
    """Return the security context of a container of the lab's that has to do with other users' files or processes."""
    return {
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "runAsUser": 0,
            "capabilities": {"drop": ["ALL"], "add": [*capabilities]},
        }
    }


def _before(made: RoleContainer, carried: CarriedFiles, images: Images, role: str) -> dict[str, Any]:
    """Return what runs to its end before a pod's containers: it unpacks files, and fills volumes from the image."""
    small = resources(HOLD_CPU, HOLD_MB, 4 * HOLD_MB)
    unpackers = [{**one, **images.of("collector"), **restricted(), **small} for one in carried.unpacker()]
    fillers = [
        {
            "name": name,
            **images.of_container(made, role),
            "command": ["sh", "-c", _FILL, "sh", target],
            **_root(_FILLS),
            "volumeMounts": [_mount(name, _VOLUME)],
            **small,
        }
        for name, target in _of_run(made).items()
    ]
    return {"initContainers": [*unpackers, *fillers]} if unpackers or fillers else {}


def _of_run(made: RoleContainer) -> dict[str, str]:
    """Return the volumes of the run that a container has, each with its place."""
    targets = [one.target for one in made.mounts if one.kind == "volume"]
    return {f"volume-{number}": target for number, target in enumerate(targets)}


def _memory(made: RoleContainer) -> dict[str, tuple[str, dict[str, str]]]:
    """Return the folders that a program writes to and that lie in memory, each with its place and its limit."""
    taken = {one.target for one in made.mounts}
    folders = [one for one in dict.fromkeys((_TMP, *made.writable)) if one not in taken]
    found: dict[str, tuple[str, dict[str, str]]] = {
        "role-tmp" if folder == _TMP else f"writable-{number}": (folder, {}) for number, folder in enumerate(folders)
    }
    if made.service and made.service.shm_size and (size := _SIZE.fullmatch(made.service.shm_size)):
        found["shm"] = ("/dev/shm", {"sizeLimit": f"{size['number']}{_UNITS[size['unit'].lower()]}"})  # noqa: S108
    return found


def _volumes(made: RoleContainer, *, on_path: bool) -> list[dict[str, Any]]:
    raw: list[dict[str, Any]] = (
        [{"name": name, "emptyDir": {}} for name in ("collector-raw", "role-raw")] if on_path else []
    )
    tmp = [{"name": "collector-tmp", "emptyDir": {"medium": "Memory"}}] if on_path else []
    in_memory = [
        {"name": name, "emptyDir": {"medium": "Memory", **limit}} for name, (_, limit) in _memory(made).items()
    ]
    return [*raw, *tmp, *in_memory, *({"name": name, "emptyDir": {}} for name in _of_run(made))]


def _mounts(made: RoleContainer) -> list[dict[str, Any]]:
    raw = [_mount("role-raw", one.target) for one in made.mounts if one.kind == "raw"]
    read_only = {one.target for one in made.mounts if one.read_only}
    of_run = [
        _mount(name, target) | ({"readOnly": True} if target in read_only else {})
        for name, target in _of_run(made).items()
    ]
    return [*raw, *(_mount(name, target) for name, (target, _) in _memory(made).items()), *of_run]


def _mount(name: str, path: str) -> dict[str, Any]:
    return {"name": name, "mountPath": path}


def _probe(command: Sequence[str], within_s: int, waits_s: int = 1) -> dict[str, Any]:
    """Ask by a command that waits for so long itself."""
    times = {"periodSeconds": 1, "timeoutSeconds": waits_s + 4, "failureThreshold": math.ceil(within_s / waits_s)}
    return {"exec": {"command": [*command]}, **times}


def _plain(word: str) -> str:
    """Return a word of a command line as a container has it; env_entries says why."""
    return word.replace("$", "$$")
