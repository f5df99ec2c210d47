"""What the lab may do in a namespace of a cluster, whether that answers, and what of the lab's is left in it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from lab.engines.kubernetes.kubectl import GUIDE, Kubectl
from lab.engines.kubernetes.names import checkout_selector
from lab.engines.protocol import Finding
from lab.errors import LabError

# Verb, API group, resource.
Right = tuple[str, str, str]

# What the Role of docs/kubernetes.md grants.
RIGHTS: tuple[Right, ...] = (
    *((verb, "", "pods") for verb in ("create", "get", "list", "watch", "delete")),
    ("create", "", "pods/exec"),
    ("get", "", "pods/log"),
    ("update", "", "pods/ephemeralcontainers"),
    ("list", "", "events"),
    *((verb, "batch", "jobs") for verb in ("create", "list", "delete")),
    *((verb, "networking.k8s.io", "networkpolicies") for verb in ("create", "list", "delete")),
)
# Those that an observation of a pod takes.
OBSERVING: tuple[Right, ...] = (
    ("get", "", "pods"),
    ("create", "", "pods/exec"),
    ("get", "", "pods/log"),
    ("update", "", "pods/ephemeralcontainers"),
)
_KINDS = "jobs.batch,networkpolicies.networking.k8s.io,pods"


def require_rights(kubectl: Kubectl, rights: Sequence[Right] = RIGHTS) -> None:
    """Refuse a namespace in which the lab may not do all that it needs.

    Raises:
        LabError: the missing rights, or the cluster does not answer.
    """
    namespace = find_namespace(kubectl)
    asked = [
        {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {"namespace": namespace, "verb": verb, "group": group, **_named(resource)}},
        }
        for verb, group, resource in rights
    ]
    answers = kubectl.create(asked)
    lacking = [
        f"{verb} {resource}{f'.{group}' if group else ''}"
        for (verb, group, resource), answer in zip(rights, answers, strict=True)
        if not answer["status"].get("allowed")
    ]
    if lacking:
        what = f"in the namespace '{namespace}' the lab may not: {', '.join(lacking)}"
        raise LabError(what, way_on=f"let the cluster's administrator grant it: {GUIDE} has the Role")


def _named(resource: str) -> dict[str, str]:
    name, _, part = resource.partition("/")
    return {"resource": name, **({"subresource": part} if part else {})}


def find_namespace(kubectl: Kubectl) -> str:
    """Give the namespace that is used."""
    return kubectl.namespace or kubectl("config", "view", "--minify", "--output", "jsonpath={..namespace}") or "default"


def read_versions(kubectl: Kubectl) -> dict[str, str]:
    """Give the versions of the cluster and of kubectl."""
    said = json.loads(kubectl("version", "--output", "json"))
    return {"kubernetes": said["serverVersion"]["gitVersion"], "kubectl": said["clientVersion"]["gitVersion"]}


def examine_cluster(kubectl: Kubectl) -> Iterator[Finding]:
    """Look at the cluster and at what the lab may do in it."""
    try:
        found = read_versions(kubectl)
    except LabError as error:
        yield Finding("Kubernetes", "missing", error.what.splitlines()[-1].strip(), error.way_on)
        return
    yield Finding("Kubernetes", "ok", f"{found['kubernetes']}, kubectl {found['kubectl']}")
    try:
        require_rights(kubectl)
    except LabError as error:
        yield Finding("rights in the cluster", "missing", error.what, error.way_on)
    else:
        yield Finding("rights in the cluster", "ok", f"all, in the namespace '{find_namespace(kubectl)}'")


def remove_all(kubectl: Kubectl) -> list[str]:
    """Remove all objects of this checkout's runs, at once and by force; give the names of what is gone."""
    listed = kubectl("get", _KINDS, "--selector", checkout_selector(), "--output", "name").split()
    if listed:
        now = ("--grace-period", "0", "--force", "--ignore-not-found", "--wait=true")
        kubectl("delete", _KINDS, "--selector", checkout_selector(), *now, timeout_s=120)
    return listed
