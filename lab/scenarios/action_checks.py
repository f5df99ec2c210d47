"""What the lab can do to servers and links while the load runs, and when."""

from collections.abc import Collection, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import get_args

from analysis.formatting import format_number
from formats.knob_types import format_duration
from formats.manifest import BESIDE_SERVERS, ActionKind
from lab.errors import Problem
from lab.reading.validation_messages import did_you_mean
from lab.scenarios import dns_names, network
from lab.scenarios.forecast import expected_load_s
from lab.scenarios.model import Action
from lab.scenarios.resolved import ResolvedScenario
from lab.scenarios.topology import Topology, topology_of

# What must stand beside an action, with an example; and what else may, besides `at`, `do` and `instance`.
_NEEDS: dict[ActionKind, dict[str, str]] = {
    "pause": {"for": "for: 2s"},
    "cpu": {"for": "for: 2s", "cpus": "cpus: 0.25"},
    "link": {"for": "for: 2s", "to": "to: nginx", "change": "change: {loss: 20%}"},
    "dns": {"name": "name: api"},
    "filter": {"for": "for: 2s", "answer": "answer: none"},
}
_MAY: dict[ActionKind, tuple[str, ...]] = {"restart": ("for", "grace"), "drain": ("grace",)}
# What the lab also does to who makes the load.
_ALSO_OF_CLIENTS = ("link", "cpu")
# What ends a server until it is started again.
_ENDS = ("stop", "drain")
# What must end on an instance before the next of the same kind; names move at once.
_OF_SERVERS: list[ActionKind] = [one for one in get_args(ActionKind) if one not in BESIDE_SERVERS]
_OF_LINKS: list[ActionKind] = ["link"]
_OF_FILTERS: list[ActionKind] = ["filter"]
_DETAILS = {"for": "lasts", "grace": "grace", "cpus": "cpus", "to": "to", "change": "change", "name": "name",
            "answer": "answer"}  # fmt: skip


def action_problems(resolved: ResolvedScenario) -> Iterator[Problem]:
    """Yield everything about the actions that cannot be done; the path is known to be sound."""
    actions = resolved.scenario.actions
    if not actions:
        return
    topology = topology_of(resolved)
    end_ms, knob = _load_ends(resolved)
    for index, action in enumerate(actions):
        yield from _instance(resolved, topology, index, action)
        if action.at >= end_ms:
            what = f"the action comes at {format_duration(action.at)}, but then the load is over: {knob}"
            yield Problem(what, resolved.where("actions", index, "at"), "act sooner, or let the load last longer")
        yield from _details(resolved, index, action)
        if action.do == "link" and action.instance in topology.all:
            yield from _link(resolved, topology.role_of(action.instance), index, action)
        if action.do == "dns":
            yield from dns_names.move_problems(resolved, topology, index)
    for instance in dict.fromkeys(one.instance for one in actions):
        for deeds in (_OF_SERVERS, _OF_LINKS, _OF_FILTERS):
            yield from _one_after_the_other(resolved, instance, deeds)
        yield from _graces(resolved, topology, instance)


def _instance(resolved: ResolvedScenario, topology: Topology, index: int, action: Action) -> Iterator[Problem]:
    where = resolved.where("actions", index, "instance")
    known = topology.all if action.do in _ALSO_OF_CLIENTS else topology.servers
    if action.instance in topology.clients and action.do not in _ALSO_OF_CLIENTS:
        what = f"{action.instance} makes the load, and is not a server"
        yield Problem(what, where, f"act on {' or '.join(topology.servers)}")
    elif action.instance not in known:
        hint = did_you_mean(action.instance, known) or f"the servers are {', '.join(topology.servers)}"
        yield Problem(f"there is no server '{action.instance}' on the path", where, hint)
    else:
        role = topology.roles[topology.role_of(action.instance)]
        if action.do in ("restart", "start") and role.once:
            yield Problem(
                f"{action.instance} cannot be started again within a run: {role.once}", where, "pause or stop it"
            )
        if action.do == "reload" and role.reload is None:
            what = f"the lab knows no way to let {role.display_name} take its configuration anew while it runs"
            yield Problem(what, where, "write do: restart")


def _details(resolved: ResolvedScenario, index: int, action: Action) -> Iterator[Problem]:
    """Check what stands beside an action: what it needs is there, and nothing that it does not read."""
    where = resolved.where("actions", index, "do")
    needs = _NEEDS.get(action.do, {})
    for key, field in _DETAILS.items():
        given = getattr(action, field)
        if key in needs and (given is None or (key == "for" and not given)):
            what = "a duration" if key == "for" else f"'{key}'"
            yield Problem(f"the action '{action.do}' needs {what}", where, f"write {needs[key]}")
        elif given is not None and key not in needs and key not in _MAY.get(action.do, ()):
            if action.do in _ENDS and key == "for":
                what = f"a {action.do} lasts until the server is started again, so it takes no 'for'"
                yield Problem(what, where, "leave 'for' out; write do: restart, or add an action do: start")
            else:
                yield Problem(f"the action '{action.do}' takes no '{key}'", where, "leave it out")


def _link(resolved: ResolvedScenario, sender: str, index: int, action: Action) -> Iterator[Problem]:
    links, to = resolved.scenario.network, action.to
    if to is None or action.change is None:
        return
    if to not in links.get(sender, {}):
        what = f"the action changes the link from {sender} to {to}, and the scenario has none"
        hint = f"declare it: network: {{{sender}: {{{to}: {{}}}}}}"
        yield Problem(what, resolved.where("actions", index, "to"), hint)
        return
    changed = links[sender][to].model_copy(update=action.change.model_dump(exclude_unset=True))
    for found in network.link_problems(list(resolved.scenario.path), {sender: {to: changed}}):
        yield replace(found, where=resolved.where("actions", index, "change"))


def _graces(resolved: ResolvedScenario, topology: Topology, instance: str) -> Iterator[Problem]:
    """Yield actions that give one server two graces: a program with a grace of its own gets it at its start."""
    of_instance = [
        (index, one) for index, one in enumerate(resolved.scenario.actions) if one.instance == instance and one.grace
    ]
    if instance not in topology.all or not topology.roles[topology.role_of(instance)].grace:
        return
    for (_, first), (index, second) in pairwise(of_instance):
        if first.grace != second.grace:
            what = f"{instance} has one grace for a whole run, and two actions give it different ones"
            yield Problem(what, resolved.where("actions", index, "grace"), "give both actions the same grace")


def _one_after_the_other(resolved: ResolvedScenario, instance: str, deeds: Collection[ActionKind]) -> Iterator[Problem]:
    actions = resolved.scenario.actions
    indices = [index for index, one in enumerate(actions) if one.instance == instance and one.do in deeds]
    indices.sort(key=lambda index: actions[index].at)
    if indices and actions[indices[0]].do == "start":
        what = f"{instance} runs at that time, and is not to be started"
        yield Problem(what, resolved.where("actions", indices[0], "do"), "stop it first, or leave this action out")
    for before, after in pairwise(indices):
        first, second = actions[before], actions[after]
        where = resolved.where("actions", after, "at")
        if first.do in _ENDS and second.do != "start":
            what = f"an earlier action stops {instance}, and nothing has started it again by then"
            yield Problem(what, where, "start it first (do: start), or leave one of the two out")
        elif first.do not in _ENDS and second.do == "start":
            what = f"{instance} runs at that time, and is not to be started"
            yield Problem(what, resolved.where("actions", after, "do"), "stop it first, or leave this action out")
        elif second.at <= first.at + (first.lasts or 0) + (first.grace or 0):
            yield Problem(f"another action on {instance} still lasts at that time", where, "let it end first")


def _load_ends(resolved: ResolvedScenario) -> tuple[float, str]:
    """Return when the load is over at the latest, in ms as far as that is known, and what says so."""
    load = resolved.scenario.knobs.load
    if load.workload == "spike":
        return load.duration, f"load.duration is {format_duration(load.duration)}"
    undisturbed = resolved.scenario.model_copy(update={"actions": []})
    lasts_s = expected_load_s(replace(resolved, scenario=undisturbed))
    if lasts_s is None:
        return load.max_duration, f"load.max_duration is {format_duration(load.max_duration)}"
    return 1000 * lasts_s, f"it takes about {format_number(lasts_s)} s"
