"""Services of a cluster that a scenario only names: the load goes to the pods behind them, which run already."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from lab.errors import BadInput, Problem
from lab.reading.document import Document
from lab.scenarios.services import Service, may_stand_on_path

_SERVICES, _SERVICE = "services", "service"


def spread(content: Mapping[str, Any], document: Document) -> tuple[dict[str, Any], Document]:
    """Return a scenario in which `{service: shop/web}` on the path is a service of its own, with the lines of that.

    Raises:
        BadInput: no name on a path can be made of the service's.
    """
    path, own = content.get("path"), content.get(_SERVICES, {})
    if not isinstance(path, list) or not isinstance(own, Mapping):
        return dict(content), document  # the scenario's model says what is wrong
    steps, declared, lines = list(path), dict(own), dict(document.lines)
    for index, step in enumerate(path):
        if not isinstance(step, Mapping) or not isinstance(named := step.get(_SERVICE), str):
            continue
        name = re.sub(r"[^a-z0-9]", "", named.rpartition("/")[2].lower())
        if not may_stand_on_path(name):
            what = f"'{named}' gives no name for figures and knobs"
            hint = f"write services: {{web: {{cluster_service: {named}}}}}, and web on the path"
            raise BadInput(Problem(what, document.where(("path", index)), hint))
        steps[index] = name
        said = declared.get(name)
        besides = {key: one for key, one in step.items() if key != _SERVICE}
        declared[name] = {"cluster_service": named, **besides, **(said if isinstance(said, Mapping) else {})}
        at = lines.get(("path", index)) or lines.get(("path",), 1)
        keys = {"cluster_service": _SERVICE, **{key: key for key in besides}}
        lines |= {(_SERVICES, name): at}
        lines |= {(_SERVICES, name, key): lines.get(("path", index, of_step), at) for key, of_step in keys.items()}
    if steps == path:
        return dict(content), document
    return {**content, "path": steps, _SERVICES: declared}, replace(document, lines=lines)


def notices(services: Mapping[str, Service]) -> Iterator[str]:
    """Yield what the lab does to the pods behind each service that runs already."""
    for name, service in services.items():
        if service.cluster_service:
            yield (
                f"{name}: the load goes to the pods behind {service.cluster_service}, which stay as they are."
                " A collector joins each as an ephemeral container, whose entry stays in the pod until the pod is gone"
            )
