"""Checks a scenario's expressions before a run: their grammar, and that a run of it can tell what they name."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from itertools import pairwise

from pydantic import ValidationError

from analysis import figures
from analysis.expressions import Expression, ExpressionError, parse
from analysis.expressions.tree import Chain, Literal, Name
from analysis.expressions.values import Kind
from analysis.figures import Scope
from analysis.verdicts.predictions import check as check_expression
from analysis.verdicts.predictions import check_known, check_prediction
from formats.predictions import Part, Published
from lab.errors import Problem
from lab.reading.validation_messages import did_you_mean
from lab.scenarios import generators
from lab.scenarios.forecast import applies
from lab.scenarios.model import OwnLoad
from lab.scenarios.resolved import ResolvedScenario, knob_sentence

# Figures of a client's own record, by what their names begin with, and what else tells it; the rest of a name follows.
_INSTEAD = (
    ("client.requests.total", "flows.{server}.requests.total"),
    ("client.requests.total", "access.{proxy}.requests"),
    ("client.requests.ok", "access.{proxy}.status.2xx"),
    ("client.requests.failed", "ledger.connections.{server}.failed"),
    ("client.requests.status.", "access.{proxy}.status.{rest}"),
    ("client.latency_ms.", "flows.{server}.request_ms.{rest}"),
    ("client.dials.failed", "ledger.connections.{server}.failed"),
    ("client.dials.", "flows.{server}.established"),
    ("ledger.requests.failed", "ledger.connections.{server}.failed"),
    ("ledger.cause.", "ledger.connections.{server}.cause.{rest}"),
    ("ledger.unexplained", "ledger.connections.{server}.unexplained"),
    ("flows.{server}.requests.", "client.requests.total"),
    ("flows.{server}.request_ms.", "client.latency_ms.{rest}"),
    ("flows.{server}.requests.", "access.{proxy}.requests"),
)
_BY_PACKETS = "flows.<server>.request"
# The ledger's own of requests; and what needs the dials, too.
_OF_REQUESTS = ("ledger.unexplained", "ledger.cause.", "ledger.requests.")
_OF_DIALS = "ledger.dials_without_port"
_OF_CONNECT_TIMEOUT = ("model.syn_ladder_ms", "model.syns_per_failed_dial")


def prediction_problems(resolved: ResolvedScenario) -> Iterator[Problem]:
    """Yield every prediction that could not be judged, whatever the run brought."""
    knobs = {**resolved.on_path, **resolved.in_files()}
    seen: set[str] = set()
    for index, prediction in enumerate(resolved.scenario.predictions):
        if prediction.id in seen:
            what = f"two predictions are named '{prediction.id}'"
            yield Problem(what, resolved.where("predictions", index, "id"), "rename one of them")
        seen.add(prediction.id)
        if resolved.scenario.arms is None and (prediction.arms or prediction.compares_arms):
            what = f"prediction '{prediction.id}' is about arms, and the scenario has none"
            yield Problem(
                what,
                resolved.where("predictions", index),
                "add arms to the scenario, or write the prediction without them",
            )
        if prediction.when is not None and prediction.compares_arms:
            what = f"prediction '{prediction.id}' compares arms, whose settings differ, so that 'when' has no one value"
            yield Problem(what, resolved.where("predictions", index, "when"), "leave 'when' out")
    yield from _claim_problems(resolved, seen)
    yield from control_problems(resolved)
    yield from _of_one_run(resolved, knobs)
    check = partial(check_expression, path=resolved.roles, knobs=knobs, wanted=Kind.NUMBER)
    yield from published_problems(resolved, resolved.published, check)


def _of_one_run(resolved: ResolvedScenario, knobs: Mapping[str, object]) -> Iterator[Problem]:
    """Yield what is wrong with the predictions of one run."""
    scope = figures.scope(resolved.roles, knobs)
    for stated in resolved.predictions:
        try:
            check_prediction(stated.prediction.expression, resolved.roles, knobs)
            if stated.prediction.when is not None:
                check_known(stated.prediction.when, resolved.roles, knobs)
        except ExpressionError as error:
            yield Problem(f"prediction '{stated.prediction.id}': {error}", stated.where)
            continue
        for text in filter(None, (stated.prediction.expression, stated.prediction.when)):
            for what, hint in _never(resolved, parse(text)):
                yield Problem(f"prediction '{stated.prediction.id}': {what}", stated.where, hint)
        for name, column in parse(stated.prediction.expression).names_with_columns:
            found = _unrecorded(resolved, scope, name)
            if found and applies(stated.prediction, resolved) is not False:
                what = f"prediction '{stated.prediction.id}': column {column}: {found[0]}"
                yield Problem(what, stated.where, found[1])


def _never(resolved: ResolvedScenario, expression: Expression) -> Iterator[tuple[str, str | None]]:
    """Yield the fault and a hint for each text that an expression compares a knob with, and that it never has."""
    pairs = (pair for node in expression.tree.walk() if isinstance(node, Chain) for pair in pairwise(node.operands))
    for one, other in pairs:
        for name, text in ((one, other), (other, one)):
            if not (isinstance(name, Name) and isinstance(text, Literal) and isinstance(text.content, str)):
                continue
            group, _, field = name.text.partition(".")
            knobs = getattr(resolved.scenario.knobs, group)
            if isinstance(knobs, Part):  # a sysctl may be any text
                try:
                    type(knobs).model_validate({field: text.content})
                except ValidationError as error:
                    found = error.errors()[0]
                    found["loc"] = ("knobs", group, field)
                    what, hint = knob_sentence(found, [], resolved.registry.knobs)
                    yield f"column {text.column}: {what}", hint


def _claim_problems(resolved: ResolvedScenario, predictions: Collection[str]) -> Iterator[Problem]:
    claim = resolved.scenario.claim
    if claim is None:
        return
    if sum(map(bool, (claim.supported_by, claim.refuted_by, claim.undecided))) != 1:
        yield Problem(
            "a claim takes exactly one of supported_by, refuted_by and undecided",
            resolved.where("claim"),
            "name the predictions that confirm it, or those that refute it, or write why it stays undecided",
        )
    for key, names in (("supported_by", claim.supported_by), ("refuted_by", claim.refuted_by)):
        for index, name in enumerate(names):
            if name not in predictions:
                where = resolved.where("claim", key, index)
                yield Problem(f"no prediction is named '{name}'", where, did_you_mean(name, predictions))


def published_problems(
    resolved: ResolvedScenario, published: Published | None, check: Callable[[str], Expression]
) -> Iterator[Problem]:
    """Yield every figure beside a published experiment that could not be measured.

    `check` refuses a wrong expression by an ExpressionError.
    """
    for name, expression in published.here.items() if published else ():
        where = resolved.where("published", "here", name)
        try:
            if not check(expression).names:
                yield Problem(f"published.here '{name}' names no figure", where, "docs/figures.md has the figures")
        except ExpressionError as error:
            yield Problem(f"published.here '{name}': {error}", where)
    for name in published.there if published else ():
        if published is not None and name not in published.here:
            where = resolved.where("published", "there", name)
            what = f"published.there names '{name}', and published.here does not"
            yield Problem(what, where, did_you_mean(name, published.here))


def compared_problems(
    names: Iterable[str], cells: Iterable[ResolvedScenario], where: Callable[[int], str]
) -> Iterator[Problem]:
    """Yield a problem for each figure that a series is said to be about, and that no cell has as a number.

    `where` gives the place of the figure of an index.
    """
    scopes = [figures.scope(one.roles, one.on_path) for one in cells]
    for index, name in enumerate(names):
        faults = []
        for scope in scopes:
            try:
                kind = scope.kind_of(name)
            except figures.UnknownFigure as error:
                faults.append(str(error))
            else:
                faults += [f"{name} is {kind}, and cells are compared by numbers"] if kind is not Kind.NUMBER else []
        if len(faults) == len(scopes):
            yield Problem(faults[0], where(index))


def control_problems(resolved: ResolvedScenario) -> Iterator[Problem]:
    """Yield what is wrong with a scenario's own control; what is said of another one is for `missing_controls`."""
    control, arms = resolved.scenario.control, resolved.scenario.arms
    if control is None:
        return
    if bool(control.scenario) == bool(control.clean) or (control.scenario and control.arm):
        what = "a control names either another scenario, or predictions that are true without the fault"
        hint = "write 'scenario' alone, or 'clean', with 'arm' if the scenario has arms"
        yield Problem(what, resolved.where("control"), hint)
        return
    if control.scenario:
        return
    names = list(arms.variants) if arms else []
    if control.arm not in names if names else control.arm:
        what = (
            f"the scenario has arms, so its control is one of {', '.join(names)}"
            if names
            else "the scenario has no arms"
        )
        yield Problem(what, resolved.where("control", *(["arm"] if control.arm else [])))
        return
    predictions = {one.id: one for one in resolved.scenario.predictions}
    for index, name in enumerate(control.clean):
        where = resolved.where("control", "clean", index)
        if name not in predictions:
            yield Problem(f"no prediction is named '{name}'", where, did_you_mean(name, predictions))
        elif not predictions[name].judges(control.arm):
            about = f"the runs of {control.arm}" if control.arm else "a run"
            yield Problem(f"prediction '{name}' is not about {about}", where)


def missing_controls(catalogue: Mapping[str, ResolvedScenario]) -> Iterator[Problem]:
    """Yield each scenario of a catalogue whose control is in a scenario that has none."""
    for resolved in catalogue.values():
        control = resolved.scenario.control
        if control is None or control.scenario is None:
            continue
        where = resolved.where("control", "scenario")
        if control.scenario not in catalogue:
            what = f"there is no scenario '{control.scenario}'"
            yield Problem(what, where, did_you_mean(control.scenario, catalogue))
        elif (own := catalogue[control.scenario].scenario.control) is None or own.scenario:
            yield Problem(f"{control.scenario} does not say what is clean in it", where, "name a scenario that does")


def resolve_control(
    resolved: ResolvedScenario, catalogue: Mapping[str, ResolvedScenario]
) -> tuple[ResolvedScenario, str | None, list[str]] | None:
    """Return the scenario in which a scenario's control is, its arm, and its predictions as verdicts name them.

    None where there is no control.
    """
    control = resolved.scenario.control
    if control is None:
        return None
    where = catalogue[control.scenario] if control.scenario else resolved
    own = where.scenario.control or control
    return where, own.arm, [f"{own.arm}/{name}" if own.arm else name for name in own.clean]


def _unrecorded(resolved: ResolvedScenario, scope: Scope, name: str) -> tuple[str, str | None] | None:
    """Return why a figure stays unknown whatever a run brings, and what to use; None where a run may tell it.

    Without this, a prediction over it would be `unknown` after each run.

    `scope`: the names of the run, of which this is one.
    """
    why = _why_unknown(resolved, scope, name)
    if why is None:
        return None
    told = [
        f"use {one}"
        for one in _instead(resolved, name)
        if scope.has(one) and _why_unknown(resolved, scope, one) is None
    ]
    load = resolved.scenario.own_load
    if load is not None and load.results is None and _needs_results(scope, name) and generators.name_of(load):
        told.append("name a file of its requests by load.results (docs/any-load.md)")
    return f"{name} would be unknown: {why}", " or ".join(told) or None


def _needs_results(scope: Scope, name: str) -> bool:
    found = scope.find(name)
    return found is not None and (found[0].source == "k6: requests.jsonl" or name.startswith(_OF_REQUESTS))


def _why_unknown(resolved: ResolvedScenario, scope: Scope, name: str) -> str | None:
    found, load = scope.find(name), resolved.scenario.own_load
    if found is None:
        return None
    figure, parameters = found
    if figure.pattern.startswith(_BY_PACKETS):
        return _not_by_packets(resolved, parameters["server"])
    if load is not None and "queue_simulation" in figure.source:
        return "the model is of the lab's own workloads"
    if load is not None and figure.source == "k6: events.jsonl":
        return "only the lab's workload long_polling records admissions"
    generator = generators.name_of(load)
    return None if load is None or generator is None else _why_of_generator(scope, name, generator, load)


def _why_of_generator(scope: Scope, name: str, generator: str, load: OwnLoad) -> str | None:
    source = found[0].source if (found := scope.find(name)) else ""
    if "dials.jsonl" in source or "summary.json" in source or name == _OF_DIALS:
        return f"only k6 records this, and {generator} makes the load"
    if name in _OF_CONNECT_TIMEOUT:
        return f"the lab does not know when {generator} gives up to connect"
    if load.results is None and _needs_results(scope, name):
        return f"{generator} leaves no record of its requests that the lab reads"
    return None


def _not_by_packets(resolved: ResolvedScenario, server: str) -> str | None:
    """Return why packets do not tell of requests to a server, as figures.exchanges says it after a run."""
    load, client, first = resolved.scenario.own_load, resolved.scenario.path[0], resolved.first_server
    if first is None or generators.name_of(load) is None or (load is not None and load.results is not None):
        return f"{client} records its requests itself"
    if server != first and server.rpartition("_")[0] != first:
        return f"packets tell requests apart between {client} and {first} alone"
    if resolved.roles[first].tls:
        return f"the connections to {first} are by TLS, and their packets do not tell of requests"
    if not resolved.roles[client].one_at_a_time:
        return f"{client} may send a request before the answer to the last, or not speak HTTP/1"
    return None


def _instead(resolved: ResolvedScenario, name: str) -> Iterator[str]:
    """Yield the figures that may tell what this one does."""
    proxy = next((role for role, one in resolved.roles.items() if one.kind == "proxy"), None)
    named = {"server": resolved.first_server, "proxy": proxy}
    for pattern, other in _INSTEAD:
        begins = pattern.format(**named)
        if name.startswith(begins):
            yield other.format(**named, rest=name.removeprefix(begins))
