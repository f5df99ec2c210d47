"""The questions of a lesson: a few numbers that the scenario's predictions are about, and which arm has more of one."""

from collections.abc import Iterable, Iterator, Mapping

from analysis.compare.arm_figures import arm_identifier
from analysis.expressions import parse
from analysis.expressions.tree import Call, Chain, Name, Node
from analysis.expressions.values import Kind
from analysis.figures import declaration, programs
from analysis.figures.catalogue import find
from analysis.figures.declaration import Figure
from formats.manifest import Guess
from formats.predictions import Claim
from formats.series import ExpectedArm
from lab.roles.declared_roles import ROLES
from lab.scenarios.resolved import ResolvedScenario
from lab.series.plan import Answers, Plan

_MOST = 4
_MOST_OF_SERIES = 6
# Functions that compare their first argument with the others.
_COMPARING = frozenset({"between", "near"})
_MODEL = "model."
# Nobody can predict what the ledger leaves open and how sure it is of itself.
_NOT_ASKED = (_MODEL, "ledger.", "process.")
# What the captures say often repeats what another observer said.
_LAST = frozenset({"flows"})


def questions_for_run(resolved: ResolvedScenario) -> Answers:
    """Return the questions about one run, as nobody has answered them."""
    return _unanswered(resolved, _numbers(resolved, _MOST))


def questions_for_answer(resolved: ResolvedScenario, expressions: Iterable[str], prediction: str) -> Answers:
    """Return the questions about an exercise: the figures that its answer compares with something."""
    names = dict.fromkeys(name for text in expressions for name, _ in _compared(parse(text).tree))
    asked = [name for name in names if _can_be_asked(resolved, name)]
    return _unanswered(resolved, [_number(prediction, name) for name in asked[:_MOST]])


def questions_for_series(plan: Plan) -> Answers:
    """Return the questions about the runs of each arm, and those about the arms beside each other."""
    choices = [choice for claim in plan.predictions for choice in _choices(claim, plan.cells)]
    left = max(_MOST_OF_SERIES - len(choices), len(plan.cells))
    each = max(1, left // len(plan.cells))
    asked = Answers(chosen=choices)
    for planned in plan.cells.values():
        asked.of_arm |= _unanswered(planned.resolved, _numbers(planned.resolved, each)).of_arm
    return asked


def _unanswered(resolved: ResolvedScenario, numbers: list[Guess]) -> Answers:
    return Answers({resolved.variant.arm: numbers} if numbers else {})


def _number(prediction: str, figure: str) -> Guess:
    asks, unit = phrase_question(figure)
    return Guess(prediction=prediction, figure=figure, asks=asks, unit=unit, value=None)


def _numbers(resolved: ResolvedScenario, most: int) -> list[Guess]:
    """Return the numbers of a run that are asked for, the most telling first.

    First come figures that a prediction computes from the settings alone: these can be worked out beforehand, and of
    them those that take a model say more than those that repeat a setting. What only relates two measured figures comes
    after them, if it is about another observer. For an arm, predictions about this arm come before those about all.
    """
    everywhere = {one.id for one in resolved.scenario.predictions if one.arms is None}
    found: dict[str, Guess] = {}
    compared = [
        (one.prediction, name, others)
        for one in resolved.predictions
        for name, others in _compared(parse(one.prediction.expression).tree)
        if _can_be_asked(resolved, name)
    ]
    compared.sort(key=lambda one: (one[0].id in everywhere, not any(other.startswith(_MODEL) for other in one[2])))
    candidates = [(prediction, name, _is_settled(resolved, others)) for prediction, name, others in compared]
    observers: set[str] = set()
    predictions: set[str] = set()
    for settled, last in ((True, False), (False, False), (True, True)):
        for prediction, name, is_settled in candidates:
            observer = name.partition(".")[0]
            if is_settled is not settled or (observer in _LAST) is not last or len(found) == most:
                continue
            if name in found or prediction.id in predictions or (not settled and observer in observers):
                continue
            observers.add(observer)
            predictions.add(prediction.id)
            found[name] = _number(prediction.id, name)
    return list(found.values())


def _compared(tree: Node) -> Iterator[tuple[str, list[str]]]:
    """Each name that stands by itself in a comparison, with the names that it is compared with."""
    for node in tree.walk():
        if isinstance(node, Chain):
            operands: tuple[Node, ...] = node.operands
            asked: Iterable[Node] = operands
        elif isinstance(node, Call) and node.function in _COMPARING:
            operands = node.operands
            asked = operands[:1]
        else:
            continue
        for operand in asked:
            if isinstance(operand, Name):
                others = [one for other in operands if other is not operand for one in other.walk()]
                yield operand.text, [one.text for one in others if isinstance(one, Name)]


def _can_be_asked(resolved: ResolvedScenario, name: str) -> bool:
    if name in resolved.values or name.startswith(_NOT_ASKED):
        return False
    found = find_declared(name)
    return found is not None and found[0].kind is Kind.NUMBER


def _is_settled(resolved: ResolvedScenario, names: Iterable[str]) -> bool:
    return all(name in resolved.values or name.startswith(_MODEL) for name in names)


def _choices(claim: Claim, cells: Iterable[str]) -> Iterator[ExpectedArm]:
    arms = {arm_identifier(cell): cell for cell in cells}
    for node in parse(claim.expression).tree.walk():
        if not isinstance(node, Chain) or len(node.operands) != 2 or node.signs[0] not in ("<", ">"):  # noqa: PLR2004  two sides
            continue
        less, more = node.operands if node.signs[0] == "<" else node.operands[::-1]
        if not (isinstance(less, Name) and isinstance(more, Name)):
            continue
        (one, figure), (other, same) = (_of_arm(less.text), _of_arm(more.text))
        if figure == same and one in arms and other in arms:
            both = sorted((arms[one], arms[other]))
            asks, _ = phrase_question(figure)
            yield ExpectedArm(prediction=claim.id, asks=asks, arms=both, less=arms[one], value=None)


def _of_arm(name: str) -> tuple[str, str]:
    arm, _, figure = name.removeprefix("arms.").partition(".")
    return arm, figure


_STATISTICS = {
    "min": "the shortest",
    "max": "the longest",
    "mean": "the mean",
    "p50": "the median",
    "p90": "the 90th percentile",
    "p95": "the 95th percentile",
    "p99": "the 99th percentile",
}

# By the figure's pattern. One that is not here is asked for by its meaning.
QUESTIONS: Mapping[str, str] = {
    "client.requests.total": "How many requests are made?",
    "client.requests.ok": "How many requests are answered successfully?",
    "client.requests.failed": "How many requests fail?",
    "client.requests.status.<status>": "How many requests are answered with {status}?",
    "client.requests.error.<code>": "How many requests end with k6's error {code}?",
    "client.latency_ms.<statistic>": "What is {statistic} of the times to an answer, connecting included?",
    "client.users.total": "How many users are there?",
    "client.users.served": "How many users get all of their answers?",
    "client.users.failed": "How many users see a failure?",
    "client.dials.total": "How many connections do the clients try to open?",
    "client.dials.ok": "How many connections do the clients open?",
    "client.dials.failed": "How many of the clients' attempts to connect fail?",
    "client.dials.failed_<kind>": "How many of the clients' attempts to connect fail with “{kind}”?",
    "client.dial_ms.<statistic>": "What is {statistic} of the times to connect?",
    "client.dial_ms.failed.<statistic>": "What is {statistic} of the times until connecting fails?",
    "kernel.<role>.<Counter>": "By how much does {Counter} grow in the kernel of {role}?",
    "listen.<role>.depth.max": "How many connections are in the accept queue of {role} at most?",
    "listen.<role>.drops": "How many SYNs does the listening socket of {role} drop?",
    "sockets.<role>.time_wait.max": "How many sockets of {role} are in TIME_WAIT at most?",
    "sockets.<role>.time_wait.end": "How many sockets of {role} are in TIME_WAIT at the end?",
    "sockets.<role>.<state>.max": "How many sockets of {role} are in {state} at most?",
    "sockets.<role>.<state>.end": "How many sockets of {role} are in {state} at the end?",
    "tomcat.<backend>.connections.max": "How many connections does Tomcat hold at most?",
    "tomcat.<backend>.threads_busy.max": "How many of Tomcat's threads are busy at most?",
    "tomcat.<backend>.requests": "How many requests does Tomcat serve?",
    "access.<proxy>.requests": "How many requests does {proxy} log?",
    "access.<proxy>.status.<status>": "How many requests does {proxy} answer with {status}?",
    "access.<proxy>.tries.total": "How many times does {proxy} try a backend?",
    "gateway.connections.opened": "How many connections to the backends does the gateway open?",
    "gateway.connections.closed": "How many of the gateway's connections to the backends are closed?",
    "gateway.connections.reused": "How many times does the gateway use a connection of its pool again?",
    "gateway.dials.failed": "How many of the gateway's attempts to connect to a backend fail?",
    "flows.<server>.total": "How many connections to {server} are begun, by the capture?",
    "flows.<server>.established": "How many connections to {server} are established, by the capture?",
    "flows.<server>.unanswered": "How many connections to {server} get no answer to any SYN?",
    "flows.<server>.syns": "How many SYNs reach {server}?",
    "flows.<server>.closed_by_client": "How many connections to {server} does the client close first?",
    "flows.<server>.closed_by_server": "How many connections does {server} close first?",
    "flows.<server>.port_reuses": "How many connections to {server} use a port again that one before had?",
}


def find_declared(figure: str) -> tuple[Figure, dict[str, str]] | None:
    """Return the figure that a name is of, with its parameters: also one that a role's page tells."""
    return find(figure) or declaration.find_figure(programs.page_figures(ROLES), figure)


def phrase_question(figure: str) -> tuple[str, str]:
    """Return the question about a figure, and its unit."""
    found = find_declared(figure)
    if found is None:
        raise ValueError(figure)
    of, parameters = found
    text = QUESTIONS.get(of.pattern, f"{figure}: {of.meaning}")
    return text.format(**{name: _spoken(name, value) for name, value in parameters.items()}), of.unit


def figure_meaning(figure: str) -> str:
    """Return what a figure means, with its source, for a learner who asks back."""
    found = find_declared(figure)
    return f"{figure}: {found[0].meaning} ({found[0].source})" if found else figure


def _spoken(parameter: str, value: str) -> str:
    if parameter in ("role", "server", "backend", "proxy"):
        return ROLES[value].display_name if value in ROLES else value.replace("_", "-")
    if parameter == "statistic":
        return _STATISTICS.get(value, value)
    if parameter == "kind":
        return value.replace("_", "-")
    return value.upper() if parameter == "state" else value
