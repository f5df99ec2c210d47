"""What a scenario asks for that no cluster can give: said before the run, with the reason and a way on.

What one cluster forbids and another one allows, it says itself (lab.engines.kubernetes.startup).
"""

import re
from collections import Counter
from collections.abc import Iterator
from graphlib import CycleError

from lab.engines.kubernetes.carried_files import TooLarge
from lab.engines.kubernetes.pods import Pods
from lab.errors import Problem
from lab.scenarios.client_addresses import client_addresses

_ELSEWHERE = "run it with --engine compose"
# Actions after which a program is started anew.
_ANEW = ("restart", "start")


def cluster_problems(pods: Pods) -> Iterator[Problem]:
    """Yield why the pods of a scenario cannot be, or not be what it asks for."""
    yield from _of_addresses(pods)
    yield from _of_names(pods)
    yield from _of_actions(pods)
    yield from _of_services(pods)
    yield from _of_volumes(pods)
    yield from _of_files(pods)
    try:
        pods.order()
    except CycleError as error:
        ring = " → ".join(dict.fromkeys(map(str, error.args[1])))
        what = f"each of {ring} waits for the next one, and a pod knows only what was started before it"
        yield Problem(what, pods.parts.resolved.where("services"), f"leave one out of depends_on, or {_ELSEWHERE}")


def _of_addresses(pods: Pods) -> Iterator[Problem]:
    resolved, topology = pods.parts.resolved, pods.parts.topology
    if client_addresses(resolved, topology).of_instances:
        where = resolved.where("load", "url" if topology.url and topology.url.address else "ip_family")
        yield Problem("clients come to the addresses that the cluster gives its pods", where, _ELSEWHERE)
    for instance in topology.second_names:
        knob = f"{topology.role_of(instance)}.addresses"
        what = f"a pod has one address, and {knob} asks for a second one for {instance}"
        yield Problem(what, resolved.where_knob(knob), _ELSEWHERE)


def _of_names(pods: Pods) -> Iterator[Problem]:
    resolved, topology = pods.parts.resolved, pods.parts.topology
    if resolved.scenario.names:
        yield Problem("names that move do not run on Kubernetes yet", resolved.where("names"), _ELSEWHERE)
    elif "nginx" in topology.instances and resolved.number("nginx.resolver_valid"):
        what = "nginx.resolver_valid is set, and the cluster's name server does not know a run's servers"
        yield Problem(what, resolved.where_knob("nginx.resolver_valid"), _ELSEWHERE)


def _of_actions(pods: Pods) -> Iterator[Problem]:
    resolved, topology = pods.parts.resolved, pods.parts.topology
    for index, action in enumerate(resolved.scenario.actions):
        where = resolved.where("actions", index, "do")
        if action.do == "cpu":
            what = "the action 'cpu' takes a limit away again, and a cluster takes none from a container that runs"
            yield Problem(what, where, _ELSEWHERE)
        elif action.do == "filter":
            yield Problem("the action 'filter' does not run on Kubernetes yet", where, _ELSEWHERE)
        elif (
            action.do in _ANEW and action.instance in topology.all and (alone := _mounted_alone(pods, action.instance))
        ):
            what = f"{action.instance} cannot be started anew on a cluster, for the file {alone[0]} is mounted alone"
            yield Problem(what, where, f"mount the file's folder, or {_ELSEWHERE}")


def _mounted_alone(pods: Pods, instance: str) -> list[str]:
    """Return the files that a container added to a pod cannot have: the cluster gives it whole volumes alone."""
    made = pods.container(instance)
    return [*(one.target for one in made.mounts if one.kind == "host" and one.source.is_file()), *made.files]


def _of_services(pods: Pods) -> Iterator[Problem]:
    resolved = pods.parts.resolved
    for role in dict.fromkeys(map(pods.role_of, pods.names)):
        service = resolved.registry.services.get(role)
        if service is None:
            continue
        if service.user not in (None, "image") and not re.fullmatch(r"[0-9]+(:[0-9]+)?", service.user):
            what = f"a cluster knows a container's user by number, and {role} runs as '{service.user}'"
            hint = "write the number, or 'image' where the image has this user itself"
            yield Problem(what, resolved.where("services", role, "user"), hint)
        if service.ulimits:
            what = (
                f"a cluster sets no limits of a container's processes, and {role} asks for {', '.join(service.ulimits)}"
            )
            hint = f"leave ulimits out: the nodes' own stand, or {_ELSEWHERE}"
            yield Problem(what, resolved.where("services", role, "ulimits"), hint)


def _of_volumes(pods: Pods) -> Iterator[Problem]:
    """Yield the volumes that several containers are to share: each pod has its own."""
    resolved = pods.parts.resolved
    used = [(mount.volume, name) for name in pods.names for mount in pods.container(name).mounts if mount.volume]
    for volume, times in Counter(volume for volume, _ in used).items():
        if times > 1:
            names = [name for one, name in used if one == volume]
            what = f"{' and '.join(names)} share the volume '{volume}', and pods of a run share none"
            where = resolved.where("services", pods.role_of(names[0]), "volumes")
            yield Problem(what, where, f"give each its own, or {_ELSEWHERE}")


def _of_files(pods: Pods) -> Iterator[Problem]:
    resolved = pods.parts.resolved
    for role, name in {pods.role_of(name): name for name in pods.names}.items():
        is_client = name in pods.parts.topology.clients
        of_server = ("services", role, "volumes") if role in resolved.registry.services else (role, "config")
        where = resolved.where("load") if is_client else resolved.where(*of_server)
        try:
            pods.carried(name)
        except TooLarge as error:
            what = f"{role} reads more files than a cluster should keep for a run: {error}"
            narrower = "name a smaller folder (load.root)" if is_client else "mount less"
            yield Problem(what, where, f"{narrower}, bring it in an image, or {_ELSEWHERE}")
        except OSError as error:
            what = f"the files that {role} reads cannot be carried: {error.filename}: {error.strerror}"
            yield Problem(what, where, "let this user read them")
