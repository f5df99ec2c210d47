"""Which names there are: what a prediction may use, checked before a run, and all figures that a run has.

A wrong name is answered with the nearest valid one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, lru_cache, partial
from itertools import product
from pathlib import Path

from analysis.database import sql
from analysis.diagnosis import identities
from analysis.diagnosis.causes import CAUSES
from analysis.diagnosis.identities import IdentityEntry
from analysis.diagnosis.joins import Hop
from analysis.evidence.jsonl import ERROR_KINDS
from analysis.evidence.k6_files import figure_name
from analysis.expressions.values import Kind, Unknown, Value, merge, unknown
from analysis.figures import (
    actions,
    client,
    declaration,
    exchanges,
    flows,
    kernel,
    kernel_events,
    ledger,
    links,
    model,
    programs,
    proxies,
)
from analysis.figures.declaration import Compute, Figure, comparable_value
from analysis.figures.run import STATISTICS, Run
from formats.role import Role

_OBSERVED: tuple[Figure, ...] = tuple(
    figure
    for module in (
        client,
        kernel,
        programs,
        proxies,
        flows,
        kernel_events,
        exchanges,
        links,
        actions,
        ledger,
    )
    for figure in module.FIGURES
)


@lru_cache(maxsize=4096)
def _find_below_identities(name: str) -> tuple[Figure, dict[str, str]] | None:
    return declaration.find_figure((*_OBSERVED, *model.FIGURES), name)


_IDENTITY_MEANINGS = {
    "holding": ("true", "Identities that hold: both observers counted the same."),
    "failed": ("false", "Identities that do not."),
    "unknown": ("unknown", "Identities with a side that is unknown."),
}


def balance_hops(run: Run) -> dict[Hop, list[IdentityEntry]]:
    """Return what must be equal on each hop, and whether it is; empty if no hop is known. Computed once for a run."""
    if run.balanced is None:
        joined = run.joined
        known = () if isinstance(joined, Unknown) else joined.hops
        value = partial(declaration.compute_value, _find_below_identities, run.without(identities.SET_ASIDE))
        run.balanced = identities.balance(known, run.raw.manifest, value)
    return run.balanced


def _count_identities(status: str) -> Compute:
    """Return how many identities have a status; while one is unknown, so is how many hold and how many fail."""

    def compute(run: Run, _found: Mapping[str, str]) -> Value:
        if isinstance(run.joined, Unknown):
            return run.joined
        balances = [each for of_hop in balance_hops(run).values() for each in of_hop]
        reasons = [unknown(f"{each.id}: {each.why}") for each in balances if each.why is not None]
        if reasons and status != "unknown":
            return merge(*reasons)
        return sum(each.holds == status for each in balances)

    return compute


_OF_IDENTITIES: tuple[Figure, ...] = tuple(
    Figure(f"ledger.identities.{name}", meaning, _count_identities(status), "derived/ledger.json")
    for name, (status, meaning) in _IDENTITY_MEANINGS.items()
)


FIGURES: tuple[Figure, ...] = (*_OBSERVED, *_OF_IDENTITIES, *model.FIGURES)

# More than the lab starts; a foreign run's knob may say any number.
_INSTANCES_MAX = 100
# Values of /proc/net/snmp that are settings or levels: a difference over the window would mean nothing.
_NO_COUNTERS = frozenset({
    "Ip.Forwarding", "Ip.DefaultTTL", "Tcp.RtoAlgorithm", "Tcp.RtoMin", "Tcp.RtoMax", "Tcp.MaxConn", "Tcp.CurrEstab",
})  # fmt: skip

# The kernel shows these by ICMP type, and only those that are not zero.
_BY_ICMP_TYPE = re.compile(r"IcmpMsg\.(In|Out)Type[0-9]+")

# A sysctl's name has the form of a counter's, which begins with a capital.
_OF_SYSCTL = re.compile(r"kernel\.[a-z0-9_]+\.net\.")


class UnknownFigure(ValueError):
    """A name that is neither a figure nor a knob of a run, and the valid name nearest to it, if any is near."""

    def __init__(self, name: str, why: str, nearest: str | None = None) -> None:
        super().__init__(why + (f"; did you mean {nearest}?" if nearest else ""))
        self.name = name
        self.nearest = nearest


@dataclass(frozen=True)
class Scope:
    """What names can refer to in a run.

    Attributes:
        path: its roles with their declarations, from the client to the backend.
        knobs: its knobs, by name, with their values.
        counters: the kernel's counters; empty if they are not known, which lets any pass.
    """

    path: Mapping[str, Role]
    knobs: Mapping[str, object]
    counters: frozenset[str]

    def roles(self) -> list[str]:
        """Return the roles, and their instances as names write them."""
        return [name for role in self.path for name in (role, *self._instances(role))]

    def _instances(self, role: str) -> list[str]:
        knob = self.path[role].counting("instances")
        count = None if knob is None else self.knobs.get(self.path[role].knob(knob))
        counted = min(count, _INSTANCES_MAX) if isinstance(count, int) else 0
        return [f"{role}_{number}" for number in range(1, counted + 1)]

    def _of_kinds(self, *kinds: str) -> list[str]:
        return [name for name, role in self.path.items() if role.kind in kinds]

    def leaves_open(self, name: str) -> bool:
        """Return whether a name is of a knob that the scenario's own script or configuration gives no value."""
        declared = (role.knob(knob) for role in self.path.values() for knob in role.knobs)
        return name not in self.knobs and name in declared

    def has(self, name: str) -> bool:
        """Return whether a name can be used."""
        try:
            self.kind_of(name)
        except UnknownFigure:
            return False
        return True

    def kind_of(self, name: str) -> Kind:
        """Return what sort of value a name has; raises UnknownFigure for one that has none."""
        if name in self.knobs:
            return _kind_of_knob(name, self.knobs[name])
        found = self.find(name)
        if found is None:
            what = f"there is no figure or knob {name}"
            if self.leaves_open(name):
                raise UnknownFigure(name, f"{what}: the scenario's own script or configuration leaves it open")
            if _OF_SYSCTL.match(name):
                hint = "an expression knows a sysctl's value only where the scenario sets it, as a knob of kernel"
                raise UnknownFigure(name, f"{what}: {hint}")
            renamed = name.replace("healed", "recovered")
            raise UnknownFigure(name, what, renamed if self.find(renamed) else nearest(name, self._all()))
        figure, parameters = found
        if figure.of_role is not None and figure.of_role not in self.path:
            raise UnknownFigure(name, f"{name}: {figure.of_role} is not on the path [{', '.join(self.path)}]")
        for parameter, value in parameters.items():
            choices = self.choices(parameter)
            if (choices or parameter == "proxy") and value not in choices and not _BY_ICMP_TYPE.fullmatch(value):
                # A path has one proxy: that one is meant.
                near = nearest(value, choices) or next((each for each in choices if parameter == "proxy"), None)
                meant = figure.name(**{**parameters, parameter: near}) if near else None
                raise UnknownFigure(name, _explain(name, parameter, value, choices), meant)
        return figure.kind

    def figures(self) -> list[Figure]:
        """Return the figures that the path has, whatever their parameters."""
        return [
            *(figure for figure in FIGURES if figure.of_role is None or figure.of_role in self.path),
            *programs.page_figures(self.path),
        ]

    def find(self, name: str) -> tuple[Figure, dict[str, str]] | None:
        """Return the figure that a name is of, and its parameters: one of every run, or of a page of the path."""
        return find(name) or declaration.find_figure(programs.page_figures(self.path), name)

    def choices(self, parameter: str) -> list[str]:
        """Return what a parameter can be; empty if it can be anything of its form."""
        roles = self.roles()
        choices = {
            "role": roles,
            "backend": [name for role in self._of_kinds("server") for name in (role, *self._instances(role))],
            "server": [name for role in self._of_kinds("proxy", "server") for name in (role, *self._instances(role))],
            "proxy": self._of_kinds("proxy"),
            "cause": [cause.figure for cause in CAUSES],
            "Counter": sorted(self.counters - _NO_COUNTERS),
            "state": sorted(kernel.STATES),
            "kind": [kind.replace("-", "_") for kind in ERROR_KINDS],
            "statistic": list(STATISTICS),
        }
        return choices.get(parameter, [])

    def _all(self) -> Iterator[str]:
        yield from self.knobs
        for figure in self.figures():
            # Without a proxy there is no name; a number can be any.
            choices = [
                self.choices(parameter) or ([] if parameter == "proxy" else ["0"]) for parameter in figure.parameters
            ]
            for values in product(*choices):
                yield figure.name(**dict(zip(figure.parameters, values, strict=True)))


def nearest(name: str, valid: Iterable[str]) -> str | None:
    """Return the valid name that was meant, whatever the case of its letters; None if none is near."""
    by_lower_case = {each.lower(): each for each in valid}
    near = get_close_matches(name.lower(), by_lower_case, n=1)
    return by_lower_case[near[0]] if near else None


def scope(path: Mapping[str, Role], knobs: Mapping[str, object]) -> Scope:
    """Return the names of a run on this machine, whose kernel says which counters there are."""
    return Scope(path, knobs, kernel_counters())


# The same few names stand in every prediction, and each is looked for in all patterns.
@lru_cache(maxsize=4096)
def find(name: str) -> tuple[Figure, dict[str, str]] | None:
    """Return the figure that a name is of, with its parameters; the first of those it could be."""
    return declaration.find_figure(FIGURES, name)


@cache
def kernel_counters(folder: Path = Path("/proc/net")) -> frozenset[str]:
    """Return the counters of this machine's kernel, which containers share; empty where there is none to ask."""
    names: set[str] = set()
    for file in ("netstat", "snmp"):
        try:
            lines = (folder / file).read_text("ascii").splitlines()
        except OSError:
            continue
        # Two lines for each table: `TcpExt: <names>`, then `TcpExt: <values>`.
        for line in lines[::2]:
            table, _, columns = line.partition(":")
            names.update(f"{table}.{column}" for column in columns.split())
    return frozenset(names)


def _kind_of_knob(name: str, value: object) -> Kind:
    comparable = comparable_value(name, value)
    if comparable is None:
        raise UnknownFigure(name, f"{name} has no value that an expression can compare")
    if isinstance(comparable, str):
        return Kind.TEXT
    return Kind.TRUTH if isinstance(comparable, bool) else Kind.NUMBER


def _explain(name: str, parameter: str, value: str, choices: list[str]) -> str:
    if parameter == "proxy":
        return f"{name}: {value} is not a proxy on the path"
    if parameter in ("role", "backend", "server"):
        return f"{name}: {value} is not one of {', '.join(choices)}"
    if parameter == "Counter" and value in _NO_COUNTERS:
        return f"{name}: {value} is a setting or a level, not a counter that grows"
    return f"{name}: there is no {parameter.lower()} {value}"


def figure_names(run: Run) -> Iterator[str]:
    """Yield every name, once, in the order of the catalogue.

    If a role has one instance, only the role is named: the instance would have the same figures again. If a parameter
    can be any number, such as an error code, the values that occurred are named.
    """
    manifest = run.raw.manifest
    counters = frozenset(name for samples in run.raw.samples.values() for name in samples.counters)
    scope = Scope(manifest.roles, {name: knob.value for name, knob in manifest.knobs.items()}, counters)
    for figure in scope.figures():
        if figure.pattern.startswith("events.") and not run.raw.records.kernel_events:
            continue
        if figure.pattern.startswith("link.") and not manifest.round_trips:
            continue
        if figure.pattern.startswith(actions.MOVED) and not any(one.do == "dns" for one in manifest.actions):
            continue
        if figure.pattern.startswith(actions.ENDED) and not any(one.is_ending for one in manifest.actions):
            continue
        # Where requests are known, these say the same in other words.
        if figure.pattern.startswith(("ledger.connections.", exchanges.PREFIX)) and exchanges.records_requests(run):
            continue
        choices = [_choices(run, scope, figure, parameter) for parameter in figure.parameters]
        for values in product(*choices):
            parameters = dict(zip(figure.parameters, values, strict=True))
            if _exists(run, parameters):
                yield figure.name(**parameters)


def _choices(run: Run, scope: Scope, figure: Figure, parameter: str) -> list[str]:
    if parameter in ("code", "status"):
        return [str(code) for code in _occurring(run, figure.pattern)]
    if parameter == "sysctl":
        return sorted({name for read in run.raw.manifest.sysctls.values() for name in read})
    if parameter in ("request", "group"):
        return _named(run, parameter)
    if parameter == "queue":
        most = max(map(kernel.count_queues, run.raw.samples.values()), default=0)
        return [str(number) for number in range(1, most + 1)]
    if parameter in ("check", "threshold"):
        return sorted(_judged(run, parameter))
    found = scope.choices(parameter)
    if figure.pattern.startswith(flows.TLS_PREFIX):
        secured = {one for name, role in scope.path.items() if role.tls for one in run.raw.manifest.of_role(name)}
        found = [name for name in found if secured & set(run.instances(name))]
    if figure.pattern.startswith(actions.ENDED):
        ended = {one.instance for one in run.raw.manifest.actions if one.is_ending}
        found = [name for name in found if ended & set(run.instances(name))]
    if parameter == "Counter":
        # Gauges stand among the sampled counters, under names that no counter has.
        return [name for name in found if figure.match(figure.name(role="k6", Counter=name)) is not None]
    single = {
        instances[0].replace("-", "_") for instances in run.raw.manifest.instances.values() if len(instances) == 1
    }
    # A role of one instance by the role's own name, as nginx, is not a repetition.
    repeated = single - set(run.raw.manifest.instances)
    return [name for name in found if name not in repeated]


# Without names of its own, a script's requests have their URLs' names: there can be thousands.
_NAMES_MAX = 50


def _has_own_script(run: Run) -> bool:
    return run.raw.manifest.value_of("load.workload") == "script"


def _named(run: Run, parameter: str) -> list[str]:
    """Return the names or groups of the requests of a script of one's own; none if there are too many to be listed."""
    if isinstance(run.joined, Unknown) or not _has_own_script(run):
        return []
    names = {figure_name(row["given"]) for row in client.named(run.raw.records, parameter) if row["given"]}
    return sorted(names) if len(names) <= _NAMES_MAX else []


def _judged(run: Run, parameter: str) -> set[str]:
    """Return the checks or thresholds of a user's own script; those of the lab's repeat client.requests.ok."""
    if not _has_own_script(run):
        return set()
    judged = [client.script_results for client in run.raw.clients.values() if client.script_results is not None]
    return {name for each in judged for name in (each.checks if parameter == "check" else each.thresholds)}


def _exists(run: Run, parameters: Mapping[str, str]) -> bool:
    """Return whether a role has a counter, which the kernel may show only if it is not zero, or so many queues."""
    samples = run.raw.samples
    if "queue" in parameters:
        found = [kernel.count_queues(samples[each]) for each in run.instances(parameters["role"])]
        return int(parameters["queue"]) <= max(found, default=0)
    if "Counter" not in parameters:
        return True
    return any(parameters["Counter"] in samples[each].counters for each in run.instances(parameters["role"]))


def _occurring(run: Run, pattern: str) -> list[int]:
    if pattern in _CODES:
        return sorted(row["number"] for row in run.raw.records.rows(_CODES[pattern]))
    rows = [] if isinstance(run.joined, Unknown) else run.joined.rows(sql(__name__, "error_numbers"))
    return sorted(row["number"] for row in rows)


# Figures with a parameter that any number fits → the numbers that occurred.
_CODES = {
    "client.requests.error.<code>": "SELECT DISTINCT error_code AS number FROM requests WHERE number <> 0",
    "client.requests.status.<status>": "SELECT DISTINCT status AS number FROM requests WHERE number > 0",
    "access.<proxy>.status.<status>": "SELECT DISTINCT status AS number FROM access WHERE number > 0",
}
