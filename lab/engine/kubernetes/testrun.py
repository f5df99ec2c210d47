"""The clients as a TestRun of k6-operator: made from the pod that the lab would make, as far as a TestRun can say it.

The operator makes a Job for each runner, whose pod has the operator's own command `k6 run …`. What it lacks is made up:

- Its starter lets the runners go one after the other. It gets an image in which that command does nothing; the lab lets
  all go together.
- It knows no container beside k6 but those of the start. The collector is one of these, and goes on (`restartPolicy`).
- A runner's pod ends with k6, and its files with it. So the name `k6` leads to a script that runs k6 and stays.
- It gives all runners one environment. Which of them it is, each learns from the name of its Job.
- It knows no names of hosts. The targets are given by address.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from lab.engine.kubernetes import held, names
from lab.engine.kubernetes.kubectl import GUIDE, Kubectl
from lab.engine.kubernetes.names import COLLECTOR, HOLD, INSTANCE_LABEL, ROLE, RUNNER
from lab.engine.kubernetes.watch import Watch
from lab.errors import LabError, Problem
from lab.scenario.effective import Effective

# Where the operator asks k6 whether it is ready.
API_PORT = 6565
API = {"apiVersion": "k6.io/v1alpha1", "kind": "TestRun"}
# The same as k6/connlab-k6 has it, which the operator's command takes the place of.
ARGUMENTS = "--no-color --no-usage-report --out connlab=/raw --log-output file=/raw/k6.log"
_SCRIPTS = "/usr/share/connlab-k6/workloads"
_PROGRAMS, _PATH = "/connlab", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_INSTALL = f'printf "%s" "$1" >{_PROGRAMS}/k6 && chmod 755 {_PROGRAMS}/k6'
# What is of one runner alone.
_OF_ONE = ("CONNLAB_ROLE", "CONNLAB_INSTANCE", "CONNLAB_SEGMENT")
_JOB = {"name": "CONNLAB_JOB", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['job-name']"}}}
_READY_S = 300
_AGAIN_S = 1


def cannot(effective: Effective) -> Iterator[Problem]:
    """Give what a configuration asks for that a TestRun cannot."""
    if effective.scenario.knobs.load.dashboard:
        way_on = "leave it out, or leave out --clients testrun"
        what = "k6's own report needs the lab's own start of k6, and a TestRun has the operator's"
        yield Problem(what, effective.where_knob("load.dashboard"), way_on)


def trial() -> dict[str, Any]:
    """Give a TestRun that shows whether the cluster has the kind, with the newest fields that the lab needs."""
    begin = [{"name": COLLECTOR, "image": COLLECTOR, "restartPolicy": "Always"}]
    spec = {
        "parallelism": 1,
        "script": {"localFile": f"{_SCRIPTS}/users.js"},
        "initializer": {"disabled": True},
        "runner": {"initContainers": begin},
    }
    return {**API, "metadata": {"name": "connlab-trial"}, "spec": spec}


def render(run_id: str, pod: Mapping[str, Any], count: int, hosts: Mapping[str, str]) -> dict[str, Any]:
    """Give a run's TestRun.

    Args:
        run_id: of the run.
        pod: that of the first client, as the lab would make it.
        count: the number of clients.
        hosts: the addresses of the instances behind them, by their names.
    """
    spec, of_pod = pod["spec"], pod["metadata"]
    collector, client, hold = (_container(spec, name) for name in (COLLECTOR, ROLE, HOLD))
    role = of_pod["labels"]["connlab.role"]
    settings = {one["name"]: one["value"] for one in client["env"]}
    policy = {"imagePullPolicy": client["imagePullPolicy"]}
    alike = {name: value for name, value in of_pod["labels"].items() if name != INSTANCE_LABEL}
    programs = {"name": "programs", "mountPath": _PROGRAMS}
    return {
        **API,
        "metadata": {
            "name": _name(run_id),
            "labels": names.labels(run_id),
            **{name: value for name, value in of_pod.items() if name == "ownerReferences"},
        },
        "spec": {
            "parallelism": count,
            "script": {"localFile": f"{_SCRIPTS}/{settings['CONNLAB_WORKLOAD'].replace('_', '-')}.js"},
            "arguments": ARGUMENTS,
            "initializer": {"disabled": True},
            # There is no curl in it.
            "starter": {
                "image": collector["image"],
                **policy,
                "automountServiceAccountToken": "false",
                "containerSecurityContext": hold["securityContext"],
            },
            **({"ports": collector["ports"]} if "ports" in collector else {}),
            "runner": {
                "image": client["image"],
                **policy,
                "automountServiceAccountToken": "false",
                "metadata": {"labels": alike | {INSTANCE_LABEL: role}},
                "affinity": spec["affinity"],
                "securityContext": spec["securityContext"],
                # One for all of its containers. k6 runs as a user who gains no capability by it.
                "containerSecurityContext": collector["securityContext"],
                "env": [
                    _JOB,
                    {"name": "PATH", "value": f"{_PROGRAMS}:{_PATH}"},
                    *_by_address(_without(client["env"]), hosts),
                ],
                "resources": client["resources"],
                # The operator's own would ask k6 over the network of the run.
                "livenessProbe": _probe(3600),
                "readinessProbe": _probe(10),
                "initContainers": [
                    {
                        "name": "programs",
                        "image": collector["image"],
                        "command": held.command(_INSTALL, _wrapper(role)),
                        "volumeMounts": [programs],
                        "resources": hold["resources"],
                    },
                    {
                        "name": COLLECTOR,
                        "image": collector["image"],
                        "restartPolicy": "Always",
                        "command": held.command(
                            held.script(before=_which("CONNLAB_ROLE", role), after_failure=False), "collector", "run"
                        ),
                        "env": [_JOB, *_without(collector["env"])],
                        "volumeMounts": collector["volumeMounts"],
                        "resources": collector["resources"],
                    },
                ],
                "volumes": [*spec["volumes"], {"name": "programs", "emptyDir": {}}],
                "volumeMounts": [*client["volumeMounts"], {**programs, "readOnly": True}],
            },
        },
    }


def _name(run_id: str) -> str:
    """Name a run's TestRun; the operator's names begin with it, and labels and host names are short."""
    return f"connlab-{hashlib.sha256(run_id.encode()).hexdigest()[:12]}"


def _container(spec: Mapping[str, Any], name: str) -> dict[str, Any]:
    return next(dict(one) for one in spec["containers"] if one["name"] == name)


def _without(listed: Iterable[dict[str, str]]) -> list[dict[str, str]]:
    return [one for one in listed if one["name"] not in _OF_ONE]


def _by_address(listed: Iterable[dict[str, str]], hosts: Mapping[str, str]) -> Iterator[dict[str, str]]:
    for one in listed:
        value = one["value"]
        if one["name"] == "CONNLAB_TARGETS":
            for name, address in hosts.items():
                value = value.replace(f"//{name}:", f"//{f'[{address}]' if ':' in address else address}:")
        yield {"name": one["name"], "value": value}


def _which(variable: str, role: str) -> str:
    """Give the line that says in a runner which instance it is: its Job's name ends with its number."""
    return f'export {variable}="{role}-${{CONNLAB_JOB##*-}}"\n'


def _wrapper(role: str) -> str:
    """Give what stands for `k6` in a runner: k6, in a shell that stays until the files are out."""
    instance = _which("CONNLAB_INSTANCE", role)
    before = f'#!/bin/sh\n{instance}export PATH={_PATH}\nset -- k6 "$@"\n'
    return held.script(before=before, after_failure=True)


def _probe(period_s: int) -> dict[str, Any]:
    return {"exec": {"command": ["true"]}, "periodSeconds": period_s}


def await_collectors(kubectl: Kubectl, watch: Watch, instances: Iterable[str]) -> None:
    """Wait until the collectors of runners sample and capture: no probe of the operator's asks them.

    Raises:
        LabError: one does not.
    """
    for instance in instances:
        asked = ("sh", "-c", "until collector healthy 2>/dev/null; do sleep 0.1; done")
        kubectl("exec", watch.name(instance), "--container", COLLECTOR, "--", *asked, timeout_s=_READY_S)


def follow_ends(kubectl: Kubectl, watch: Watch, instances: Iterable[str]) -> None:
    """Let a watch know how k6 ends in each runner: its container stays, so the cluster says nothing of it."""
    for one in instances:
        threading.Thread(target=_follow_end, args=(kubectl, watch, one), name=f"end-of-{one}", daemon=True).start()


def _follow_end(kubectl: Kubectl, watch: Watch, instance: str) -> None:
    asked = ("exec", watch.name(instance), "--container", RUNNER, "--", *held.awaited_exit_code())
    while watch.listens and watch.exit_code(instance) is None:
        # Someone between here and the node may end a command that says nothing for long.
        try:
            said = "".join(kubectl.follow(*asked)).strip()
        except LabError:
            return
        if said.isdecimal():
            watch.tell_end(instance, RUNNER, int(said))
            return
        time.sleep(_AGAIN_S)


def way_on(run_id: str) -> str:
    """Say where to look if no runner comes."""
    return f"see what the operator says: 'kubectl describe testrun {_name(run_id)}'; {GUIDE} has what it needs"
