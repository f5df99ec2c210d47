"""Which engine the lab's commands use."""

from dataclasses import dataclass
from typing import Literal

from lab.engines.compose.engine import Compose
from lab.engines.kubernetes.engine import Kubernetes
from lab.engines.kubernetes.kubectl import Kubectl
from lab.engines.kubernetes.objects import Images
from lab.engines.protocol import Engine
from lab.errors import BadInput, Problem

Name = Literal["compose", "kubernetes"]


@dataclass
class _Choice:
    engine: Engine


_choice = _Choice(Compose())


def select_engine(
    name: Name,
    *,
    context: str | None = None,
    namespace: str | None = None,
    registry: str | None = None,
    spread: bool = False,
    metrics: int | None = None,
) -> None:
    """Choose the engine of this command.

    Args:
        name: of the engine.
        context: of the kubeconfig.
        namespace: of the cluster.
        registry: where the cluster pulls the lab's images from; else its nodes have them.
        spread: whether roles are to be on nodes of their own.
        metrics: the port on which each collector serves its current figures; None if none does.

    Raises:
        BadInput: an option is of another engine.
    """
    if name == "compose":
        given = {"--context": context, "--namespace": namespace, "--registry": registry, "--spread": spread}
        if foreign := [option for option, value in given.items() if value]:
            raise BadInput(Problem(f"{foreign[0]} is of the engine Kubernetes", hint="add --engine kubernetes"))
        _choice.engine = Compose(metrics)
    else:
        _choice.engine = Kubernetes(Kubectl(context, namespace), Images(registry), spread, metrics)


def selected_engine() -> Engine:
    """Return the engine: Docker Compose, unless another was chosen."""
    return _choice.engine
