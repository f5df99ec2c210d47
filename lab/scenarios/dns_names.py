"""Names that the lab may move from one server to another while the load runs: `names:` in a scenario."""

from collections.abc import Iterator

from lab.errors import Problem
from lab.reading.validation_messages import did_you_mean
from lab.scenarios.model import Action, Scenario
from lab.scenarios.resolved import ResolvedScenario
from lab.scenarios.topology import Topology

KEY = "names"


def led_to(scenario: Scenario, action: Action) -> str | None:
    """Return the instance to which a name leads before an action moves it; None if the action moves none."""
    if action.do != "dns" or action.name is None:
        return None
    before = [one for one in scenario.actions if one.do == "dns" and one.name == action.name and one.at < action.at]
    return max(before, key=lambda one: one.at).instance if before else scenario.names.get(action.name)


def name_problems(resolved: ResolvedScenario, topology: Topology) -> Iterator[Problem]:
    """Yield what is wrong with the names that may move; the path is known to be sound."""
    taken = {host for one in topology.all for host in topology.host_names(one)} | {*topology.needed, "localhost"}
    for name, instance in resolved.scenario.names.items():
        where = resolved.where(KEY, name)
        if instance not in topology.servers:
            hint = did_you_mean(instance, topology.servers) or f"the servers are {', '.join(topology.servers)}"
            yield Problem(f"the name {name} leads to {instance}, and there is no such server on the path", where, hint)
            continue
        if name in taken:
            yield Problem(f"the name {name} is taken: a server of the path has it", where, "choose another one")
        role = topology.role_of(instance)
        in_front = list(topology.instances)[list(topology.instances).index(role) - 1]
        if topology.roles[in_front].kind == "client":
            what = f"the name {name} leads to {instance}, which clients reach by its own name"
            yield Problem(what, where, "name a server behind a proxy, or behind a service")
        elif in_front in resolved.scenario.configurations:
            what = (
                f"the name {name} leads to {instance}, and a configuration of your own says how {in_front} reaches it"
            )
            yield Problem(what, where, f"leave {in_front}'s configuration to the lab, and set its knobs")


def resolver_problems(resolved: ResolvedScenario, topology: Topology) -> Iterator[Problem]:
    """Yield what nginx cannot do while it asks for a server's name again; the path is known to be sound."""
    if "nginx" not in topology.instances or "nginx" in resolved.scenario.configurations:
        return
    knob, servers = "nginx.resolver_valid", topology.behind("nginx")
    if not resolved.number(knob):
        return
    if len(servers) != 1:
        what = f"{knob} is set, so nginx asks for one server's name again, and behind it are {len(servers)} servers"
        yield Problem(what, resolved.where_knob(knob), f"declare one name for them: {KEY}: {{api: …}}")
    if resolved.number("nginx.upstream_keepalive"):
        what = f"{knob} is set, so nginx keeps no connections to its servers, and nginx.upstream_keepalive is above 0"
        yield Problem(what, resolved.where_knob("nginx.upstream_keepalive"), "leave one of the two out")


def move_problems(resolved: ResolvedScenario, topology: Topology, index: int) -> Iterator[Problem]:
    """Yield what is wrong with an action that moves a name."""
    action, known = resolved.scenario.actions[index], resolved.scenario.names
    if action.name is None or action.instance not in topology.servers:
        return
    if action.name not in known:
        hint = did_you_mean(action.name, known) or f"declare it: names: {{{action.name}: {action.instance}}}"
        what = f"the action moves the name {action.name}, and the scenario has none of that name"
        yield Problem(what, resolved.where("actions", index, "name"), hint)
        return
    first, where = known[action.name], resolved.where("actions", index, "instance")
    if first in topology.servers and topology.role_of(first) != topology.role_of(action.instance):
        others = [one for one in topology.instances[topology.role_of(first)] if one != first]
        hint = f"name {' or '.join(others)}" if others else f"set {topology.role_of(first)}.instances to 2"
        yield Problem(f"the name {action.name} leads to {first}, and {action.instance} is another role", where, hint)
    elif led_to(resolved.scenario, action) == action.instance:
        yield Problem(f"the name {action.name} leads to {action.instance} already", where, "name another instance")
