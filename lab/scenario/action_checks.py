"""What must hold of a scenario's actions, so that each can be done, and does what it says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from analysis.formatting import number
from formats.durations import format_duration
from lab.errors import Problem
from lab.reading.nearest import did_you_mean
from lab.scenario.effective import Effective
from lab.scenario.fields import Action
from lab.scenario.topology import topology_of


def action_problems(effective: Effective) -> Iterator[Problem]:
    """Give everything about the actions that cannot be done; the path is known to be sound."""
    actions = effective.scenario.actions
    if not actions:
        return
    topology = topology_of(effective)
    end_ms, knob = _load_ends(effective)
    for index, action in enumerate(actions):
        where = effective.where("actions", index, "instance")
        if action.instance in topology.clients:
            yield Problem(
                f"{action.instance} makes the load, and is not a server",
                where,
                f"act on {' or '.join(topology.servers)}",
            )
        elif action.instance not in topology.servers:
            hint = did_you_mean(action.instance, topology.servers) or f"the servers are {', '.join(topology.servers)}"
            yield Problem(f"there is no server '{action.instance}' on the path", where, hint)
        elif action.do == "restart" and (why := topology.roles[topology.role_of(action.instance)].once):
            yield Problem(f"{action.instance} cannot be started again within a run: {why}", where, "pause or stop it")
        if action.at >= end_ms:
            what = f"the action comes at {format_duration(action.at)}, but then the load is over: {knob}"
            yield Problem(what, effective.where("actions", index, "at"), "act sooner, or let the load last longer")
        yield from _duration(effective, index, action)
    for instance in dict.fromkeys(one.instance for one in actions):
        yield from _one_after_the_other(effective, instance)


def _duration(effective: Effective, index: int, action: Action) -> Iterator[Problem]:
    where = effective.where("actions", index, "do")
    if action.do == "pause" and not action.lasts:
        yield Problem("a pause needs a duration", where, "write for: 2s")
    if action.do == "stop" and action.lasts is not None:
        what = "a stop lasts until the end of the run, so it takes no 'for'"
        yield Problem(what, where, "leave 'for' out, or write do: restart")


def _one_after_the_other(effective: Effective, instance: str) -> Iterator[Problem]:
    indices = [index for index, one in enumerate(effective.scenario.actions) if one.instance == instance]
    indices.sort(key=lambda index: effective.scenario.actions[index].at)
    for before, after in pairwise(indices):
        first, second = effective.scenario.actions[before], effective.scenario.actions[after]
        where = effective.where("actions", after, "at")
        if first.do == "stop":
            what = f"an earlier action stops {instance} until the end of the run"
            yield Problem(what, where, "leave one of the two out")
        elif second.at <= first.at + (first.lasts or 0):
            yield Problem(f"another action on {instance} still lasts at that time", where, "let it end first")


def _load_ends(effective: Effective) -> tuple[float, str]:
    """Give when the load is over at the latest, in ms as far as that is known, and what says so."""
    # The model is loaded only for scenarios that need it here.
    from lab.scenario import foreseen  # noqa: PLC0415

    load = effective.scenario.knobs.load
    if load.workload == "spike":
        return load.duration, f"load.duration is {format_duration(load.duration)}"
    undisturbed = effective.scenario.model_copy(update={"actions": []})
    expected_s = foreseen.expected_s(replace(effective, scenario=undisturbed))
    if expected_s is None:
        return load.max_duration, f"load.max_duration is {format_duration(load.max_duration)}"
    return 1000 * expected_s, f"it takes about {number(expected_s)} s"
